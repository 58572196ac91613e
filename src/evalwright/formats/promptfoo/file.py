"""The configuration as written in its file: parsed, with its references and variables resolved."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.key_paths import Place, as_written
from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.scripts import evaluated_file
from evalwright.formats.promptfoo.sources import Sources
from evalwright.formats.promptfoo.templates import render
from evalwright.formats.promptfoo.values import as_it_was, as_javascript, template_text

__all__ = ["env_defaults", "env_names", "mapping_of", "own_environment", "resolved", "with_environment"]

_TEMPLATE = re.compile(r"\{\{(?:[^}]|\}(?!\}))*\}\}")
_VARIABLE = re.compile(r"\benv(?:\.(\w+)|\[\s*['\"]([^'\"]+)['\"]\s*\])")
_OR_TEXT = re.compile(rf"\{{\{{-?\s*{_VARIABLE.pattern}\s+or\s+(?:'[^']*'|\"[^\"]*\")\s*-?\}}\}}")
_DEFAULT = re.compile(r"\bor\b|\|\s*(?:default|d)\b")
_REFERENCE = re.compile(r"((?:file://)?[^#:]+\.(?:ya?ml|json))?(?:#(/.*)?)?")
"""A file, a place in this one, or a place in a file."""
_DEEPEST = 20
"""How many references may lead to each other in a row."""


def _read_document(path: Path, folder: Path) -> yaml.Document:
    """A file of the configuration: YAML 1.2, JSON, or JavaScript that exports it. Raises InputError."""
    if path.suffix in (".yaml", ".yml", ".json", ".jsonl"):
        return yaml.load(path, "yaml12")
    return yaml.Document(str(path), evaluated_file(path, folder), b"")


def resolved(raw: Any, document: Any, sources: Sources, origin: Origin) -> Any:
    """The value with every `{$ref: "#/..."}` or `{$ref: "FILE#/..."}` replaced by what it refers to."""
    return _References(document, "", sources, origin).resolved(raw, (), ())


class _References:
    """Resolves the references in one file, which is `named`; the name of the configuration itself is empty."""

    def __init__(self, document: Any, named: str, sources: Sources, origin: Origin) -> None:
        self._document, self._named, self._sources, self._origin = document, named, sources, origin

    def resolved(self, value: Any, place: Place, behind: tuple[str, ...]) -> Any:
        """The value at a place of the configuration; `behind` are the references that have led to it."""
        if isinstance(value, list):
            return as_it_was([self.resolved(one, (*place, i), behind) for i, one in enumerate(value)], value)
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        match = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        if match is not None and (match[1] or match[2]):  # "#" alone is of a JSON Schema
            own = {key: one for key, one in value.items() if key != "$ref"}
            target = self._target(match, place, behind)
            return self._with_own(target, own, place, behind) if own and target is not None else target
        schemas = place[-1:] == ("parameters",) and bool({"tools", "functions"} & set(map(str, place)))
        if schemas:
            return value
        return as_it_was({key: self.resolved(one, (*place, str(key)), behind) for key, one in value.items()}, value)

    def _with_own(self, target: Any, own: dict[str, Any], place: Place, behind: tuple[str, ...]) -> Any:
        """What is referred to, with the keys beside `$ref`: of two mappings of the same name, all keys; of anything
        else, what is beside it."""
        if isinstance(target, dict):
            merged = {**own, **_merged(target, own)}  # in promptfoo's order, too
            return self.resolved(merged, place, behind)
        self._origin.at(*place).warn(
            f"$ref: {', '.join(map(str, own))}: not read beside it, as it refers to no mapping", unread=True
        )
        return target

    def _target(self, reference: re.Match[str], place: Place, behind: tuple[str, ...]) -> Any:
        target = f"{reference[1] or self._named}#{reference[2] or ''}"
        if target in behind or len(behind) >= _DEEPEST:
            self._origin.at(*place).report(f"$ref: {reference[0]!r} leads to itself")
            return None
        inner = self._in_file(reference[1], place) if reference[1] else self
        if inner is None:
            return None
        document, steps = inner._document, (reference[2] or "").split("/")[1:]
        if inner is self and not self._named and steps:
            self._origin.findings.quoted.add(steps[0])
        for step in steps:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(document, dict) and name in document:
                document = document[name]
            elif isinstance(document, list) and name.isdigit() and int(name) < len(document):
                document = document[int(name)]
            else:
                where = "that" if reference[1] else "this"
                self._origin.at(*place).report(f"$ref: there is no {reference[0]!r} in {where} file")
                return None
        return inner.resolved(copy.deepcopy(document), place, (*behind, target))

    def _in_file(self, named: str, place: Place) -> _References | None:
        """What resolves the references within another file; None, after a report, if that cannot be read."""
        origin = self._origin.at(*place)
        path = self._sources.path(named, origin)
        document = None if path is None else self._sources.document(path, origin)
        if document is None:
            return None
        return _References(as_javascript(document.value), named, self._sources, self._origin)


def _merged(target: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = {
        key: _merged(target[key], value) if isinstance(value, dict) and isinstance(target.get(key), dict) else value
        for key, value in own.items()
    }
    return {**target, **merged}


def with_environment(value: Any, environment: Mapping[str, str]) -> Any:
    """The value with `{{env.NAME}}` filled in for variables that are set, and with templates of variables that have a
    filter or a text as their default; the others are left to the prompts."""
    if isinstance(value, str):
        if "env" not in value:
            return value
        return _TEMPLATE.sub(lambda match: _with_environment(match[0], environment), value)
    if isinstance(value, dict):
        expanded = {
            with_environment(key, environment): with_environment(item, environment) for key, item in value.items()
        }
        return as_it_was(expanded, value)
    return (
        as_it_was([with_environment(item, environment) for item in value], value) if isinstance(value, list) else value
    )


def own_environment(authored: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, str]:
    """The variables under `env`, each with those that it names filled in: what is set outside of the configuration
    first, so that `KEY: "{{env.KEY}}"` passes a variable on, then the other variables under `env`."""
    filled = {name: with_environment(template_text(value), known) for name, value in authored.items()}
    return {
        name: with_environment(value, {key: other for key, other in filled.items() if key != name})
        for name, value in filled.items()
    }


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
        what = "the file is empty" if raw is None else f"found {as_written(raw)}"
        raise InputError(Problem(str(path), f"{what}, expected a mapping with prompts, providers and tests"))
    return document, as_javascript(raw)


def env_names(value: Any, *, with_default: bool = True) -> Iterator[str]:
    """The names of the variables to which there are references; also of those that have a default."""
    for template in _env_templates(value):
        if with_default or not _DEFAULT.search(template):
            for match in _VARIABLE.finditer(template):
                yield match[1] or match[2]


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
        for item in value.values() if isinstance(value, dict) else value:
            yield from _env_templates(item)
