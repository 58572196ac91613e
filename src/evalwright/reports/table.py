"""Aligned tables for a terminal, split or shortened where the screen is narrow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from evalwright.reports.text import Paint, one_line, shortened, width

__all__ = ["Styled", "Table"]

_GAP = "  "
_SHORTEST_NAME = 12

Styled = tuple[str, str]
"""A text and the name of its style."""


@dataclass(slots=True)
class Table:
    """Aligned columns without lines: those whose title begins with `>` to the right, empty ones left out.

    A table whose leading columns name its rows fits the screen: columns without room go to a further table below,
    under the same names, so that no number is lost and no line wraps. Of several names all but the last are shown once
    for the rows that share them.
    """

    columns: Sequence[str]
    limit: int = 60
    """Characters of a cell."""
    names: int = 0
    """Leading columns that name a row; 0 if the table may be of any width."""
    wide: Collection[int] = ()
    """Positions of the columns that are moved below first."""
    rows: list[list[Styled]] = field(default_factory=list)

    def add(self, cells: Iterable[str | Styled]) -> None:
        row = [(cell, "") if isinstance(cell, str) else cell for cell in cells]
        self.rows.append([(one_line(text, self.limit), style) for text, style in row])

    def lines(self, paint: Paint, indent: str = "  ") -> list[str]:
        used = [i for i in range(len(self.columns)) if any(row[i][0] for row in self.rows)]
        if paint.columns is None or not self.names:
            return self._drawn(used, self.rows, paint, indent)
        room = paint.columns - len(indent)
        names, numbers = [i for i in used if i < self.names], [i for i in used if i >= self.names]
        rows = self._with_short_names(names, numbers, room)
        lines: list[str] = []
        for shown in self._tables(names, numbers, rows, room):
            held = [row for row in rows if any(row[i][0] for i in shown)] if lines else rows
            lines += [*([""] if lines else []), *self._drawn([*names, *shown], held, paint, indent)]
        return lines

    def _tables(self, names: list[int], left: list[int], rows: list[list[Styled]], room: int) -> list[list[int]]:
        """The columns of each table: as many tables as the width requires, the wide columns below the others."""
        if self._width([*names, *left], rows) <= room or len(left) < 2:
            return [left]
        wide = [i for i in left[1:] if i in self.wide]
        if not wide:
            most = next(
                n for n in range(len(left) - 1, 0, -1) if n == 1 or self._width([*names, *left[:n]], rows) <= room
            )
            return [left[:most], *self._tables(names, left[most:], rows, room)]
        below = [wide.pop()]
        while wide and self._width([*names, wide[-1], *below], rows) <= room:
            below.insert(0, wide.pop())
        return [*self._tables(names, [i for i in left if i not in below], rows, room), below]

    def _with_short_names(self, names: list[int], left: list[int], room: int) -> list[list[Styled]]:
        """The rows with names cut to make room for the columns that are not wide."""
        rows = self.rows
        kept = [*names, *(i for i in left if i not in self.wide)]
        for i in sorted(names, key=lambda i: -self._widths([i], rows)[0]):
            if (over := self._width(kept, rows) - room) > 0:
                columns = max(_SHORTEST_NAME, self._widths([i], rows)[0] - over)
                rows = [[*row[:i], (shortened(row[i][0], columns), row[i][1]), *row[i + 1 :]] for row in rows]
        return rows

    def _title(self, i: int) -> str:
        return self.columns[i].removeprefix(">")

    def _widths(self, shown: list[int], rows: list[list[Styled]]) -> list[int]:
        return [max(width(self._title(i)), *(width(row[i][0]) for row in rows)) for i in shown]

    def _width(self, shown: list[int], rows: list[list[Styled]]) -> int:
        return sum(self._widths(shown, rows)) + len(_GAP) * (len(shown) - 1)

    def _drawn(self, shown: list[int], rows: list[list[Styled]], paint: Paint, indent: str) -> list[str]:
        header = [(self._title(i), "dim") for i in shown]
        widths = self._widths(shown, rows)
        right = [self.columns[i].startswith(">") for i in shown]
        lines = [indent + _aligned_row(header, widths, right, paint)]
        above: list[Styled] = []
        for row in rows:
            grouped = self.names - 1 if above[: self.names - 1] == row[: self.names - 1] else 0
            cells = [("", "") if i < grouped else row[i] for i in shown]
            lines.append(indent + _aligned_row(cells, widths, right, paint))
            above = row
        return lines


def _aligned_row(row: list[Styled], widths: list[int], right: list[bool], paint: Paint) -> str:
    parts = []
    last = max((i for i, (text, _) in enumerate(row) if text), default=-1)
    for i, (text, style) in enumerate(row[: last + 1]):
        space = " " * (widths[i] - width(text))
        painted = paint(text, style)
        parts.append(space + painted if right[i] else painted + (space if i < last else ""))
    return _GAP.join(parts)
