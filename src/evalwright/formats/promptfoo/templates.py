"""Nunjucks templates. Those that only name values are filled in here; all others need the engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from evalwright.formats.promptfoo.values import template_text

__all__ = [
    "holds_template",
    "is_cut",
    "names_nothing",
    "plain_names",
    "render",
    "render_all",
    "template_mistake",
    "with_references",
]

_NAME = re.compile(r"\{\{\s*([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)\s*\}\}")
_MARK = re.compile(r"\{[{%#]")
_WORDS = frozenset({"true", "false", "none", "null", "undefined", "loop", "not"})
"""Names with a meaning of their own, which the engine handles."""
_OF_TEXT = frozenset({"length"})
# The same as in promptfoo, so that the same texts are references, data and templates.
_REFERENCE = re.compile(r"\{\{\s*(\w+)\s*\}\}", re.ASCII)
_ROUNDS = 5
_CUT = re.compile(r"\{%[^%]*$|\{\{[^}]*$|\{#[^#]*$", re.MULTILINE)
_RAW = re.compile(r"\{%\s*raw\s*%\}.*\{%\s*endraw\s*%\}", re.DOTALL)
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_USED = re.compile(r"\{\{\s*([^{}\s|]+)\s*(?:\|[^}]+)?\}\}|\{%\s*(?:if|for)\s+([^{}\s]+)\s*.*?%\}")
_LOOP = re.compile(r"\{%\s*for\s+(\w+)\s+in\s+(\w+)\s*%\}")
_ROOT = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def holds_template(text: str) -> bool:
    """Whether there is anything to render."""
    return _MARK.search(text) is not None


def plain_names(text: str) -> set[str]:
    """The first steps of the names that a template only prints; none if it has statements, which may set names."""
    if "{%" in text:
        return set()
    return {match[1].partition(".")[0] for match in _NAME.finditer(text)} - _WORDS


def with_references(values: dict[str, Any]) -> dict[str, Any]:
    """Variables in which `{{name}}` is replaced by other variables, the first one of each text in each round."""
    for _ in range(_ROUNDS):
        named = {name: _REFERENCE.search(value) for name, value in values.items() if isinstance(value, str)}
        used = {
            name: used_name for name, used_name in named.items() if used_name is not None and used_name[1] in values
        }
        if not used:
            break
        for name, use in used.items():
            other = values[use[1]]
            values[name] = values[name].replace(use[0], "null" if other is None else template_text(other), 1)
    return values


def is_cut(text: str) -> bool:
    """Whether a mark is opened and not closed on its line: promptfoo then leaves the text as it is."""
    return _CUT.search(text) is not None and _RAW.search(text) is None


def names_nothing(text: str, values: Mapping[str, Any]) -> bool:
    """Whether a text names variables that do not exist: promptfoo then takes it for data, not for a template.

    Names are found with promptfoo's own patterns, so that the same texts are data.
    """
    text = _COMMENT.sub("", text)
    names = {name or other for name, other in _USED.findall(text)}
    for item, items in _LOOP.findall(text):
        names = names - {item} | {items}
    roots = {match[0] for name in names if (match := _ROOT.match(name))} - {"env"}
    return not roots <= values.keys()


def render(text: str, names: Mapping[str, Any], filters: Mapping[str, Any] | None = None) -> str:
    """The text with its expressions filled in; unknown names are empty. Raises TemplateError."""
    if "{" not in text or _MARK.search(text) is None:
        return text
    pieces = _NAME.split(text)
    if not _only_name_values(pieces):
        from evalwright.formats.promptfoo.nunjucks import rendered

        return rendered(text, names, filters or {})
    for i in range(1, len(pieces), 2):
        pieces[i] = template_text(_value_at(pieces[i], names))
    return "".join(pieces)


def template_mistake(text: str, filters: Iterable[str] = ()) -> str:
    """Why a template cannot be rendered, whatever the variables are; empty if there is nothing wrong with it."""
    if not holds_template(text) or _only_name_values(_NAME.split(text)):
        return ""
    from evalwright.formats.promptfoo.nunjucks import grammar_mistake

    return grammar_mistake(text, filters)


def render_all(value: Any, names: Mapping[str, Any]) -> Any:
    """The same for every string in plain data; keys stay as they are."""
    if isinstance(value, str):
        return render(value, names)
    if isinstance(value, dict):
        return {key: render_all(item, names) for key, item in value.items()}
    return [render_all(item, names) for item in value] if isinstance(value, list) else value


def _only_name_values(pieces: list[str]) -> bool:
    """Whether the texts between names have no templates of their own."""
    return not any("{" in piece and _MARK.search(piece) for piece in pieces[::2]) and _are_plain(pieces[1::2])


def _are_plain(paths: list[str]) -> bool:
    return not any(path in _WORDS or path.rpartition(".")[2] in _OF_TEXT for path in paths)


def _value_at(path: str, names: Mapping[str, Any]) -> Any:
    value: Any = names
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value
