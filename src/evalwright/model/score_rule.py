"""What the scores of an evaluator mean."""

from __future__ import annotations

import msgspec

__all__ = ["ScoreRule"]


class ScoreRule(msgspec.Struct, frozen=True):
    """The range of an evaluator's scores and what they decide, as its type declares it."""

    low: float = 0.0
    high: float = 1.0
    passes_from: float | None = None
    """The lowest score that passes; None if scores do not decide."""
