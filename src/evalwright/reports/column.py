"""What a column of a table is: where its value is, and how people read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from evalwright.errors import money
from evalwright.reports import numbers

__all__ = ["Column", "Unit", "bold", "used"]

Row = TypeVar("Row")
Interval = tuple[float, float]


class Unit(Enum):
    """The kind of a value, which determines how it is written."""

    NAME = auto()
    """A name or id from data: every report makes it harmless in its own way."""
    TEXT = auto()
    """A word that evalwright chose: needs no escaping."""
    RATE = auto()
    """A share from 0 to 1."""
    POINTS = auto()
    """A difference of shares, in percentage points."""
    INTERVAL = auto()
    """The ends of a 95 % interval of a rate."""
    PROBABILITY = auto()
    SCORE = auto()
    NUMBER = auto()
    """A number whose unit the row names."""
    CHANGE = auto()
    """A difference of such numbers."""
    COUNT = auto()
    DURATION = auto()
    """Milliseconds."""
    DURATION_CHANGE = auto()
    MONEY = auto()
    """US dollars."""
    TOKENS = auto()
    """A mean number of tokens."""
    CASES = auto()
    """Ids of cases: their number; reports that have room list them too."""


class Column(NamedTuple, Generic[Row]):
    """One column of a table of `Row`s."""

    key: str
    """The path of the value in the JSON of the row; a dot enters an object: `cells.pass`."""
    title: str
    unit: Unit
    value: Callable[[Row], Any]
    """None if there is nothing to show."""
    interval: Callable[[Row], Interval | None] | None = None
    """The 95 % interval of a rate or of a difference of rates."""
    n: Callable[[Row], int] | None = None
    """The number of values behind a mean."""
    shown: Literal["always", "if_any", "wide"] = "always"
    """`if_any`: only if some row has a value. `wide`: the same, and the first to leave a narrow table."""
    style: Callable[[Row], str] = lambda row: ""
    """How the value looks on a terminal and a page: `pass`, `fail`, `error`, ..."""
    text: Callable[[Row], str] | None = None
    """The text that people read, if unit, interval and n do not determine it."""

    def show(self, row: Row) -> str:
        """The value of a row as people read it; empty if there is none."""
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        if value is None:
            return "–" if self.unit is Unit.RATE else ""
        if self.unit is Unit.POINTS:
            return numbers.points(value, self.interval(row) if self.interval else None)
        return numbers.mean(_TEXTS[self.unit](value), self.n(row)) if self.n else _TEXTS[self.unit](value)


_TEXTS: dict[Unit, Callable[[Any], str]] = {
    Unit.NAME: str,
    Unit.TEXT: str,
    Unit.RATE: numbers.percent,
    Unit.INTERVAL: numbers.interval,
    Unit.PROBABILITY: numbers.probability,
    Unit.SCORE: numbers.score,
    Unit.NUMBER: "{:.6g}".format,
    Unit.CHANGE: numbers.change,
    Unit.COUNT: "{:,}".format,
    Unit.DURATION: numbers.duration,
    Unit.DURATION_CHANGE: numbers.signed_duration,
    Unit.MONEY: money,
    Unit.TOKENS: "{:,.0f}".format,
    Unit.CASES: lambda ids: f"{len(ids):,}",
}


def used(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[Column[Row]]:
    """The columns to show for these rows: the same in every report. A rate of 0 is a finding, a cost of 0 is none."""
    return [column for column in columns if column.shown == "always" or any(_has_value(column, row) for row in rows)]


def _has_value(column: Column[Row], row: Row) -> bool:
    value = column.value(row)
    return value is not None if column.unit is Unit.RATE else bool(value)


def bold(row: object) -> str:
    return "bold"
