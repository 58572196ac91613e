"""Two result files side by side: cases won, lost and tied by their scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["compared"]


def compared(a: Mapping[str, float], b: Mapping[str, float], threshold: float) -> dict[str, Any]:
    """Every case in both, B - A: a win at `threshold` or above, a loss at -`threshold` or below.

    Differences are compared after rounding to nine digits, so that 0.3 - 0.2 is a win at 0.1.
    """
    common = [case for case in a if case in b]
    deltas = [b[case] - a[case] for case in common]
    outcomes = [_outcome(round(delta, 9), threshold) for delta in deltas]
    matched = [
        {"eval_id": case, "score1": a[case], "score2": b[case], "delta": delta, "outcome": outcome}
        for case, delta, outcome in zip(common, deltas, outcomes, strict=True)
    ]
    mean = round(sum(deltas) / len(deltas), 3) if deltas else 0
    return {
        "matched": matched,
        "unmatched": {"file1": len(a) - len(matched), "file2": len(b) - len(matched)},
        "summary": {
            "total": len(a) + len(b),
            "matched": len(matched),
            "wins": outcomes.count("win"),
            "losses": outcomes.count("loss"),
            "ties": outcomes.count("tie"),
            "mean_delta": mean,
        },
    }


def _outcome(delta: float, threshold: float) -> str:
    return "win" if delta >= threshold else "loss" if delta <= -threshold else "tie"
