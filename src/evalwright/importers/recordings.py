"""The records of a JSON or JSON Lines file, read twice without being kept: once to check, once to convert."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.packed import is_packed, opened
from evalwright.files.paths import unreadable
from evalwright.importers.call_payloads import is_message_list
from evalwright.importers.mapping import MISSING, RecordMapping
from evalwright.importers.placed_records import has_lines
from evalwright.importers.record_values import described
from evalwright.importers.recorded_replies import completion_reply
from evalwright.importers.sources import BOM, lines

__all__ = ["Json", "RecordingPlace", "Recordings", "open_recordings"]

Json = bytes | memoryview


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
    """The records of a file: its lines, of which an empty file has none, else the list in one JSON document. A list of
    messages is one record.

    Raises InputError if the file cannot be read or has other content.
    """
    try:
        if has_lines(source) or next(lines(source), None) is None:
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
            skipped = len(BOM) if line == 1 and text.startswith(BOM) else 0
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
            data = file.read().removeprefix(BOM)
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
            records = msgspec.json.decode(data, type=list[msgspec.Raw])
            if "messages" in mapping.stated or not is_message_list([msgspec.json.decode(r) for r in records[:1]]):
                return records, ""
            return [msgspec.Raw(b'{"messages":' + data + b"}")], None
        document = msgspec.json.decode(data)
    except RecursionError:
        raise InputError(Problem(file, "is nested too deeply")) from None
    except ValueError as error:
        raise InputError(Problem(file, f"is not valid JSON: {error}")) from None
    parts = ("messages", "reply") if isinstance(document, dict) else ()
    if any(mapping.find(document, part)[0] is not MISSING for part in parts) or completion_reply(document) is not None:
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
