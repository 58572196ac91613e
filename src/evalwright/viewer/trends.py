"""The pass rates of one eval over time, as a drawing with its table: a line for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from evalwright.errors import shorten

__all__ = ["Trend", "TrendLine", "TrendPoint", "VariantRate", "trend_of"]

_WIDTH, _HEIGHT, _LEFT, _TOP = 640.0, 120.0, 34.0, 8.0
_LETTER = 6.6
_LINE_OF_TEXT = 13.0
_LONGEST = 24
_MOST_LINES = 8


class VariantRate(NamedTuple):
    """The pass rate of a variant."""

    variant: str
    rate: float
    interval: tuple[float, float] | None


class _Rated(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def started(self) -> datetime | None: ...

    @property
    def rates(self) -> Sequence[VariantRate]: ...


class TrendPoint(NamedTuple):
    """One variant of one run: where it is drawn, and its numbers."""

    x: float
    y: float
    run: _Rated
    rate: VariantRate


class TrendLine(NamedTuple):
    """One variant; `label` is the text at its end, if there are several, and `label_y` its position."""

    name: str
    points: list[TrendPoint]
    line: str
    band: str
    label: str
    label_y: float


class Trend(NamedTuple):
    """The lines of a drawing of pass rates, and the runs below it, the oldest first."""

    lines: list[TrendLine]
    runs: list[tuple[_Rated, list[VariantRate | None]]]
    """Each with the rates of the variants, in the order of the lines."""
    width: float
    height: float = _HEIGHT + 2 * _TOP
    left: float = _LEFT
    right: float = _WIDTH + _LEFT
    marks: tuple[tuple[float, str], ...] = ((_TOP + _HEIGHT, "0%"), (_TOP + _HEIGHT / 2, "50%"), (_TOP, "100%"))


def trend_of(rows: Sequence[_Rated]) -> Trend | None:
    """Of runs, the newest first. None where there are no two to draw a line between."""
    rated = [row for row in reversed(rows) if row.rates]
    if len(rated) < 2:
        return None
    newest_first = dict.fromkeys(rate.variant for row in reversed(rated) for rate in row.rates)
    names = list(newest_first)[:_MOST_LINES]
    known = [{rate.variant: rate for rate in row.rates} for row in rated]
    step = _WIDTH / (len(rated) - 1)
    lines = []
    for name in names:
        points = [
            TrendPoint(_LEFT + place * step, _y(rates[name].rate), row, rates[name])
            for place, (row, rates) in enumerate(zip(rated, known, strict=True))
            if name in rates
        ]
        lines.append(_line(name, points))
    labelled = _with_labels(lines) if len(lines) > 1 else lines
    letters = max(len(line.label) for line in labelled)
    table = [(row, [rates.get(name) for name in names]) for row, rates in zip(rated, known, strict=True)]
    return Trend(labelled, table, _WIDTH + _LEFT + 10 + letters * _LETTER)


def _line(name: str, points: list[TrendPoint]) -> TrendLine:
    line = " ".join(f"{point.x:.1f},{point.y:.1f}" for point in points)
    ends = [(point.x, *(point.rate.interval or (point.rate.rate, point.rate.rate))) for point in points]
    upper = [f"{x:.1f},{_y(high):.1f}" for x, _, high in ends]
    lower = [f"{x:.1f},{_y(low):.1f}" for x, low, _ in reversed(ends)]
    return TrendLine(name, points, line, " ".join([*upper, *lower]), "", 0.0)


def _with_labels(lines: Sequence[TrendLine]) -> list[TrendLine]:
    """With the names of variants at the ends of their lines, as far apart as texts need."""
    order = sorted(lines, key=lambda line: line.points[-1].y)
    places = [line.points[-1].y for line in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _LINE_OF_TEXT)
    lowest = _TOP + _HEIGHT
    for i in reversed(range(len(places))):
        places[i] = min(places[i], lowest)
        lowest = places[i] - _LINE_OF_TEXT
    placed = {line.name: y for line, y in zip(order, places, strict=True)}
    return [line._replace(label=shorten(line.name, _LONGEST, "…"), label_y=placed[line.name] + 4) for line in lines]


def _y(rate: float) -> float:
    return _TOP + _HEIGHT * (1 - rate)
