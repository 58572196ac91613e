"""How well stated confidence matches correctness."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import floor, fsum
from typing import NamedTuple

from evalwright.statistics.units import require_finite

__all__ = ["Calibration", "calibration"]


class Calibration(NamedTuple):
    """Brier's score and the expected calibration error; None without predictions."""

    brier: float | None
    ece_equal_width: float | None


def calibration(confidence: Sequence[float], correct: Sequence[float], bins: int = 10) -> Calibration:
    """Brier 1950: mean (p - y)^2; calibration error over bins of equal width, the last one closed (Guo et al. 2017).

    Raises ValueError unless both are of one length and finite.
    """
    require_finite(chain(confidence, correct))
    if len(confidence) != len(correct):
        raise ValueError(f"expected an outcome for each prediction, found {len(correct)} for {len(confidence)}")
    n = len(confidence)
    if not n:
        return Calibration(None, None)
    gaps: dict[int, list[float]] = {}
    for p, y in zip(confidence, correct, strict=True):
        gaps.setdefault(min(bins - 1, floor(p * bins)), []).append(p - y)
    brier = fsum((p - y) ** 2 for p, y in zip(confidence, correct, strict=True)) / n
    return Calibration(brier, fsum(abs(fsum(group)) for group in gaps.values()) / n)
