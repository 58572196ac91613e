"""The tools that an output calls, in the forms of OpenAI, Anthropic and Google, also as JSON amid text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from evalwright.formats.promptfoo.values import json_parse

__all__ = ["Unreadable", "called_tools"]

_SIGN = re.compile(r'"(?:[^"\\]|\\.)*("?)|[{}\[\]]', re.DOTALL)
"""A string, which may lack its end, or a bracket."""
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BULLET = re.compile(r"[ \t]*(?:[-+*]|\d+[.)])[ \t]+")
_PAIRS = {"}": "{", "]": "["}
_MOST_UNPAIRED = 65_536


class Unreadable(Exception):
    """A text that is not searched to its end, as in promptfoo."""


class _Sign(NamedTuple):
    """A bracket outside of strings and fenced code."""

    char: str
    place: int
    starts_line: bool
    ends_line: bool


def called_tools(output: Any) -> Iterator[str]:
    """The names of the tools that are called in an output: in a structure, in JSON, or in JSON on lines of a text.

    Raises Unreadable.
    """
    if isinstance(output, str):
        try:
            value = json_parse(output)
        except (ValueError, RecursionError):
            for block in _json_in(output):
                yield from called_tools(block)
        else:
            yield from called_tools(value)
    elif isinstance(output, dict):
        yield from _called_in(output)
    elif isinstance(output, list):
        for call in output:
            if isinstance(call, dict):
                yield from _names([_call_in(call)])


def _called_in(message: Mapping[str, Any]) -> Iterator[str]:
    """The names in a message, or in a part of one."""
    live = message.get("toolCall")
    if isinstance(calls := message.get("tool_calls"), list):
        for call in calls:
            yield from _names([call.get("function"), call] if isinstance(call, dict) else [])
    elif message.get("type") in ("tool_use", "function_call") and isinstance(message.get("name"), str):
        yield message["name"]
    elif isinstance(message.get("functionCall"), dict):
        yield from _names([message["functionCall"]])
    elif isinstance(live, dict) and isinstance(calls := live.get("functionCalls"), list):
        yield from _names(calls)


def _call_in(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """What has the name of the tool in one part of a list."""
    if part.get("type") == "tool_use" and isinstance(part.get("name"), str):
        return part
    return next((part[key] for key in ("functionCall", "function") if isinstance(part.get(key), dict)), part)


def _names(calls: Iterable[Any]) -> Iterator[str]:
    return (call["name"] for call in calls if isinstance(call, dict) and isinstance(call.get("name"), str))


def _json_in(text: str) -> Iterator[Any]:
    """The objects and lists that begin and end lines of a text, or of a part of it in brackets that is no JSON."""
    pending = [_blocks(text)]
    left = 4 * len(text)
    while pending:
        block, starts_line = next(pending[-1], ("", False))
        if not block:
            pending.pop()
            continue
        if (left := left - len(block)) < 0:
            raise Unreadable("its brackets are nested so that it is not searched for calls to its end")
        try:
            value = json_parse(block)
        except (ValueError, RecursionError):
            pending.append(_blocks(block, 1))
            continue
        if starts_line:
            yield value


def _blocks(text: str, level: int = 0) -> Iterator[tuple[str, bool]]:
    """What is between paired brackets of that level and ends a line, and whether it begins one."""
    unpaired = _unpaired(text)
    opened: list[_Sign] = []
    for sign in _signs(text):
        if sign is None or sign.place in unpaired:
            continue
        if sign.char not in _PAIRS:
            opened.append(sign)
            continue
        first = opened.pop()
        if len(opened) == level and sign.ends_line:
            yield text[first.place : sign.place + 1], first.starts_line


def _unpaired(text: str) -> set[int]:
    """The places of brackets without a partner. One that closes another kind, or a break, leaves all alone that are
    open there."""
    unpaired: set[int] = set()
    opened: list[int] = []
    for sign in _signs(text):
        if sign is not None and sign.char not in _PAIRS:
            opened.append(sign.place)
        elif sign is not None and opened and text[opened[-1]] == _PAIRS[sign.char]:
            opened.pop()
        else:
            unpaired.update(opened, () if sign is None else (sign.place,))
            opened.clear()
        if len(unpaired) + len(opened) > _MOST_UNPAIRED:
            raise Unreadable(f"it has more than {_MOST_UNPAIRED} brackets without a partner")
    return unpaired.union(opened)


def _signs(text: str) -> Iterator[_Sign | None]:
    """The brackets of a text; None where no value goes on: at fenced code and after a string without an end."""
    for start, line in _lines(text):
        if line is None:
            yield None
            continue
        begins = len(line) - len(line.lstrip())
        for found in _SIGN.finditer(line):
            if found[0][0] != '"':
                place = found.start()
                yield _Sign(found[0], start + place, place == begins, place == len(line) - 1)
            elif not found[1]:
                yield None


def _lines(text: str) -> Iterator[tuple[int, str | None]]:
    """The lines of a text without trailing blanks, and where they begin; None for fenced code, where it begins and
    where it is cut short by the end of its list."""
    fence, around, lists, start = "", 0, [0], 0
    for whole in text.split("\n"):
        line, place = whole.rstrip(), start
        start += len(whole) + 1
        indent = _width(line[: len(line) - len(line.lstrip())])
        if fence and line and indent < around:
            fence = ""
            yield place, None
        mark = _FENCE.match(line)
        if fence:
            ends = mark and mark[1].startswith(fence) and indent <= around + 3 and not line[mark.end() :].strip()
            fence = "" if ends else fence
            continue
        while line and indent < lists[-1]:
            lists.pop()
        if bullet := _BULLET.match(line):
            lists.append(_width(bullet[0]))
            mark = _FENCE.match(line[bullet.end() :])
        rest = line[bullet.end() :] if bullet else line
        if mark and (bullet or indent <= lists[-1] + 3) and (mark[1][0] == "~" or "`" not in rest[mark.end() :]):
            fence, around = mark[1], lists[-1]
            yield place, None
        else:
            yield place, line


def _width(text: str) -> int:
    """The columns of a text, with tabs of four."""
    return len(text.expandtabs(4))
