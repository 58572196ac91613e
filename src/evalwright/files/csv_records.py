"""Records of CSV by RFC 4180, streamed; in those of TSV, a quote within a cell that is not quoted is a character.

Python's own reader has a single limit on cells for the whole process, 131,072 characters; here each call has its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["CsvError", "csv_records"]

_LONGEST = 16 * 1024 * 1024
"""Maximum length of a cell: a quote that is never closed would take the rest of a file for one."""
_TOO_LONG = f"a cell of more than {_LONGEST // 2**20} MiB"
_UP_TO_QUOTE = re.compile(r'(?:[^"]++|"")*+"')


class CsvError(ValueError):
    """What is wrong with the CSV, and the line, from 1, on which the record begins."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def csv_records(lines: Iterable[str], separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its cells; blank lines are skipped. `lines` keep their ends.

    Raises CsvError.
    """
    mark = re.escape(separator)
    plain = rf'(?!")[^{mark}\r\n]*+' if separator == "\t" else rf'[^"{mark}]*+'
    cell = re.compile(rf'"((?:[^"]++|"")*+)"(?={mark}|\Z)|({plain})(?={mark}|\Z)')
    begun, pieces, size = 1, list[str](), 0  # the size is that of the cell that is not closed yet
    for number, line in enumerate(lines, start=1):
        if not pieces:
            begun = number
            if '"' not in line:
                if content := line.rstrip("\r\n"):
                    yield number, _bounded(content.split(separator), len(content), number)
                continue
        at = _open_cell(line, separator, within=bool(pieces))
        pieces.append(line)
        if at is not None:
            size = len(line) - at + (size if at == 0 else 0)
            if size > _LONGEST:
                raise CsvError(f"{_TOO_LONG}: is a quote missing?", begun)
            continue
        record = "".join(pieces).rstrip("\r\n")
        yield begun, _bounded(_cells(record, cell, separator, begun), len(record), begun)
        pieces, size = [], 0
    if pieces:
        _cells("".join(pieces).rstrip("\r\n"), cell, separator, begun)
        raise CsvError("a quote is never closed", begun)


def _bounded(cells: list[str], size: int, line: int) -> list[str]:
    """The cells of a record of that size. Raises CsvError if one is too long."""
    if size > _LONGEST and max(map(len, cells)) > _LONGEST:
        raise CsvError(_TOO_LONG, line)
    return cells


def _open_cell(line: str, separator: str, *, within: bool) -> int | None:
    """Where the quoted cell begins that continues on the next line, without its quote; None if there is none. `within`:
    the line begins inside one, at 0."""
    at = 0 if within else _after_quote(line, separator)
    while at is not None:
        closing = _UP_TO_QUOTE.match(line, at)
        if closing is None:
            return at
        at = _after_quote(line, separator, closing.end())
    return None


def _after_quote(line: str, separator: str, start: int = 0) -> int | None:
    """The place behind the next quote that begins a cell."""
    if start == 0 and line.startswith('"'):
        return 1
    quote = line.find(f'{separator}"', start)
    return None if quote < 0 else quote + len(separator) + 1


def _cells(record: str, cell: re.Pattern[str], separator: str, line: int) -> list[str]:
    cells: list[str] = []
    at = 0
    while True:
        match = cell.match(record, at)
        if match is None and record[at : at + 1] == '"' and record.count('"', at) % 2:
            raise CsvError("a quote is never closed", line)
        if match is None:
            raise CsvError(
                "a cell contains a quote but does not begin with one, or has text after its closing quote", line
            )
        quoted, plain = match.groups()
        cells.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if at == len(record):
            return cells
        at += len(separator)
