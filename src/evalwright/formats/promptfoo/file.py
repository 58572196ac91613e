"""The configuration as written in its file: parsed, with its references and variables resolved."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.key_paths import Place
from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.scripts import evaluated_file
from evalwright.formats.promptfoo.templates import render
from evalwright.formats.promptfoo.values import as_it_was, as_javascript

__all__ = ["env_defaults", "env_names", "mapping_of", "resolved", "with_environment"]

_TEMPLATE = re.compile(r"\{\{(?:[^}]|\}(?!\}))*\}\}")
_VARIABLE = re.compile(r"\benv(?:\.(\w+)|\[\s*['\"]([^'\"]+)['\"]\s*\])")
_OR_TEXT = re.compile(rf"\{{\{{-?\s*{_VARIABLE.pattern}\s+or\s+(?:'[^']*'|\"[^\"]*\")\s*-?\}}\}}")
_DEFAULT = re.compile(r"\bor\b|\|\s*(?:default|d)\b")
_DEEPEST = 20
"""How many references may lead to each other in a row."""


def _read_document(path: Path, folder: Path) -> yaml.Document:
    """A file of the configuration: YAML 1.2, JSON, or JavaScript that exports it. Raises InputError."""
    if path.suffix in (".yaml", ".yml", ".json", ".jsonl"):
        return yaml.load(path, "yaml12")
    return yaml.Document(str(path), evaluated_file(path, folder), b"")


def resolved(raw: Any, document: Any, origin: Origin) -> Any:
    """The value with every `{$ref: "#/..."}` replaced by what it refers to."""
    return _Referring(document, origin).resolved(raw, (), 0)


class _Referring:
    def __init__(self, document: Any, origin: Origin) -> None:
        self._document, self._origin = document, origin

    def resolved(self, value: Any, place: Place, depth: int) -> Any:
        if isinstance(value, list):
            return as_it_was([self.resolved(one, (*place, i), depth) for i, one in enumerate(value)], value)
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            return self._target(reference, place, depth)
        schemas = place[-1:] == ("parameters",) and bool({"tools", "functions"} & set(map(str, place)))
        if schemas:
            return value
        return as_it_was({key: self.resolved(one, (*place, str(key)), depth) for key, one in value.items()}, value)

    def _target(self, reference: str, place: Place, depth: int) -> Any:
        found = self._document
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
                found = found[int(name)]
            else:
                self._origin.at(*place).report(f"$ref: there is no {reference!r} in this file")
                return None
        if depth >= _DEEPEST:
            self._origin.at(*place).report(f"$ref: {reference!r} leads to itself")
            return None
        return self.resolved(copy.deepcopy(found), place, depth + 1)


def with_environment(value: Any, environment: Mapping[str, str]) -> Any:
    """The value with `{{env.NAME}}` filled in for variables that are set, and with templates of variables that have a
    filter or a text as their default; the others are left to the prompts."""
    if isinstance(value, str):
        if "env" not in value:
            return value
        return _TEMPLATE.sub(lambda found: _with_environment(found[0], environment), value)
    if isinstance(value, dict):
        made = {with_environment(key, environment): with_environment(one, environment) for key, one in value.items()}
        return as_it_was(made, value)
    return as_it_was([with_environment(one, environment) for one in value], value) if isinstance(value, list) else value


def _with_environment(template: str, environment: Mapping[str, str]) -> str:
    named = _VARIABLE.search(template)
    if named is None:
        return template
    is_set = (named[1] or named[2]) in environment
    if not is_set and "|" not in template and not _OR_TEXT.fullmatch(template):
        return template
    try:
        return render(template, {"env": environment})
    except TemplateError:
        return template


def mapping_of(path: Path, folder: Path) -> tuple[yaml.Document, dict[str, Any]]:
    """The configuration in a file. Raises InputError if it is empty or not a mapping."""
    document = _read_document(path, folder)
    raw = document.value
    if not isinstance(raw, dict):
        found = "the file is empty" if raw is None else f"found {type(raw).__name__}"
        raise InputError(Problem(str(path), f"{found}, expected a mapping with prompts, providers and tests"))
    return document, as_javascript(raw)


def env_names(value: Any, *, with_default: bool = True) -> Iterator[str]:
    """The names of the variables to which there are references; also of those that have a default."""
    for template in _env_templates(value):
        if with_default or not _DEFAULT.search(template):
            for found in _VARIABLE.finditer(template):
                yield found[1] or found[2]


def env_defaults(value: Any) -> Iterator[tuple[str, str]]:
    """The names of variables that have a default, and what is rendered in their place if they are not set."""
    for template in _env_templates(value):
        if _DEFAULT.search(template) and (named := _VARIABLE.search(template)):
            yield named[1] or named[2], _with_environment(template, {})


def _env_templates(value: Any) -> Iterator[str]:
    """The expressions that name variables, in all texts of a value."""
    if isinstance(value, str):
        if "env" in value:
            yield from (found for found in _TEMPLATE.findall(value) if _VARIABLE.search(found))
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _env_templates(one)
