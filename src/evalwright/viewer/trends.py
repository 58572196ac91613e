"""The pass rate of one eval over time, as a drawing with its table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

__all__ = ["Trend", "TrendPoint", "trend_of"]

_WIDTH, _HEIGHT, _LEFT, _TOP = 640.0, 120.0, 34.0, 8.0


class _Rated(Protocol):
    id: str
    started: datetime | None
    rate: float | None
    interval: tuple[float, float] | None


class TrendPoint(NamedTuple):
    """One run: where it is drawn, and its numbers."""

    x: float
    y: float
    run: Any


class Trend(NamedTuple):
    points: list[TrendPoint]
    line: str
    band: str
    width: float = _WIDTH + _LEFT + 10
    height: float = _HEIGHT + 2 * _TOP
    left: float = _LEFT
    right: float = _WIDTH + _LEFT
    marks: tuple[tuple[float, str], ...] = ((_TOP + _HEIGHT, "0%"), (_TOP + _HEIGHT / 2, "50%"), (_TOP, "100%"))


def trend_of(rows: Sequence[Any]) -> Trend | None:
    """None where there are no two runs to draw a line between."""
    rated = [row for row in reversed(rows) if row.rate is not None]
    if len(rated) < 2:
        return None
    step = _WIDTH / (len(rated) - 1)
    points = [TrendPoint(_LEFT + place * step, _y(row.rate), row) for place, row in enumerate(rated)]
    line = " ".join(f"{point.x:.1f},{point.y:.1f}" for point in points)
    ends = [(point.x, *(point.run.interval or (point.run.rate, point.run.rate))) for point in points]
    upper = [f"{x:.1f},{_y(high):.1f}" for x, _, high in ends]
    lower = [f"{x:.1f},{_y(low):.1f}" for x, low, _ in reversed(ends)]
    return Trend(points, line, " ".join([*upper, *lower]))


def _y(rate: float) -> float:
    return _TOP + _HEIGHT * (1 - rate)
