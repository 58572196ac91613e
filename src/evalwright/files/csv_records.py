"""Records of CSV by RFC 4180, streamed.

Python's own reader has a single limit on cells for the whole process, 131,072 characters; here each call has its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["CsvError", "csv_records"]

_LONGEST = 16 * 1024 * 1024
"""Maximum length of a record: a quote that is never closed would take the rest of a file for one cell."""


class CsvError(ValueError):
    """What is wrong with the CSV, and the line, from 1, on which the record begins."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def csv_records(lines: Iterable[str], separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its cells; blank lines are skipped. `lines` keep their ends.

    Raises CsvError.
    """
    cell = re.compile(
        rf'"((?:[^"]++|"")*+)"(?={re.escape(separator)}|\Z)|([^"{re.escape(separator)}]*+)(?={re.escape(separator)}|\Z)'
    )
    begun, pieces, size, quotes = 1, list[str](), 0, 0
    for number, line in enumerate(lines, start=1):
        if not pieces:
            begun = number
            if '"' not in line:
                if content := line.rstrip("\r\n"):
                    yield number, content.split(separator)
                continue
        pieces.append(line)
        size += len(line)
        quotes += line.count('"')
        if size > _LONGEST:
            raise CsvError(f"a record of more than {_LONGEST // 2**20} MiB: is a quote missing?", begun)
        if quotes % 2 == 0:
            yield begun, _cells("".join(pieces).rstrip("\r\n"), cell, separator, begun)
            pieces, size, quotes = [], 0, 0
    if pieces:
        _cells("".join(pieces).rstrip("\r\n"), cell, separator, begun)
        raise CsvError("a quote is never closed", begun)


def _cells(record: str, cell: re.Pattern[str], separator: str, line: int) -> list[str]:
    found: list[str] = []
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
        found.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if at == len(record):
            return found
        at += len(separator)
