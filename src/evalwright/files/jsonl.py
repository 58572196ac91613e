"""JSON Lines, streamed: lines end at LF only, and blank ones are ignored."""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.paths import unreadable

__all__ = [
    "advice_on",
    "decoded",
    "exact",
    "has_each_key_once",
    "lines_of",
    "may_hold_halves",
    "refuse_halves",
    "repeated_keys",
    "repeated_keys_in",
]

_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 15
"""Bytes that are looked at together: what they hold is still in the processor's cache."""


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and content of each line that is not blank, a CR before its LF dropped. Raises InputError."""
    try:
        with path.open("rb", buffering=1 << 20) as file:
            number = 0
            for line in file:
                number += 1  # noqa: SIM113 - `enumerate` would hold the line
                line = line.rstrip(b"\r\n")
                if number == 1:
                    line = line.removeprefix(_BOM)
                if line and not line.isspace():
                    held = [line]
                    line = b""
                    yield number, held.pop()  # a line may be large, and what is made of it is held at the same time
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(path), unreadable(path, error))) from error


def advice_on(line: bytes) -> str:
    """The most common mistake in a line that is not JSON; "" if it has none of those."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "; the file begins as UTF-16 does: JSON Lines is UTF-8 text"
    try:
        line.decode()
    except UnicodeDecodeError:
        return "; the line is not UTF-8 text, as JSON Lines is"
    text = line.strip()
    if text[:1] in b"[]":
        return "; JSON Lines has no brackets around the lines: one {...} on each"
    if not text.startswith(b"{"):
        return "; JSON Lines has one {...} on each line"
    if text.endswith(b"},"):
        return "; no comma between lines"
    if b"'" in text and b'"' not in text:
        return "; JSON has double quotes"
    if any(word in text for word in (b"True", b"False", b"None")):
        return "; JSON writes true, false and null"
    return "" if text.endswith(b"}") else "; a line has to be a whole {...}"


def decoded(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        pass  # the standard library also reads NaN, and its messages say better what is wrong and where
    try:
        return exact(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def exact(text: str | bytes) -> Any:
    """The value of a JSON text, also with NaN and with integers of any size. Raises ValueError, RecursionError."""
    value = json.loads(text)
    if may_hold_halves(text if isinstance(text, bytes) else text.encode(errors="surrogatepass")):
        refuse_halves(value)
    return value


def may_hold_halves(data: bytes) -> bool:
    """Whether a JSON text may contain half a character: as an escape, or in bytes that only Python's own reader
    accepts."""
    return b"\\u" in data or b"\xed" in data


def refuse_halves(value: Any) -> None:
    """Raise ValueError for plain data with half a character in it, which could be neither stored nor sent."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise ValueError(f"it has {half} without its other half: a character beyond \\uffff takes two") from None


_encode = msgspec.json.Encoder().encode


def has_each_key_once(text: bytes, value: Any) -> bool:
    """Whether no object of a JSON text has a key twice, told by the value that was read from it: of a repeated key only
    the last value is read, and the text has more colons. Takes a tenth of the time of a full check.

    False if that cannot tell. Raises TypeError, ValueError, RecursionError for a value that JSON cannot hold.
    """
    return text.count(b":") == _encode(value).count(b":") and b"\\u003" not in text  # a colon written as an escape


def _may_repeat(text: bytes, decode: Callable[[bytes], Any] = msgspec.json.decode) -> bool:
    try:
        return not has_each_key_once(text, decode(text))
    except (ValueError, TypeError, RecursionError):
        return True


_decode_lines = msgspec.json.Decoder().decode_lines


def repeated_keys_in(path: Path) -> Iterator[tuple[int, str]]:
    """The keys that occur twice in one object of a line of JSON Lines, each with the number of its line.

    Raises ValueError, RecursionError, InputError.
    """
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(_BLOCK) + file.readline(), b"")
        if not any(_may_repeat(block, _decode_lines) for block in blocks):
            return
    for number, line in lines_of(path):
        for key in repeated_keys(line):
            yield number, key


def repeated_keys(line: bytes) -> list[str]:
    """Keys that occur twice in one object of a line of JSON; readers see only the last value of each.

    Raises ValueError, RecursionError.
    """
    if not _may_repeat(line):
        return []
    keys: dict[str, None] = {}

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(pairs)
        if len(seen) < len(pairs):
            keys.update({key: None for key, count in Counter(key for key, _ in pairs).items() if count > 1})
        return seen

    json.loads(line, object_pairs_hook=look)
    return list(keys)
