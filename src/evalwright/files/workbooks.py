"""Sheets of Excel workbooks, read with openpyxl."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean

__all__ = ["workbook_rows"]

_MIDNIGHT = time()
_MOST_CELLS = 50_000_000
_LARGEST = 2**53
"""Up to it, a cell contains every whole number exactly."""


def workbook_rows(content: bytes, file: str, sheet: str | None = None) -> list[list[Any]]:
    """The rows of a sheet, by name or number from 1, by default the first; the first row is the header.

    Cells are null, booleans, numbers or text, in all rows up to the last one of the sheet with a value. Whole numbers
    are integers; dates and times are ISO 8601 text; of a formula, it is the value that was stored with it. Raises
    InputError with every cell that has no value of its own: merged ones, formulas that failed or whose value is not
    stored.
    """
    try:
        import openpyxl
    except ImportError:
        install = "Excel workbooks are read with openpyxl: pip install 'evalwright[excel]'"
        raise InputError(Problem(file, install)) from None
    try:
        stored = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        written = openpyxl.load_workbook(io.BytesIO(content))
    except Exception as error:  # of zip files, of XML and of openpyxl's own types
        raise InputError(Problem(file, f"cannot be read as an Excel workbook (.xlsx): {error}")) from None
    name = _sheet_name([table.title for table in stored.worksheets], file, sheet)
    table = stored[name]
    if problems := [*_unreadable_cells(table, written[name], file)]:
        raise InputError(problems)
    values = {place: _plain_value(cell.value) for place, cell in _cells(table).items() if cell.value is not None}
    height, width = (max((place[i] for place in values), default=0) for i in (0, 1))
    if height < 2:
        raise InputError(Problem(file, f"the sheet {name!r} has no rows: expected a header and rows"))
    if height * width > _MOST_CELLS:
        size = f"{height:,} rows of {width:,} cells, expected at most {_MOST_CELLS:,} cells"
        raise InputError(Problem(file, f"the sheet {name!r} has {size}: is there a stray value far from the others?"))
    rows: list[list[Any]] = [[None] * width for _ in range(height)]
    for (row, column), value in values.items():
        rows[row - 1][column - 1] = value
    return rows


def _cells(sheet: Any) -> dict[tuple[int, int], Any]:
    """The cells that a sheet has. Its public members would make all up to the last one with a format."""
    cells: dict[tuple[int, int], Any] = sheet._cells
    return cells


def _sheet_name(names: list[str], file: str, sheet: str | None) -> str:
    if sheet is None and names:
        return names[0]
    if sheet in names:
        return sheet
    if sheet and sheet.isdecimal() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    has = ", ".join(names) or "none"
    raise InputError(Problem(file, f"there is no sheet {sheet!r}{did_you_mean(sheet or '', names)} (there are: {has})"))


def _unreadable_cells(stored: Any, written: Any, file: str) -> Iterator[Problem]:
    for merged in stored.merged_cells.ranges:
        yield Problem(file, f"the cells {merged.coord} are merged: expected a value in each")
    sources = _cells(written)
    for place, cell in _cells(stored).items():
        if cell.data_type == "e":
            yield Problem(file, f"the formula in {cell.coordinate} failed: {cell.value}")
        elif cell.value is None and place in sources and sources[place].data_type == "f":
            what = "has no stored value: save it with a program that calculates"
            yield Problem(file, f"the formula in {cell.coordinate} {what}")


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime) and value.time() == _MIDNIGHT:
        return value.date().isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST:
        return int(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
