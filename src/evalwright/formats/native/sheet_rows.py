"""Rows of Excel workbooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import as_written
from evalwright.files.packed import opened
from evalwright.files.workbooks import workbook_rows
from evalwright.formats.native.row_files import checked_header
from evalwright.formats.native.tables import TableDataset, TableRow

__all__ = ["XlsxRows"]


class XlsxRows(TableDataset):
    """One `sheet` of a workbook, by default the first: cells keep their types, dates are ISO 8601 text."""

    kind = "xlsx"

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(path, name, config)
        sheet = config.get("sheet")
        if not isinstance(sheet, str | None):
            message = f"expected the name of a sheet, found {as_written(sheet)}"
            raise InputError(Problem("", message, key="dataset.sheet"))
        self._sheet = sheet

    def rows(self, file: Path) -> Iterator[TableRow]:
        with opened(file) as source:
            header, *rows = workbook_rows(source.read(), str(file), self._sheet)
        names = checked_header(file, ["" if name is None else str(name) for name in header])
        for number, row in enumerate(rows, start=2):
            if any(cell is not None for cell in row):
                yield TableRow(file, number, dict(zip(names, row, strict=True)))
