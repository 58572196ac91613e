"""Detects the format of a recording by its content: its name says nothing.

Formats are tried in a fixed order, the most specific first, as some formats share marks: a stream of Gemini has a
`session_id`, a response has messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.importers.file_heads import JSON_BEGINS, Head, is_yaml, start_of
from evalwright.importers.format_marks import FORMAT_MARKS, may_be_anthropic, may_be_items
from evalwright.importers.sources import binary_flaw, document, flaw_of, is_text, json_value, lines
from evalwright.importers.span_marks import is_otlp

__all__ = ["check", "detected", "flaw_in", "no_format_fits"]

_FEW_NAMES, _LONG_NAME = 8, 40
"""How many names of a file's keys or columns a message shows, and how many characters of each."""

_BYTE = re.compile(r"\(byte (\d+)\)")
_READABLE: dict[str, Callable[[Head], bool]] = {
    "anthropic-messages": may_be_anthropic, "openai-responses": may_be_items, "openinference": is_otlp,
}  # fmt: skip
"""Formats that can also be read from files without their marks, if the user names the format."""


def detected(head: Head) -> str | None:
    """The first format that a file can have; None if there is none."""
    return next((name for name, test, _ in FORMAT_MARKS if test(head)), None)


def flaw_in(file: Path) -> Problem | None:
    """Why a file is not even text, or not the JSON that it begins like; None if it may be of an unknown format."""
    start = start_of(file)
    if not start:
        return Problem(str(file), "is empty, expected recorded conversations")
    if binary := binary_flaw(start):
        return Problem(str(file), binary)
    if not is_text(start):
        return Problem(str(file), "is not UTF-8 text")
    if not start.lstrip().startswith(JSON_BEGINS) or is_yaml(file):
        return None
    _, first = next(iter(lines(file)))
    return None if _flaw(file, first) is None else _flaw(file, document(file))


def _flaw(file: Path, data: bytes) -> Problem | None:
    """The flaw of a JSON text, with its line."""
    try:
        json_value(data)
    except RecursionError:
        return Problem(str(file), "is nested too deeply")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        at = _BYTE.search(str(error))
        return Problem(str(file), flaw_of(error, data), at and data.count(b"\n", 0, int(at[1])) + 1)
    return None


def no_format_fits(file: Path, head: Head) -> InputError:
    """The error for a file whose format is not recognised: what is in it, the formats, and what each is recognised
    by."""
    looked = "\n".join(f"  {name:<18}  {mark}" for name, _, mark in FORMAT_MARKS)
    rows = "or read its rows as cases with `dataset: {path: ..., map: ...}` in an eval.yaml"
    unknown = f"no known format was recognised{_seen_in(head)}"
    problem = Problem(str(file), f"{unknown}; pass --format NAME, {rows}. Looked for:")
    return InputError(f"{problem}\n{looked}")


def _seen_in(head: Head) -> str:
    """What the objects or the table in a file have, in a few words."""
    names = head.columns or tuple(next(iter(head.records), ()))
    few = ", ".join(name[:_LONG_NAME] for name in names[:_FEW_NAMES]) + (", ..." if len(names) > _FEW_NAMES else "")
    if not names:
        return ""
    return f" in a table with the columns {few}" if head.columns else f" in objects with the keys {few}"


def check(file: Path, format: str, head: Head) -> None:
    """Raises InputError if a file clearly has a format other than the given one, or is no text."""
    tests = {name: test for name, test, _ in FORMAT_MARKS}
    readable = _READABLE.get(format)
    if format not in tests or tests[format](head) or (readable is not None and readable(head)):
        return
    other = detected(head)
    if other is not None:
        raise InputError(Problem(str(file), f"looks like {other}, not {format}"))
    if binary := binary_flaw(start_of(file)):
        raise InputError(Problem(str(file), binary))
