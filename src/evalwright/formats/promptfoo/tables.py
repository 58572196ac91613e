"""Tables in CSV files and Excel workbooks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from evalwright.errors import InputError, counted
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.values import template_text
from evalwright.session import environment

__all__ = ["DELIMITER", "CsvRow", "cell_number", "rows_of", "rows_of_workbook"]


class CsvRow(NamedTuple):
    place: str
    """File and line."""
    cells: list[str]
    line: int = 0


DELIMITER = "PROMPTFOO_CSV_DELIMITER"
"""The variable with the character between cells, if it is not a comma."""
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_OPEN = re.compile(r'"(?:[^"]++|"")*+\Z')


def rows_of(text: str, file: str, origin: Origin) -> tuple[list[str], Iterator[CsvRow]]:
    """The header of a table, and its rows; rows that do not match the header are reported."""
    delimiter = environment().get(DELIMITER) or ","
    if len(delimiter) != 1:
        origin.report(f"{DELIMITER}: expected one character, found {as_written(delimiter)}")
        return [], iter(())
    records = _records(text, file, origin, delimiter)
    header = next(records, CsvRow("", [])).cells
    return header, _fitting(records, header, origin, "a comma" if delimiter == "," else repr(delimiter))


def rows_of_workbook(content: bytes, file: str, sheet: str | None, origin: Origin) -> tuple[list[str], list[CsvRow]]:
    """The same for a sheet, whose cells are texts as JavaScript writes them, without blanks around them."""
    from evalwright.files.workbooks import workbook_rows

    try:
        header, *rows = (
            ["" if value is None else template_text(value).strip() for value in row]
            for row in workbook_rows(content, file, sheet)
        )
    except InputError as error:
        origin.findings.add(error)
        return [], []
    for number, cells in enumerate(rows, 2):
        if not any(cells):
            origin.warn(f"{file}:{number}: the row is empty, and so are all variables of its test")
    return header, [CsvRow(f"{file}:{number}", cells, number) for number, cells in enumerate(rows, 2)]


def cell_number(cell: str) -> float | None:
    """The number in a cell; None if it is no finite decimal number."""
    number = float(cell) if _NUMBER.fullmatch(cell) else math.inf
    return number if math.isfinite(number) else None


@cache
def _cell(delimiter: str) -> re.Pattern[str]:
    """As promptfoo reads cells: a quotation mark that does not enclose a whole cell is an ordinary character."""
    ends = rf"{re.escape(delimiter)}\r\n"
    return re.compile(rf'"((?:[^"]++|"")*+)"(?=[{ends}]|\Z)|[^{ends}]*+')


def _records(text: str, file: str, origin: Origin, delimiter: str) -> Iterator[CsvRow]:
    cell = _cell(delimiter)
    at, line, counted_to = 0, 1, 0
    while at < len(text):
        line, counted_to = line + text.count("\n", counted_to, at), at
        place, cells = f"{file}:{line}", list[str]()
        while True:
            if (match := cell.match(text, at)) is None:  # it matches the empty text, too
                return
            if match[1] is None and _OPEN.match(text, at):
                origin.report(f"{place}: a quotation mark is never closed")
                return
            cells.append(match[0] if match[1] is None else match[1].replace('""', '"'))
            at = match.end()
            if not text.startswith(delimiter, at):
                break
            at += 1
        at += 2 if text.startswith("\r\n", at) else 1
        yield CsvRow(place, cells, line)


def _fitting(records: Iterator[CsvRow], header: Sequence[str], origin: Origin, what: str) -> Iterator[CsvRow]:
    for row in records:
        if len(row.cells) == len(header):
            yield row
        elif row.cells != [""]:
            more = len(row.cells) > len(header)
            hint = f"; {what} within a cell needs quotation marks around the cell" if more else ""
            found = f"found {counted(len(row.cells), 'cell')}, expected {len(header)}, as the header has"
            origin.report(f"{row.place}: {found}{hint}")
