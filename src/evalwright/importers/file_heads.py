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
from evalwright.importers.blocks import dictionaries
from evalwright.importers.document_parts import document_beginning, document_bytes
from evalwright.importers.sources import document, json_value, lines, stem

__all__ = ["Head", "columns_of", "head_of", "is_yaml"]

_LINES = 20
_BYTES = 64 * 1024
_SPACE = 1024
"""Bytes in which a document must begin."""
_KEY = re.compile(rb"^\w+:(\s|$)", re.MULTILINE)
_ZIP = b"PK\x03\x04"


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
    whole = _beginning(file)
    if whole is not None:
        return _head_of_document(whole)
    records: list[dict[str, Any]] = []
    size = 0
    for number, text in lines(file):
        if number == 1 and text.startswith(_ZIP):
            return Head(zip=True)
        size += len(text)
        value = _decoded(text)
        if isinstance(value, list) or (value is None and not records):
            break
        if isinstance(value, dict):
            records.append(value)
        if len(records) >= _LINES or size > _BYTES:
            break
    if len(records) > 1:
        return Head(records)
    whole = _decoded(document(file)) or _yaml(file)
    if whole is None:
        return Head(records, columns=() if records else columns_of(file))
    return _head_of_document(whole)


def _head_of_document(whole: Any) -> Head:
    return Head(list(dictionaries(whole))[:_LINES] if isinstance(whole, list) else [whole], whole)


def _beginning(file: Path) -> Any:
    """The one JSON document in a file, without most of its long lists: it may be larger than the memory."""
    with document_bytes(file) as data:
        try:
            return document_beginning(data, _LINES) if bytes(data[:_SPACE]).lstrip()[:1] in (b"{", b"[") else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


def _decoded(text: bytes) -> Any:
    try:
        value = json_value(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def is_yaml(file: Path) -> bool:
    """Whether its name says that it is YAML."""
    return Path(stem(file, with_suffix=True)).suffix.lower() in (".yaml", ".yml")


def _yaml(file: Path) -> Any:
    """What the document in a file is, if its name or a key at its left margin says that it is YAML."""
    named = is_yaml(file)
    data = document(file)
    if not named and not _KEY.search(data, 0, _BYTES):
        return None
    from evalwright.files.yaml import parse

    try:
        value = parse(data, str(file), "true_false").value
    except InputError:
        if named:
            raise
        return None
    return value if isinstance(value, dict | list) else None


def columns_of(file: Path) -> tuple[str, ...]:
    """The cells of the first line of a file, if it is one of CSV with several. Raises InputError."""
    _, first = next(iter(lines(file)), (1, b""))
    try:
        _, cells = next(csv_records([first.decode()]), (1, []))
    except (CsvError, UnicodeDecodeError):
        return ()
    return tuple(cells) if len(cells) > 1 else ()
