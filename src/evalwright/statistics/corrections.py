"""Many tests at once: p-values adjusted for their number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import fsum

__all__ = ["adjust_p_values", "false_discovery"]


def adjust_p_values(p_values: Sequence[float], alpha: float = 0.05) -> dict[str, list[float] | list[bool]]:
    """Adjusted p-values in the order given, capped at 1, and which are at most `alpha`, by method.

    Bonferroni; Holm 1979; Hochberg 1988; Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001.
    Raises ValueError for a p-value outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError("expected p-values from 0 to 1")
    n = len(p_values)
    order = sorted(range(n), key=p_values.__getitem__)
    ranked = [p_values[i] for i in order]
    left = [p * (n - i) for i, p in enumerate(ranked)]
    share = [p * n / (i + 1) for i, p in enumerate(ranked)]
    harmonic = fsum(1 / (i + 1) for i in range(n))
    methods = {
        "bonferroni": [p * n for p in ranked],
        "holm": list(accumulate(left, max)),
        "hochberg": _step_up(left),
        "benjamini_hochberg": _step_up(share),
        "benjamini_yekutieli": _step_up([p * harmonic for p in share]),
    }
    answer: dict[str, list[float] | list[bool]] = {}
    for name, values in methods.items():
        adjusted = [0.0] * n
        for place, value in zip(order, values, strict=True):
            adjusted[place] = min(1.0, value)
        answer[f"{name}_adjusted"] = adjusted
        answer[f"{name}_reject"] = [value <= alpha for value in adjusted]
    return answer


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """The q-values of Benjamini and Hochberg 1995 alone, in the order given: quick for very many tests."""
    n = len(p_values)
    order = sorted(range(n), key=p_values.__getitem__)
    adjusted = [0.0] * n
    for place, q in zip(order, _step_up([p_values[i] * n / (k + 1) for k, i in enumerate(order)]), strict=True):
        adjusted[place] = min(1.0, q)
    return adjusted


def _step_up(values: Sequence[float]) -> list[float]:
    return list(accumulate(reversed(values), min))[::-1]
