"""Tables in CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from evalwright.errors import counted
from evalwright.formats.promptfoo.origin import Origin

__all__ = ["rows_of"]


def rows_of(text: str, origin: Origin) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a table, and its rows with their numbers; those that do not fit the header are told."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=False)
    header = next(rows, [])
    return header, _fitting(rows, header, origin)


def _fitting(rows: Iterator[list[str]], header: Sequence[str], origin: Origin) -> Iterator[tuple[int, list[str]]]:
    for number, row in enumerate(rows, 2):
        cells = row or [""] * (len(header) == 1)
        if len(cells) == len(header):
            yield number, cells
        elif cells:
            hint = "; a comma within a cell needs quotation marks around the cell" if len(row) > len(header) else ""
            found = f"found {counted(len(row), 'cell')}, expected {len(header)}, as the header has"
            origin.tell(f"row {number}: {found}{hint}")
