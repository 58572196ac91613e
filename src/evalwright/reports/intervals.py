"""Intervals below each other as text, for terminals and Markdown; `pictures/plots.py` draws the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from evalwright.model.summary import VariantDelta
from evalwright.reports.numbers import ends_apart, score_change, score_digits, signed
from evalwright.reports.text import one_line, width

__all__ = [
    "ForestRow",
    "Ruler",
    "forest_lines",
    "forest_of_deltas",
    "interval_line",
    "numbers_of",
    "range_of",
    "shown",
    "spark",
]

_BLOCKS = "▁▂▃▄▅▆▇█"
_COLUMNS = 80


class ForestRow(NamedTuple):
    """One interval with its name; `strong` if it decides."""

    label: str
    value: float
    low: float
    high: float
    strong: bool = False

    @property
    def side(self) -> str:
        """Where the whole interval lies. Colour is never the only signal, as numbers stand beside it."""
        return "pass" if self.low > 0 else "fail" if self.high < 0 else "open"


class Ruler(NamedTuple):
    """Maps values to positions."""

    low: float
    high: float
    start: float
    length: float

    def at(self, value: float) -> float:
        """The position of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * self.length


def range_of(rows: Sequence[ForestRow], margin: float, *, points: bool) -> tuple[float, float]:
    """All intervals with their estimates, 0 and the margin, with a little room, of which differences of shares
    (`points`) have none beyond -1 and 1.

    An estimate may lie outside a guarded interval, which is pulled towards the middle of the scale.
    """
    seen = [value for row in rows for value in row[1:4]]
    low, high = min(0.0, -margin, *seen), max(0.0, *seen)
    room = (high - low or 1.0) * 0.05
    end = 1.0 if points else inf
    return max(low - room, min(low, -end)), min(high + room, max(high, end))


def shown(value: float, factor: float, ends: tuple[float, float]) -> str:
    """A number with its sign, in the digits of an axis between these ends; shares (`factor` 100) with one digit."""
    return signed(factor * value, 1 if factor > 1 else score_digits(ends))


def numbers_of(row: ForestRow, factor: float, margin: float = 0.0) -> str:
    """Estimate and interval, whose ends show on which side of 0 and -`margin` they lie."""
    ends = row.low, row.high
    if factor == 1:
        return score_change(row.value, ends, margin)
    return f"{signed(factor * row.value, 1)} [{', '.join(ends_apart(ends, 1, margin, factor))}]"


def forest_of_deltas(deltas: Iterable[VariantDelta]) -> list[ForestRow]:
    """The variants that were compared with their baseline."""
    return [
        ForestRow(delta.variant, delta.pass_rate_delta, *delta.pass_rate_delta_ci95)
        for delta in deltas
        if delta.pass_rate_delta is not None and delta.pass_rate_delta_ci95 is not None
    ]


def forest_lines(rows: Sequence[ForestRow]) -> list[str]:
    """The same as text: a name, the interval, its numbers."""
    numbers = [numbers_of(row, 100) for row in rows]
    names = [one_line(row.label, 24) for row in rows]
    label, figures = max(map(width, names)), max(map(len, numbers))
    room = max(10, _COLUMNS - label - figures - 4)
    ends = range_of(rows, 0.0, points=True)
    return [
        f"{name}{' ' * (label - width(name))}  {_interval(row, ends, 0.0, room)}  {number:>{figures}}"
        for name, row, number in zip(names, rows, numbers, strict=True)
    ]


def interval_line(row: ForestRow, columns: int, *, margin: float = 0.0, points: bool = True) -> str:
    """One interval between the ends of its scale."""
    factor = 100 if points else 1
    ends = range_of([row], margin, points=points)
    low, high = (shown(end, factor, ends) for end in ends)
    return f"{low} {_interval(row, ends, margin, columns - len(low) - len(high) - 2)} {high}"


def _interval(row: ForestRow, ends: tuple[float, float], margin: float, room: int) -> str:
    scale = Ruler(*ends, 0, room - 1)
    low, value, high, zero, limit = (round(scale.at(x)) for x in (row.low, row.value, row.high, 0.0, -margin))
    line = ["─" if low <= place <= high else " " for place in range(room)]
    if margin:
        line[limit] = "┆"
    line[zero] = "│"
    line[value] = "●"
    return "".join(line)


def spark(shares: Sequence[float]) -> str:
    """Shares from 0 to 1 as blocks of their heights."""
    return "".join(_BLOCKS[min(len(_BLOCKS) - 1, int(max(0.0, share) * len(_BLOCKS)))] for share in shares)
