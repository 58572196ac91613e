"""Rows of CSV, TSV, JSON and JSON Lines files."""

from __future__ import annotations

import codecs
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, counted
from evalwright.files.csv_records import CsvError, csv_records
from evalwright.files.key_paths import bracketed
from evalwright.files.packed import opened
from evalwright.files.strict_json import JsonFlaw, strict_json
from evalwright.formats.native.tables import UTF_8, RowLines, TableDataset, TableRow, separated_by

__all__ = ["CsvRows", "JsonRows", "JsonlRows", "TsvRows", "checked_header"]

_BOM = "\ufeff"


def checked_header(file: Path, names: list[str]) -> list[str]:
    """The names of columns. Raises InputError if some are missing or the same."""
    if not names:
        raise InputError(Problem(str(file), "is empty: expected a header and rows"))
    again = (name for name, count in Counter(names).items() if count > 1 and name.strip())
    wrong = [f"the column {name!r} occurs more than once" for name in again]
    wrong += [f"column {number} has no name" for number, name in enumerate(names, start=1) if not name.strip()]
    if wrong:
        raise InputError(Problem(str(file), message, 1) for message in wrong)
    return names


class CsvRows(TableDataset):
    """A table with commas and a header (RFC 4180), whose cells are text as they stand and may contain line ends."""

    kind = "csv"
    separator = ","

    def rows(self, file: Path) -> Iterator[TableRow]:
        with opened(file) as source, io.TextIOWrapper(source, self._encoding, newline="") as text:
            try:
                yield from self._read(file, text)
            except UnicodeError as error:
                raise InputError(self._decode_problem(file, error)) from None

    def _read(self, file: Path, text: io.TextIOWrapper) -> Iterator[TableRow]:
        records = csv_records(text, self._delimiter or self.separator)
        try:
            _, first = next(records, (1, []))
            header = checked_header(file, first or [])
            for line, cells in records:
                if len(cells) != len(header):
                    flaw = f"expected {counted(len(header), 'cell')}, found {counted(len(cells), 'cell')}"
                    yield TableRow(file, line, {}, flaw=f"{flaw}{separated_by(header)}")
                else:
                    yield TableRow(file, line, dict(zip(header, cells, strict=True)))
        except CsvError as error:
            yield TableRow(file, error.line, {}, flaw=f"is not {self.kind.upper()}: {error}")

    def _decode_problem(self, file: Path, error: Exception) -> Problem:
        if self._encoding != UTF_8:
            return Problem(str(file), f"cannot be read as {self._encoding}: {error}")
        with opened(file) as source:
            for number, line in enumerate(source, start=1):
                if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    why = "is not UTF-8 text: it begins as UTF-16 does, which `encoding: utf-16` reads"
                    return Problem(str(file), why)
                try:
                    line.decode()
                except UnicodeDecodeError as flaw:
                    why = f"is not UTF-8 text ({flaw}); `encoding: latin-1`, for example, reads it as another"
                    return Problem(str(file), why, number)
        return Problem(str(file), f"is not UTF-8 text ({error})")


class TsvRows(CsvRows):
    """A table like `csv`, with tabs in place of commas."""

    kind = "tsv"
    separator = "\t"


class JsonRows(TableDataset):
    """A JSON document: a list of objects, an object with exactly one such list, or the list at `records`."""

    kind = "json"

    def rows(self, file: Path) -> Iterator[TableRow]:
        with opened(file) as source:
            data = source.read()
        if not data.strip():
            raise InputError(Problem(str(file), "is empty"))
        listed, key = self._listed_rows(file, _strict(file, data, None))
        lines = RowLines(file, key, len(listed))
        for number, value in enumerate(listed):
            yield _row(file, None, value, f"{key}[{number}]", lines)

    def _listed_rows(self, file: Path, document: Any) -> tuple[list[Any], str]:
        if self._records is not None:
            found = document
            for step in self._records.split("."):
                found = found.get(step) if isinstance(found, dict) else None
            if not isinstance(found, list):
                raise InputError(Problem(str(file), "expected the list of rows", key=self._records))
            return found, self._records
        if isinstance(document, list):
            return document, ""
        lists = {key: value for key, value in document.items() if _rows_in(value)} if isinstance(document, dict) else {}
        if len(lists) != 1:
            which = f"; `records` says which of {', '.join(lists)}" if lists else ""
            raise InputError(
                Problem(str(file), f"expected an array of objects, or an object with one such list{which}")
            )
        key, value = next(iter(lists.items()))
        return value, key


class JsonlRows(TableDataset):
    """One object a line."""

    kind = "jsonl"

    def rows(self, file: Path) -> Iterator[TableRow]:
        with opened(file) as source:
            for number, line in enumerate(source, start=1):
                text = line.removeprefix(_BOM.encode()) if number == 1 else line
                if not text.strip():
                    continue
                try:
                    yield _row(file, number, _strict(file, text.rstrip(b"\r\n"), number))
                except InputError as error:
                    problem = error.problems[0]
                    yield TableRow(file, number, {}, problem.key, problem.message)


def _row(file: Path, line: int | None, value: Any, key: str = "", document: RowLines | None = None) -> TableRow:
    if isinstance(value, dict):
        return TableRow(file, line, value, key, "", document)
    return TableRow(file, line, {}, key, "expected an object", document)


def _rows_in(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _strict(file: Path, data: bytes, line: int | None) -> Any:
    """Strict JSON; `line` is its line number. Raises InputError."""
    try:
        return strict_json(data)
    except RecursionError:
        raise InputError(Problem(str(file), "is nested too deeply", line)) from None
    except UnicodeDecodeError:
        raise InputError(Problem(str(file), "is not UTF-8 text", line)) from None
    except JsonFlaw as flaw:
        many = "; a file with a value on each line is of `type: jsonl`" if line is None and _is_line(data) else ""
        message = f"is not valid JSON: {flaw}{many}"
        raise InputError(Problem(str(file), message, line or flaw.line, bracketed(flaw.place))) from None


def _is_line(data: bytes) -> bool:
    """Whether the first line is a value of its own."""
    try:
        return isinstance(strict_json(data.partition(b"\n")[0]), dict)
    except (RecursionError, UnicodeDecodeError, JsonFlaw):
        return False
