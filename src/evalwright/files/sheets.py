"""Tables that people edit by hand: what cannot be read is left out, and reading goes on behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import suppress

__all__ = ["sheet_rows"]


def sheet_rows(text: str) -> Iterator[dict[str, str]]:
    """The rows of a table in CSV by their columns, without those that have a cell beyond Python's limit.

    Cells that a row lacks are absent, and those without a column are left out.
    """
    rows, header = csv.reader(io.StringIO(text, newline="")), None
    while True:
        with suppress(csv.Error):
            if (row := next(rows, None)) is None:
                return
            if header is None:
                header = row
            elif row:
                yield dict(zip(header, row, strict=False))
