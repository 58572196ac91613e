"""Repeated and empty ids, which NorthStar's files may have: they are made unique."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.bulk import Repeats
from evalwright.files.jsonl import lines_of
from evalwright.files.key_paths import Place, bracketed
from evalwright.files.plain import clean_text
from evalwright.formats.northstar.records import Record, parsed_line, records_of
from evalwright.model.cell import case_key

__all__ = ["Occurrences", "ambiguous_ids", "oddities"]

_NUMBERED = re.compile(r"#\d+$")
_NO_ID = hash("")


class _Row(msgspec.Struct, gc=False):
    id: str


_decode = msgspec.json.Decoder(_Row).decode


def ambiguous_ids(path: Path, *, lines: bool) -> set[int]:
    """The hashes of repeated and empty ids, in this process. Raises InputError for a file that cannot be read."""
    repeats, empty = Repeats(), set[int]()
    for case_id, _, _ in _ids(path, lines):
        repeats.add(case_id)
        if not case_id:
            empty = {_NO_ID}
    return repeats.hashes() | empty


class Occurrences:
    """Numbers the rows with such an id, and with one that looks numbered, so that no two cases have the same key."""

    def __init__(self, ambiguous: Set[int]) -> None:
        self._ambiguous = ambiguous
        self._seen: Counter[str] = Counter()

    def of(self, case_id: str) -> int | msgspec.UnsetType:
        """The number of this row among those with its id, from 1; unset if the id is unique."""
        if not self._ambiguous:
            return msgspec.UNSET
        numbered = not case_id or _NUMBERED.search(case_id) is not None
        if not numbered and hash(case_id) not in self._ambiguous:
            return msgspec.UNSET
        self._seen[case_id] += 1
        number = self._seen[case_id]
        return number if numbered or number > 1 else msgspec.UNSET


def oddities(path: Path, ambiguous: Set[int], *, lines: bool) -> Iterator[Problem]:
    """Each row whose id is empty or an earlier row's, and the name of its case."""
    occurrences = Occurrences(ambiguous)
    for case_id, line, at in _ids(path, lines) if ambiguous else ():
        number = occurrences.of(case_id)
        if number is msgspec.UNSET or (case_id and number == 1):
            continue
        what = "the id occurs more than once" if case_id else "the id is empty"
        message = f"{what}: this row is the case {case_key(case_id, number)!r}"
        yield Problem(str(path), message, line, bracketed((*at, "id")))


def _ids(path: Path, lines: bool) -> Iterator[tuple[str, int | None, Place]]:
    """The ids in a file, each with the line or the place of its record.

    Other mistakes are reported once the file has been read.
    """
    if not lines:
        for record in records_of(path, lines=False):
            yield from _id_in(record)
        return
    for index, (number, line) in enumerate(lines_of(path)):
        try:
            yield _decode(line).id, number, ()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # bad, or in Python's own dialect of JSON
            with suppress(InputError):
                yield from _id_in(Record(parsed_line(path, number, line), index, number))


def _id_in(record: Record) -> Iterator[tuple[str, int | None, Place]]:
    case_id = record.value.get("id") if isinstance(record.value, dict) else None
    if isinstance(case_id, str):
        yield clean_text(case_id, "id", []), record.line, record.at
