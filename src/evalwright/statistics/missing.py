"""The range of a difference if the trials without a verdict had one."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

__all__ = ["ErrorBounds", "error_bounds"]


class ErrorBounds(NamedTuple):
    """Mean differences B - A: errors left out, all of them failed, all passed, and the two extremes."""

    difference: float | None
    n: int
    """Cases with a verdict on both sides, which `difference` rests on."""
    all_failed: float | None
    all_passed: float | None
    lowest: float | None
    """A's errors passed, B's failed."""
    highest: float | None
    """A's errors failed, B's passed."""
    errors_a: int
    errors_b: int


def error_bounds(
    a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], times: Sequence[int] | None = None
) -> ErrorBounds:
    """From (passed, judged, errored) trials of each case on both sides; each stands for so many `times` cases.

    Raises ValueError for unequal lengths.
    """
    cases = list(zip(a, b, [1] * len(a) if times is None else times, strict=True))
    judged = [(b_[0] / b_[1] - a_[0] / a_[1], n) for a_, b_, n in cases if a_[1] and b_[1]]
    return ErrorBounds(
        _mean(judged),
        sum(n for _, n in judged),
        _mean(_differences(cases, 0, 0)),
        _mean(_differences(cases, 1, 1)),
        _mean(_differences(cases, 1, 0)),
        _mean(_differences(cases, 0, 1)),
        int(sum(case[2] * n for case, _, n in cases)),
        int(sum(case[2] * n for _, case, n in cases)),
    )


_Cases = list[tuple[Sequence[float], Sequence[float], int]]


def _differences(cases: _Cases, as_a: int, as_b: int) -> list[tuple[float, int]]:
    return [
        (_share(other, as_b) - _share(one, as_a), n)
        for one, other, n in cases
        if one[1] + one[2] and other[1] + other[2]
    ]


def _mean(rates: list[tuple[float, int]]) -> float | None:
    return fsum(value * n for value, n in rates) / sum(n for _, n in rates) if rates else None


def _share(case: Sequence[float], value: int) -> float:
    passed, judged, errored = case
    return (passed + value * errored) / (judged + errored)
