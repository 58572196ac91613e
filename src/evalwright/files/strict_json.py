"""JSON without Python's extensions, and where in a document a value is.

Places are determined only if something is wrong: tracking them while a document is read costs more than reading it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import Problem
from evalwright.files.jsonl import may_hold_halves, refuse_halves
from evalwright.files.key_paths import Place, steps_of

__all__ = ["JsonFlaw", "json_lines_of", "repeated_json_keys", "strict_json", "with_json_lines"]

_TOKEN = re.compile(rb'([{\[])|([}\]])|(,)|("(?:[^"\\]++|\\.)*+")|([^\s{}\[\]:,"]++)', re.DOTALL)
_CONSTANTS = ("NaN", "Infinity", "-Infinity")


class JsonFlaw(ValueError):
    """Why bytes are not strict JSON, on which line, and at which place if there is one."""

    def __init__(self, message: str, line: int, place: Place = ()) -> None:
        super().__init__(message)
        self.line = line
        self.place = place


def strict_json(data: bytes) -> Any:
    """The value in UTF-8 text, without NaN, infinite numbers, repeated keys and halves of characters.

    Raises JsonFlaw, UnicodeDecodeError, and RecursionError for a value that is nested too deeply.
    """
    try:
        value = json.loads(data, object_pairs_hook=_keys_once, parse_constant=_refuse, parse_float=_finite)
        if may_hold_halves(data):
            refuse_halves(value)
        return value
    except UnicodeDecodeError:
        raise
    except json.JSONDecodeError as error:
        raise JsonFlaw(f"{error.msg} (col {error.colno})", error.lineno) from None
    except ValueError as error:
        flaws = ((flaw, token) for token in _tokens(data) if (flaw := _flaw_of(token)))
        flaw, token = next(flaws, (str(error), _Token((), 0, b"", again=False)))
        raise JsonFlaw(flaw, data.count(b"\n", 0, token.offset) + 1, token.place) from None


def json_lines_of(data: bytes, places: Collection[Place]) -> dict[Place, int]:
    """The line, from 1, on which the value at each place begins, or the deepest existing value on the way to it.

    A place inside a value that does not exist itself is left out: it may be one of another document.
    """
    sought = {place[:depth] for place in places for depth in range(len(place) + 1)}
    numbers: dict[Place, int] = {}
    line, at = 1, 0
    for token in _tokens(data):
        if token.place in sought:
            line, at = line + data.count(b"\n", at, token.offset), token.offset
            numbers.setdefault(token.place, line)
            if len(numbers) == len(sought):
                break
    deepest = {
        place: next((above for n in range(len(place), -1, -1) if (above := place[:n]) in numbers), ())
        for place in places
    }
    return {place: numbers.get(one, 1) for place, one in deepest.items() if one or len(place) < 2}


def with_json_lines(problems: Iterable[Problem], read: Callable[[Path], bytes] | None = None) -> Iterator[Problem]:
    """Problems, with the lines of their keys if their file is one JSON document.

    `read` returns the bytes of a file; without it, only those of `.json` files are looked at.
    """
    listed = list(problems)
    places: dict[str, set[Place]] = {}
    for place in listed:
        if place.line is None and place.key:
            places.setdefault(place.file, set()).add(steps_of(place.key))
    lines: dict[str, dict[Place, int]] = {}
    for file, sought in places.items():
        data = (read or _document_in)(Path(file))
        lines[file] = json_lines_of(data, sought) if data.lstrip()[:1] in (b"{", b"[") else {}
    for place in listed:
        yield (
            place if place.line is not None else replace(place, line=lines.get(place.file, {}).get(steps_of(place.key)))
        )


def _document_in(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes() if path.suffix == ".json" else b""
    return b""


def repeated_json_keys(data: bytes) -> Iterator[tuple[Place, int]]:
    """Each key that its object had before, of which programs read only the last value, with its line."""
    line, at = 1, 0
    for token in _tokens(data):
        if token.again:
            line, at = line + data.count(b"\n", at, token.offset), token.offset
            yield token.place, line


def _keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key occurs more than once")
    return mapping


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large a number")
    return number


class _Token(NamedTuple):
    """A value, or the start of a list or an object."""

    place: Place
    offset: int
    text: bytes
    again: bool
    """Whether its object had its key before."""


def _tokens(data: bytes) -> Iterator[_Token]:
    """The values of a document in their order, as far as it is valid."""
    place: list[str | int] = []
    names: list[set[str] | None] = []
    """For each enclosing object; None for a list."""
    key_next = again = False
    for match in _TOKEN.finditer(data):
        opening, closing, comma, text, scalar = match.groups()
        if closing:
            if not names:
                return
            names.pop()
            place.pop()
            key_next = False
        elif comma:
            if not names:
                return
            key_next = names[-1] is not None
            if names[-1] is None:
                place[-1] = int(place[-1]) + 1
        elif text and key_next:
            known, name = names[-1], str(json.loads(text))
            again, key_next = known is not None and name in known, False
            if known is not None:
                known.add(name)
            place[-1] = name
        else:
            yield _Token(tuple(place), match.start(), opening or text or scalar, again)
            again = False
            if opening:
                key_next = opening == b"{"
                names.append(set() if key_next else None)
                place.append("" if key_next else 0)


def _flaw_of(token: _Token) -> str | None:
    text = token.text.decode(errors="replace")
    if token.again:
        return f"the key {token.place[-1]!r} occurs more than once"
    try:
        if text in _CONSTANTS:
            _refuse(text)
        elif text.startswith('"'):
            refuse_halves(json.loads(text))
        elif text[-1:].isdigit():
            _finite(text)
    except ValueError as error:
        return str(error)
    return None
