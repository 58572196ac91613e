"""Datasets that are rows, in one file or several, packed or not.

Text stays text: `007` and `true` in a cell of CSV are no number and no boolean, unless `types` says what a column is.
Rows are streamed, except those of a JSON document.
"""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evalwright.errors import InputError, Problem, counted, did_you_mean
from evalwright.files.key_paths import Place, as_written, bracketed, steps_of
from evalwright.files.packed import opened
from evalwright.files.strict_json import json_lines_of
from evalwright.formats.native.cases import FileCase, ReportProblem, checked, make_plain, take_recording
from evalwright.formats.native.columns import Conversions, MappedRows
from evalwright.formats.native.datasets import Dataset, ReadCase

__all__ = ["UTF_8", "RowLines", "TableDataset", "TableRow", "files_of", "separated_by"]

UTF_8 = "utf-8-sig"
_SEPARATORS = (";", "\t", "|", ",")


class TableRow(NamedTuple):
    """One record of a file, and where it begins."""

    file: Path
    line: int | None
    values: dict[str, Any]
    key: str = ""
    flaw: str = ""
    """Why this is not a row, although the other rows can be read."""
    document: RowLines | None = None
    """Finds the lines of the rows of a document."""

    @property
    def begins(self) -> int | None:
        """The line on which it begins, if its file has lines."""
        return self.line if self.document is None else self.document.line(self.key)


class RowLines:
    """The lines on which the rows of a JSON document begin: found by reading it again when first needed."""

    def __init__(self, file: Path, listed: str, number: int) -> None:
        self._file, self._listed, self._number = file, listed, number
        self._lines: dict[str, int] = {}

    def line(self, key: str) -> int | None:
        if not self._lines:
            with opened(self._file) as source:
                rows = [(*steps_of(self._listed), i) for i in range(self._number)]
                self._lines = {bracketed(place): line for place, line in json_lines_of(source.read(), rows).items()}
        return self._lines.get(key)


def files_of(pattern: Path) -> list[Path]:
    """The files that a path or a glob names, in sorted order; folders only if it names nothing else."""
    if os.path.isfile(pattern):
        return [pattern]
    files = sorted(map(Path, glob.glob(str(pattern), recursive=True)))  # noqa: PTH207
    return [*filter(os.path.isfile, files)] or files


class TableDataset(Dataset):
    """Cases from the rows of some files."""

    kind = ""
    of_rows = True
    """Makes `validate` show what the first row was read as."""

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(path, name, config)
        self.row_files: Sequence[Path] = config.get("files") or [path]
        problems = [*_wrong_kinds(config)]
        self._mapped = _reporting_mistakes(MappedRows, config.get("map"), None, problems)
        self._conversions = _reporting_mistakes(Conversions, config.get("types") or {}, {}, problems)
        encoding = found if isinstance(found := config.get("encoding"), str) and found else UTF_8
        self._encoding: str = _reporting_mistakes(_known_encoding, encoding, UTF_8, problems)
        if problems:
            raise InputError(problems)
        self._delimiter: str | None = config.get("delimiter")
        self._records: str | None = config.get("records")
        self._source = bool(config.get("source"))
        self._missing: Counter[str] = Counter()
        self._doubts: list[Problem] = []

    def rows(self, file: Path) -> Iterator[TableRow]:
        """The rows of one file. Raises InputError if it is not a table."""
        raise NotImplementedError

    def records(self) -> Iterator[tuple[Any, ReportProblem]]:
        for row, raw, problems in self._assembled_cases():
            if not problems:
                yield raw, partial(_problem, row)

    def found(self) -> Iterator[ReadCase]:
        for row, raw, problems in self._assembled_cases():
            report: ReportProblem = partial(_problem, row)
            case: FileCase | None = None
            if not problems:
                case, problems = checked(raw, report)
            if case is not None:
                try:
                    make_plain(case)
                    problems = take_recording(case, report, needed=self._recordings_needed)
                except (ValueError, RecursionError):  # Python reads JSON of more levels than can be written
                    problems = [report((), "is nested too deeply")]
            yield (None if problems else case), problems, report

    def unknown_keys(self) -> Iterator[Problem]:
        yield from super().unknown_keys()
        yield from self._doubts
        for column, number in self._missing.items():
            message = f"{counted(number, 'row')} without the column {column!r}: read as null"
            yield Problem(str(self._path), message)
        for column in self._mapped.unread:
            yield Problem(str(self._path), f"nothing reads the column {column!r}: only those named input are the input")

    def _assembled_cases(self) -> Iterator[tuple[TableRow, dict[str, Any], list[Problem]]]:
        """Each row as the plain data of a case, with the mistakes in it."""
        self._missing.clear()
        self._mapped.unread.clear()
        position, seen, header = 0, dict[str, None](), None
        for file in self.row_files:
            first = True
            for row in self.rows(file):
                if row.flaw:
                    first = False
                    yield row, {}, [_problem(row, (), row.flaw)]
                    continue
                if first and self._has_header(file):
                    if header is None:
                        self._doubts = [*self._doubt_header(file, [*row.values])]
                    header = self._same_header(file, [*row.values], header)
                first = False
                position += 1
                seen.update(dict.fromkeys(row.values))
                values, problems = self._conversions.of(row.values, partial(_problem, row))
                where = {"file": row.file.name, **({} if row.line is None else {"line": row.line})}
                more = {"metadata.source": where} if self._source else {}
                raw, absent, mistakes = self._mapped.case(values, position, partial(_problem, row), more)
                problems += mistakes
                self._missing.update(absent)
                yield row, raw, problems
            if first:
                raise InputError(Problem(str(file), "has no rows"))
        if position:
            self._check_columns(seen, position)

    def _has_header(self, file: Path) -> bool:
        """Whether all rows of a file have the same columns."""
        return self.kind in ("csv", "tsv", "parquet", "xlsx")

    def _doubt_header(self, file: Path, header: Sequence[str]) -> Iterator[Problem]:
        """Names that nearly mean a part of a case, and one cell with another separator, probably meant as several."""
        line = 1 if self.kind in ("csv", "tsv") else None
        for name, part in self._mapped.misnamed(header):
            message = f"the column {name!r} is not {part!r}, the part of a case"
            yield Problem(str(file), message, line)
        if line and (hint := separated_by(header)):
            yield Problem(str(file), f"has one column, {header[0]!r}{hint}", 1)

    def _same_header(self, file: Path, names: list[str], header: list[str] | None) -> list[str]:
        if header is not None and names != header:
            message = f"expected the columns of the first file ({_listed(header)}), found {_listed(names)}"
            raise InputError(Problem(str(file), message, 1))
        return names

    def _check_columns(self, seen: Mapping[str, Any], rows: int) -> None:
        """Raises InputError for each mapped or typed column that no row has."""
        wrong = [column for column, absent in self._missing.items() if absent == rows]
        wrong += [column for column in self._conversions.columns if column not in seen]
        if wrong:
            has = _listed(list(seen))
            raise InputError(
                Problem(str(self._path), f"has no column {column!r}{did_you_mean(column, seen)} (it has {has})")
                for column in dict.fromkeys(wrong)
            )

    def _duplicates(self, hashes: set[int]) -> Iterator[Problem]:
        places: dict[str, Problem] = {}
        for case, _, report in self.found():
            if case is None or hash(case.id) not in hashes:
                continue
            place = report((), "")
            if case.id in places:
                first = places[case.id]
                at = f"{first.file}:{first.line}" if first.line is not None else f"{first.file} {first.key}".rstrip()
                yield report((), f"duplicate case id {case.id!r}, which {at} has, too")
            else:
                places[case.id] = place


def separated_by(header: Sequence[str]) -> str:
    """A question to the user if the only cell of a header contains another separator."""
    name = header[0] if len(header) == 1 else ""
    separator = next((character for character in _SEPARATORS if character in name), None)
    return "" if separator is None else f": does `delimiter: {json.dumps(separator)}` separate the columns?"


T = TypeVar("T")


def _reporting_mistakes(make: Callable[[Any], T], value: Any, otherwise: Any, problems: list[Problem]) -> T:
    """What a value of the section means; what `otherwise` does after a report of mistakes in it."""
    try:
        return make(value)
    except InputError as error:
        problems += error.problems
        return make(otherwise)


def _wrong_kinds(config: Mapping[str, Any]) -> Iterator[Problem]:
    for key in ("delimiter", "encoding", "records"):
        if not isinstance(text := config.get(key), str | None):
            yield Problem("", f"expected text, found {as_written(text)}", key=f"dataset.{key}")
    if (delimiter := config.get("delimiter")) is not None and delimiter in ("", '"', "\n", "\r"):
        yield Problem("", f"expected the text between cells, found {as_written(delimiter)}", key="dataset.delimiter")
    if not isinstance(text := config.get("source"), bool | None):
        yield Problem("", f"expected true or false, found {as_written(text)}", key="dataset.source")


def _known_encoding(name: str) -> str:
    try:
        "x".encode(name)  # also of those that are known, some are of no text
    except LookupError:
        message = f"expected an encoding such as utf-8, latin-1 or cp1252, found {as_written(name)}"
        raise InputError(Problem("", message, key="dataset.encoding")) from None
    return name


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns[:20]) + (", ..." if len(columns) > 20 else "")


def _problem(row: TableRow, steps: Place, message: str) -> Problem:
    key = f"{row.key}{'.' if row.key and steps else ''}{bracketed(steps)}"
    return Problem(str(row.file), message, row.begins, key)
