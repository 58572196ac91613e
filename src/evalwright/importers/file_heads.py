"""The beginning of a file that may be a recording: its first records, or its document without most of its lists."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError
from evalwright.files.csv_records import CsvError, csv_records
from evalwright.files.packed import is_packed, opened
from evalwright.importers.document_parts import document_beginning, document_bytes
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import BOM, document, json_value, lines, stem

__all__ = ["JSON_BEGINS", "Head", "columns_of", "head_of", "is_yaml", "start_of"]

_LINES = 20
_BYTES = 64 * 1024
_KEY = re.compile(rb"^\w+:(\s|$)", re.MULTILINE)
_ZIP = b"PK\x03\x04"
JSON_BEGINS = (b"{", b"[")


@dataclass(slots=True)
class Head:
    """The beginning of a file."""

    records: list[dict[str, Any]] = field(default_factory=list)
    """The objects on its first lines or in its list, or the single one."""
    whole: Any = None
    """The document, if it is one."""
    columns: tuple[str, ...] = ()
    """The cells of its first line, if it may be a table."""
    zip: bool = False

    def any(self, test: Callable[[dict[str, Any]], bool]) -> bool:
        return any(map(test, self.records))

    @property
    def mapping(self) -> dict[str, Any]:
        if isinstance(self.whole, dict):
            return self.whole
        return self.records[0] if len(self.records) == 1 else {}


def head_of(file: Path) -> Head:
    """The beginning of a file. Raises InputError if it cannot be read."""
    start = start_of(file)
    if start.startswith(_ZIP):
        return Head(zip=True)
    if not start.lstrip().startswith(JSON_BEGINS):
        return _head_of_text(file, start)
    # of a packed file, which may be far larger than it looks, the lines come first: they have a greatest length
    whole = None if is_packed(file) else _beginning(file)
    if whole is not None:
        return _head_of_document(whole)
    records: list[dict[str, Any]] = []
    size = 0
    for _, text in lines(file):
        size += len(text)
        value = _decoded_line(text)
        if isinstance(value, list) or (value is None and not records):
            break
        if isinstance(value, dict):
            records.append(value)
        if len(records) >= _LINES or size > _BYTES:
            break
    if len(records) > 1:
        return Head(records)
    if (whole := _decoded_line(document(file))) is not None:
        return _head_of_document(whole)
    return Head(records) if records else _head_of_text(file, start)


def start_of(file: Path) -> bytes:
    """The first bytes of a file that are not blank; the last character may be incomplete. Raises InputError if it
    cannot be read."""
    with opened(file) as source:
        start = source.read(_BYTES).removeprefix(BOM)
        while start.isspace():
            start = source.read(_BYTES)
        return start


def _head_of_text(file: Path, start: bytes) -> Head:
    """The beginning of a file that is no JSON: YAML is read, and of anything else only the start."""
    whole = _yaml(file, start)
    return Head(columns=_columns_in(start)) if whole is None else _head_of_document(whole)


def _head_of_document(whole: Any) -> Head:
    return Head(list(dictionaries(whole))[:_LINES] if isinstance(whole, list) else [whole], whole)


def _beginning(file: Path) -> Any:
    """The one JSON document in a file, without most of its long lists: it may be larger than the memory."""
    with document_bytes(file) as data:
        try:
            return document_beginning(data, _LINES)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


def _decoded_line(text: bytes) -> Any:
    try:
        value = json_value(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def is_yaml(file: Path) -> bool:
    """Whether its name says that it is YAML."""
    return Path(stem(file, with_suffix=True)).suffix.lower() in (".yaml", ".yml")


def _yaml(file: Path, start: bytes) -> Any:
    """What the document in a file is, if its name or a key at its left margin says that it is YAML."""
    named = is_yaml(file)
    if not named and not _KEY.search(start):
        return None
    from evalwright.files.yaml import parse

    try:
        value = parse(document(file), str(file), "true_false").value
    except InputError:
        if named:
            raise
        return None
    return value if isinstance(value, dict | list) else None


def columns_of(file: Path) -> tuple[str, ...]:
    """The cells of the first line of a file, if it is one of CSV with several. Raises InputError."""
    return _columns_in(start_of(file))


def _columns_in(start: bytes) -> tuple[str, ...]:
    first = next((line for line in start.split(b"\n") if line.strip()), b"")
    try:
        _, cells = next(csv_records([first.decode()]), (1, []))
    except (CsvError, UnicodeDecodeError):
        return ()
    return tuple(cells) if len(cells) > 1 else ()
