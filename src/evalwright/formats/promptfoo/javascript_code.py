"""JavaScript of a configuration as text: what of it needs no Node, and how Node gets the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.values import json_parse, shown_text, template_text

__all__ = ["javascript_body", "needs_node", "simple_path"]

_DECLARATION = re.compile(r"^(const|let|var)\s")
_NAMED = re.compile(r"[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*|(?:\?\.)?\[(?:\d+|'[^'\\]*'|\"[^\"\\]*\")\])*;?")
_PARSED = re.compile(r"JSON\.parse\(\s*output\s*\)")
_STEP = re.compile(r"\??\.([A-Za-z_$][\w$]*)|(?:\?\.)?\[(?:(\d+)|'([^'\\]*)'|\"([^\"\\]*)\")\]")
_NO_VALUE = object()


def javascript_body(code: str) -> str:
    """The body of a function for the code of a check: a single line is an expression, or ends with one; several are
    taken as they are."""
    code = code.rstrip()
    if "\n" in code:
        return code
    code = code.strip().rstrip(";").rstrip()
    if not _DECLARATION.match(code):
        return f"return {code}"
    *before, last = _statements(code)
    return ";".join([*before, f" return {last.strip()}"])


def _statements(line: str) -> list[str]:
    """The statements of a line, separated at semicolons outside strings and brackets."""
    pieces, depth, quote, start = [], 0, "", 0
    i = 0
    while i < len(line):
        sign = line[i]
        if quote:
            if sign == "\\":
                i += 1
            elif sign == quote:
                quote = ""
        elif sign in "'\"`":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == ";" and depth == 0:
            pieces.append(line[start:i])
            start = i + 1
        i += 1
    return [piece for piece in [*pieces, line[start:]] if piece.strip()]


def needs_node(code: str) -> bool:
    """Whether an expression is more than a path to a value."""
    return _path_of(code) is None


def simple_path(code: str, names: Mapping[str, Any]) -> tuple[bool, Any]:
    """Whether an expression is only a path to a value, and that value."""
    steps = _path_of(code)
    if steps is None or steps[0] not in names:
        return False, None
    value, parsed = names[steps[0]], steps[1] == [_NO_VALUE]
    if parsed or steps[1][:1] == [_NO_VALUE]:
        try:
            value = json_parse(template_text(value) if isinstance(value, (dict, list)) else shown_text(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise ScriptError(f"SyntaxError: {error}") from None
    for step in steps[1]:
        if step is not _NO_VALUE:
            value = _member(value, step)
    return True, value


def _path_of(code: str) -> tuple[str, list[Any]] | None:
    code = code.strip().removesuffix(";")
    parsed = _PARSED.match(code)
    rest = "output" + code[parsed.end() :] if parsed else code
    if not _NAMED.fullmatch(rest):
        return None
    name = re.match(r"[\w$]+", rest)
    assert name is not None
    steps: list[Any] = [int(m[2]) if m[2] else m[1] or m[3] or m[4] or "" for m in _STEP.finditer(rest, name.end())]
    if "length" in steps:
        return None
    return name[0], [_NO_VALUE, *steps] if parsed else steps


def _member(value: Any, step: Any) -> Any:
    if isinstance(value, dict):
        return value.get(str(step))
    if isinstance(value, (list, str)) and isinstance(step, int):
        return value[step] if step < len(value) else None
    if value is None:
        raise ScriptError(f"TypeError: Cannot read properties of null (reading {str(step)!r})")
    return None
