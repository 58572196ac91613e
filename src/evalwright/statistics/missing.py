"""What a difference would be if the trials without verdict had one."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

__all__ = ["ErrorBounds", "error_bounds"]


class ErrorBounds(NamedTuple):
    """Mean differences B - A: errors left out, all of them failed, all passed, and the two extremes."""

    difference: float | None
    n: int
    """Cases with a verdict on both sides, behind `difference`."""
    all_failed: float | None
    all_passed: float | None
    lowest: float | None
    """A's errors passed, B's failed."""
    highest: float | None
    """A's errors failed, B's passed."""
    errors_a: int
    errors_b: int


def error_bounds(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> ErrorBounds:
    """From (passed, judged, errored) trials of each case on both sides. Raises ValueError for unequal lengths."""
    judged = [b_[0] / b_[1] - a_[0] / a_[1] for a_, b_ in zip(a, b, strict=True) if a_[1] and b_[1]]
    return ErrorBounds(
        fsum(judged) / len(judged) if judged else None,
        len(judged),
        _mean(a, b, 0, 0),
        _mean(a, b, 1, 1),
        _mean(a, b, 1, 0),
        _mean(a, b, 0, 1),
        int(sum(case[2] for case in a)),
        int(sum(case[2] for case in b)),
    )


def _mean(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], as_a: int, as_b: int) -> float | None:
    found = [
        _share(other, as_b) - _share(one, as_a)
        for one, other in zip(a, b, strict=True)
        if one[1] + one[2] and other[1] + other[2]
    ]
    return fsum(found) / len(found) if found else None


def _share(case: Sequence[float], value: int) -> float:
    passed, judged, errored = case
    return (passed + value * errored) / (judged + errored)
