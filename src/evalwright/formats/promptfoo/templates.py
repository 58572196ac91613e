"""Templates in Nunjucks. Those that only name values are filled in here; all others need the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.formats.promptfoo.values import template_text

__all__ = ["holds_template", "plain_names", "render", "render_all"]

_NAME = re.compile(r"\{\{\s*([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)\s*\}\}")
_MARK = re.compile(r"\{[{%#]")
_WORDS = frozenset({"true", "false", "none", "null", "undefined", "loop", "not"})
"""Names with a meaning of their own, which the engine knows."""
_OF_TEXT = frozenset({"length"})


def holds_template(text: str) -> bool:
    """Whether there is anything to render."""
    return _MARK.search(text) is not None


def plain_names(text: str) -> set[str]:
    """The first steps of the names that a template only prints; none of one that has statements, which may set them."""
    if "{%" in text:
        return set()
    return {found[1].partition(".")[0] for found in _NAME.finditer(text)} - _WORDS


def render(text: str, names: Mapping[str, Any], filters: Mapping[str, Any] | None = None) -> str:
    """The text with its expressions filled in; names that are not there are empty. Raises TemplateError."""
    if "{" not in text or _MARK.search(text) is None:
        return text
    pieces = _NAME.split(text)
    if any("{" in piece and _MARK.search(piece) for piece in pieces[::2]) or not _plain(pieces[1::2]):
        from evalwright.formats.promptfoo.nunjucks import rendered

        return rendered(text, names, filters or {})
    for i in range(1, len(pieces), 2):
        pieces[i] = template_text(_found(pieces[i], names))
    return "".join(pieces)


def render_all(value: Any, names: Mapping[str, Any]) -> Any:
    """The same for every text in plain data."""
    if isinstance(value, str):
        return render(value, names)
    if isinstance(value, dict):
        return {render(key, names): render_all(one, names) for key, one in value.items()}
    return [render_all(one, names) for one in value] if isinstance(value, list) else value


def _plain(paths: list[str]) -> bool:
    return not any(path in _WORDS or path.rpartition(".")[2] in _OF_TEXT for path in paths)


def _found(path: str, names: Mapping[str, Any]) -> Any:
    value: Any = names
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value
