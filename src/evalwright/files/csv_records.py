"""Records of CSV by RFC 4180, streamed; in those of TSV, a quote within a cell that is not quoted is a character.

Python's own reader has a single limit on cells for the whole process, 131,072 characters; here each call has its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["CsvError", "csv_records"]

_LONGEST = 16 * 1024 * 1024
"""Maximum length of a record: a quote that is never closed would take the rest of a file for one cell."""
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
    begun, pieces, size = 1, list[str](), 0
    for number, line in enumerate(lines, start=1):
        if not pieces:
            begun = number
            if '"' not in line:
                if content := line.rstrip("\r\n"):
                    yield number, content.split(separator)
                continue
        size += len(line)
        if size > _LONGEST:
            raise CsvError(f"a record of more than {_LONGEST // 2**20} MiB: is a quote missing?", begun)
        goes_on = _goes_on(line, separator, within=bool(pieces))
        pieces.append(line)
        if not goes_on:
            yield begun, _cells("".join(pieces).rstrip("\r\n"), cell, separator, begun)
            pieces, size = [], 0
    if pieces:
        _cells("".join(pieces).rstrip("\r\n"), cell, separator, begun)
        raise CsvError("a quote is never closed", begun)


def _goes_on(line: str, separator: str, *, within: bool) -> bool:
    """Whether the quoted cell at the end of a line continues on the next; `within`: the line begins in one."""
    at = 0 if within else _after_quote(line, separator)
    while at is not None:
        closing = _UP_TO_QUOTE.match(line, at)
        if closing is None:
            return True
        at = _after_quote(line, separator, closing.end())
    return False


def _after_quote(line: str, separator: str, start: int = 0) -> int | None:
    """The place behind the next quote that begins a cell."""
    if start == 0 and line.startswith('"'):
        return 1
    found = line.find(f'{separator}"', start)
    return None if found < 0 else found + len(separator) + 1


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
