"""Tables in CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from evalwright.errors import counted
from evalwright.formats.promptfoo.origin import Origin

__all__ = ["CsvRow", "rows_of"]


class CsvRow(NamedTuple):
    place: str
    """File and line."""
    cells: list[str]


def rows_of(text: str, file: str, origin: Origin) -> tuple[list[str], Iterator[CsvRow]]:
    """The header of a table, and its rows; rows that do not match the header are reported."""
    lines = io.StringIO(text, newline="")
    header = next(csv.reader(lines, strict=False), [])
    first = text.count("\n", 0, lines.tell()) + 1
    return header, _fitting(csv.reader(lines, strict=False), file, first, header, origin)


def _fitting(rows: Any, file: str, first: int, header: Sequence[str], origin: Origin) -> Iterator[CsvRow]:
    line = first
    for row in rows:
        place, line = f"{file}:{line}", first + rows.line_num
        cells = row or [""] * (len(header) == 1)
        if len(cells) == len(header):
            yield CsvRow(place, cells)
        elif cells:
            hint = "; a comma within a cell needs quotation marks around the cell" if len(row) > len(header) else ""
            found = f"found {counted(len(row), 'cell')}, expected {len(header)}, as the header has"
            origin.tell(f"{place}: {found}{hint}")
