"""The records of a JSON or JSON Lines file, read twice without being kept: once to check, once to convert."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.numbers import is_number
from evalwright.files.packed import is_packed, opened, unpacked_name
from evalwright.files.paths import unreadable
from evalwright.importers.mapping import MISSING, RecordMapping

__all__ = [
    "RECORDING_DEPTH",
    "Json",
    "RecordingPlace",
    "Recordings",
    "described",
    "in_utc",
    "moment",
    "numbers_in_range",
    "open_recordings",
    "too_deep",
]

_BOM = b"\xef\xbb\xbf"
_LINES = (".jsonl", ".ndjson")

Json = bytes | memoryview

RECORDING_DEPTH = 100
"""Levels of nesting that a record may have; deeper ones could be read, but not written again."""


@dataclass(frozen=True, slots=True)
class RecordingPlace:
    """Where a record is: `line` is 1-based and set for JSON Lines, `key` is its path in a JSON document."""

    number: int
    """Position among the records, from 0."""
    line: int | None = None
    key: str = ""
    offset: int = 0
    size: int = 0

    def below(self, key: str) -> str:
        """The path of a value inside the record, as seen from the file."""
        return key if not self.key else f"{self.key}.{key}" if key else self.key


class Recordings(AbstractContextManager["Recordings"], Protocol):
    """A file of records: iterating gives each place with its JSON, `text` reads the JSON at a place again."""

    def __iter__(self) -> Iterator[tuple[RecordingPlace, Json]]: ...

    def text(self, place: RecordingPlace) -> Json: ...


def open_recordings(source: Path, mapping: RecordMapping) -> Recordings:
    """The records of a file: the lines of `.jsonl` and `.ndjson` files, else the list in one JSON document.

    Raises InputError if the file cannot be read or has other content.
    """
    try:
        if unpacked_name(source).suffix.lower() in _LINES:
            return _Lines(_unpacked_file(source))
        return _Document(source, mapping)
    except OSError as error:
        raise InputError(Problem(str(source), unreadable(source, error))) from None


def _unpacked_file(source: Path) -> BinaryIO:
    """A seekable file, unpacked if necessary."""
    if not is_packed(source):
        return source.open("rb")
    with ExitStack() as unless_done:
        file = unless_done.enter_context(tempfile.TemporaryFile())
        with opened(source) as packed:
            file.writelines(iter(packed.readline, b""))  # line by line, because a line has a greatest length
        file.seek(0)
        unless_done.pop_all()  # the caller closes it
    return file


class _Lines:
    """One record per line; only positions are kept in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[tuple[RecordingPlace, Json]]:
        self._file.seek(0)
        offset, number = 0, 0
        for line, text in enumerate(self._file, start=1):
            skipped = len(_BOM) if line == 1 and text.startswith(_BOM) else 0
            if text[skipped:].strip():
                yield RecordingPlace(number, line, "", offset + skipped, len(text) - skipped), text[skipped:]
                number += 1
            offset += len(text)

    def text(self, place: RecordingPlace) -> bytes:
        self._file.seek(place.offset)
        return self._file.read(place.size)


class _Document:
    """One JSON document: a list of records, an object with such a list, or one record."""

    def __init__(self, source: Path, mapping: RecordMapping) -> None:
        with opened(source) as file:
            data = file.read().removeprefix(_BOM)
        self._records, self._key = _split(str(source), data, mapping)

    def __enter__(self) -> _Document:
        return self

    def __exit__(self, *_: object) -> None:
        self._records.clear()

    def __iter__(self) -> Iterator[tuple[RecordingPlace, Json]]:
        for number, record in enumerate(self._records):
            key = "" if self._key is None else f"{self._key}[{number}]"
            yield RecordingPlace(number, None, key), memoryview(record)

    def text(self, place: RecordingPlace) -> Json:
        return memoryview(self._records[place.number])


def _split(file: str, data: bytes, mapping: RecordMapping) -> tuple[list[msgspec.Raw], str | None]:
    """The raw records and the key of their list, which is None if the document itself is the only record."""
    try:
        if "records" in mapping.stated:
            return _listed_records(file, msgspec.json.decode(data), mapping)
        if data.lstrip()[:1] == b"[":
            return msgspec.json.decode(data, type=list[msgspec.Raw]), ""
        document = msgspec.json.decode(data)
    except RecursionError:
        raise InputError(Problem(file, "is nested too deeply")) from None
    except ValueError as error:
        raise InputError(Problem(file, f"is not valid JSON: {error}")) from None
    if isinstance(document, dict) and mapping.find(document, "messages")[0] is not MISSING:
        return [msgspec.Raw(data)], None
    raise InputError(Problem(file, f"expected a list of records, found {_outline(document)}"))


def _listed_records(file: str, document: Any, mapping: RecordMapping) -> tuple[list[msgspec.Raw], str]:
    records, path = mapping.find(document, "records")
    if not isinstance(records, list):
        outline = "nothing" if records is MISSING else _outline(records)
        raise InputError(Problem(file, f"expected the list of records, found {outline}", key=path))
    return [msgspec.Raw(msgspec.json.encode(record)) for record in records], path


def _outline(value: Any) -> str:
    if isinstance(value, dict):
        lists = [str(key) for key, item in value.items() if isinstance(item, list)]
        hint = f" (map records= to the list, perhaps {lists[0]!r})" if lists else ""
        return f"an object with the keys {', '.join(map(str, value))[:200] or '(none)'}{hint}"
    return described(value)


def too_deep(value: Any) -> bool:
    """Whether a value is nested deeper than RECORDING_DEPTH."""
    for inner in value.values() if type(value) is dict else _inner(value):
        if type(inner) in _NESTED:
            break
    else:
        return False  # most are flat, and this is called for each
    level = [value]
    for _ in range(RECORDING_DEPTH + 1):
        nested = [item for item in level if isinstance(item, _NESTED)]
        if not nested:
            return False
        level = [item for entry in nested for item in _inner(entry)]
    return True


_NESTED = (dict, list)


def _inner(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def described(value: Any) -> str:
    """A value in a few words, for messages that say what was found."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and len(repr(value)) <= 40:
        return f"the {'string' if isinstance(value, str) else 'number'} {value!r}"
    kinds = {type(None): "nothing", bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def in_utc(time: datetime) -> datetime | None:
    """The same time in UTC; a time without a zone is taken as UTC. None if the year would be before 1 or after 9999."""
    try:
        return time if time.tzinfo is UTC else time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        return None


@contextmanager
def numbers_in_range(files: Sequence[Path]) -> Iterator[None]:
    """Raise InputError for a number in the files that is too large: JSON allows any, and costs, times and scores are
    computed with."""
    try:
        yield
    except OverflowError as error:
        raise InputError([Problem(str(file), f"has a number that is too large: {error}") for file in files]) from error


def moment(value: Any, per_second: int = 1) -> datetime | None:
    """A time from ISO 8601 text (UTC if it has no zone) or a number since 1970, of seconds unless there are more
    `per_second`; None for anything else."""
    try:
        if isinstance(value, str) and value:
            return in_utc(datetime.fromisoformat(value))
        if is_number(value):
            return datetime.fromtimestamp(value / per_second, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
