"""The rows of a Letta suite's dataset, JSONL or CSV, streamed."""

from __future__ import annotations

import csv
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.jsonl import advice_on, decoded, lines_of
from evalwright.files.key_paths import as_written
from evalwright.files.paths import unreadable

__all__ = ["SAMPLE_KEYS", "SAMPLE_OBJECTS", "VARIABLES", "DatasetRow", "kind_in_sample", "rows_of"]

VARIABLES = ("agent_args", "rubric_vars", "extra_vars")
SAMPLE_OBJECTS = (*VARIABLES, "metadata")
SAMPLE_KEYS = {"id", "sample_id", "input", "prompt", "ground_truth", "tags", "rubric", "rubric_path", *SAMPLE_OBJECTS}
_CSV_LIMIT = 1 << 30
"""Characters of one cell; the standard library's own limit is 131,072."""
_raising_limit = threading.Lock()


class DatasetRow(NamedTuple):
    """One line of JSONL, or one record of CSV."""

    number: int
    """From 0, counted over the whole file."""
    line: int
    fields: dict[str, Any] | None
    """None if the line is not a sample at all."""
    mistakes: Sequence[tuple[str, str]] = ()
    """Field and message of what could not be read: such a field counts as absent, an input as text."""


def rows_of(path: Path, shown: str) -> Iterator[DatasetRow]:
    """The rows of a file; `shown` names it in messages. Raises InputError if the rest cannot be read."""
    return _csv_rows(path, shown) if path.suffix.lower() == ".csv" else _jsonl_rows(path)


def _jsonl_rows(path: Path) -> Iterator[DatasetRow]:
    for number, (line, content) in enumerate(lines_of(path)):
        try:
            fields = decoded(content)
        except ValueError as error:
            yield DatasetRow(number, line, None, [("", f"malformed JSON: {error}{advice_on(content)}")])
            continue
        if isinstance(fields, dict):
            yield DatasetRow(number, line, fields)
        else:
            yield DatasetRow(number, line, None, [("", f"expected an object, found {kind_in_sample(fields)}")])


def _csv_rows(path: Path, shown: str) -> Iterator[DatasetRow]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _records(_Reader(file), shown)
    except UnicodeDecodeError:
        raise InputError(_undecodable(path, shown)) from None
    except OSError as error:
        raise InputError(Problem(shown, unreadable(path, error))) from error


class _Reader:
    """Python's reader of CSV, without its limit on cells."""

    def __init__(self, file: Iterable[str]) -> None:
        self._rows = csv.reader(file, strict=True)

    @property
    def line_num(self) -> int:
        """The number of lines read so far."""
        return self._rows.line_num

    def __iter__(self) -> _Reader:
        return self

    def __next__(self) -> list[str]:
        with _raising_limit:  # the limit is the whole process's: whoever else reads CSV must find it as it was
            limit = csv.field_size_limit(_CSV_LIMIT)
            try:
                return next(self._rows)
            finally:
                csv.field_size_limit(limit)


def _undecodable(path: Path, shown: str) -> Problem:
    """The first line that is not UTF-8: decoding the whole file does not tell the line."""
    for line, content in lines_of(path):
        try:
            content.decode()
        except UnicodeDecodeError as error:
            return Problem(shown, f"line {line}: byte {error.start + 1} of it is not UTF-8", line)
    return Problem(shown, "cannot be read: it is not UTF-8")


def _near_column(header: Sequence[str]) -> str:
    """The likely mistake in a header without a column `input`."""
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        return "; columns are separated by commas"
    return next((f"; should {name!r} be 'input'?" for name in header if did_you_mean(name.strip(), ["input"])), "")


def _records(reader: _Reader, file: str) -> Iterator[DatasetRow]:
    header = next((cells for cells in reader if cells), None)
    if header is None:
        raise InputError(Problem(file, "the dataset is empty: there is no header row"))
    if "input" not in header and "prompt" not in header:
        raise InputError(
            Problem(
                file,
                f"line 1: there is no column 'input'{_near_column(header)} (the columns are: {', '.join(header)})",
                1,
            )
        )
    if again := [name for name, count in Counter(header).items() if count > 1 and name in SAMPLE_KEYS]:
        raise InputError(Problem(file, f"line 1: the column {name!r} occurs more than once", 1) for name in again)
    readers = [_CELLS.get(name) for name in header]
    number = -1
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield DatasetRow(number + 1, line, None, [("", f"malformed CSV: {error}")])
            return
        if cells is None:
            return
        if not cells:
            continue
        number += 1
        if len(cells) > len(header):
            many = f"found {len(cells)} cells, expected {len(header)}, one for each column"
            yield DatasetRow(number, line, None, [("", many)])
        else:
            yield _decoded_row(number, line, zip(header, readers, cells, strict=False))


def _decoded_row(number: int, line: int, cells: Iterable[tuple[str, _Cell | None, str]]) -> DatasetRow:
    """Cells are text; those of some columns contain JSON, and blank ones are absent."""
    fields: dict[str, Any] = {}
    mistakes: list[tuple[str, str]] = []
    for name, value_of, cell in cells:
        if text := cell.strip():
            try:
                fields[name] = cell if value_of is None else value_of(text)
            except ValueError as error:
                fields[name] = cell if name in ("input", "prompt") else None
                mistakes.append((name, f"invalid JSON: {error}"))
    if "input" not in fields and "prompt" not in fields:
        fields["input"] = ""
        mistakes.append(("input", "the cell is empty"))
    return DatasetRow(number, line, fields, mistakes)


_Cell = Callable[[str], Any]
"""The value of a cell of a column. Raises ValueError if it should be JSON and is not."""


def _text_or_list(text: str) -> Any:
    return decoded(text) if text[0] == "[" and text[-1] == "]" else text


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


_CELLS: dict[str, _Cell] = {
    **dict.fromkeys((*SAMPLE_OBJECTS, "tags"), decoded),
    **dict.fromkeys(("input", "prompt", "ground_truth"), _text_or_list),
    **dict.fromkeys(("id", "sample_id"), _number_or_text),
}


def kind_in_sample(value: Any) -> str:
    """What was found in place of something else; for a list, its first item that is not text."""
    wrong = [item for item in value if not isinstance(item, str)] if isinstance(value, list) else []
    return f"a list with {kind_in_sample(wrong[0])}" if wrong else as_written(value, "an object")
