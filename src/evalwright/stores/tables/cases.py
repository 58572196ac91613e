"""The cases of a run in a database by position."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from evalwright.errors import InputError, Problem
from evalwright.stores.tables.statements import RunTables

__all__ = ["CaseLines"]

_AHEAD = 1 << 18
"""Bytes of cases that are read with one query, as long as they are asked for in order."""


class CaseLines:
    """The stored lines of cases. No query stays open: a run that reads its cases for hours must not prevent SQLite's
    checkpoints, and each query can be repeated if a server restarts."""

    def __init__(self, tables: RunTables) -> None:
        self._tables = tables
        self._block: tuple[int, list[bytes]] = (0, [])
        """What was read last, from which position on."""

    def line(self, index: int) -> bytes | None:
        """The line of the case at a position; None after the last one. Raises InputError if its row is missing."""
        start, lines = self._block  # in one assignment: other threads replace it
        if not start <= index < start + len(lines):
            # Twice as many as last time: a single case that is asked for takes none with it.
            size = sum(map(len, lines))
            most = min(2 * len(lines), len(lines) * _AHEAD // size) if size and index == start + len(lines) else 1
            cases = self._tables.cases(index, max(1, most))
            if not cases:
                return None
            if cases[0][0] != index:
                raise self._missing(index)
            lines = [line for place, (position, line) in enumerate(cases, index) if position == place]
            start, _ = self._block = index, lines
        return lines[index - start]

    def __getitem__(self, index: int) -> bytes:
        if index < 0 or (line := self.line(index)) is None:
            raise self._missing(index)
        return line

    def since(self, start: int) -> Iterator[bytes]:
        """The lines from a position to the end."""
        lines = CaseLines(self._tables)  # with a block of its own, which no one else replaces
        for index in count(start):
            if (line := lines.line(index)) is None:
                return
            yield line

    def _missing(self, index: int) -> InputError:
        what = f"there is no case {index + 1}: rows are missing"
        return InputError(Problem(f"{self._tables.location} cases", what))
