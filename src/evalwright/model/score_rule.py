"""What the scores of an evaluator mean."""

from __future__ import annotations

from math import isclose

import msgspec

__all__ = ["ScoreRule", "reaches"]

_WIDEST = 1e100
"""Wider ranges are none: they mean that any score is allowed, and their squares are no numbers."""
_DIGITS = 9


class ScoreRule(msgspec.Struct, frozen=True):
    """The range of an evaluator's scores and what they decide, as its type declares it."""

    low: float = 0.0
    high: float = 1.0
    passes_from: float | None = None
    """The lowest score that passes; None if scores do not decide."""

    def __post_init__(self) -> None:
        if not 0 < self.high - self.low < _WIDEST:
            raise ValueError(f"expected a range of scores, found {self.low:g} to {self.high:g}")


def reaches(score: float, least: float) -> bool:
    """Whether a score that was computed is at least `least`: the mean of three scores of 0.7 is 0.6999999999999998."""
    # A threshold is never rounded: one of 1e-10 would become 0, which any score reaches.
    return round(score, _DIGITS) >= least or isclose(score, least, rel_tol=10**-_DIGITS)
