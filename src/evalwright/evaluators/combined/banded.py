"""Results whose score decides between pass (from 0.8), borderline (from 0.6) and fail (AgentEvals 1.0)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.model.result import Evaluation, band

__all__ = ["banded", "details_of"]


def banded(
    score: float,
    hits: Sequence[str] = (),
    misses: Sequence[str] = (),
    reason: str = "",
    *,
    detail: dict[str, Any] | None = None,
    verdict: str | None = None,
) -> Evaluation:
    """An evaluation with the score clamped to 0..1. It passes if its verdict, by default the score's band, is
    `pass`."""
    clamped = min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0
    verdict_name = verdict or band(clamped)
    text = reason or "; ".join(misses)
    return Evaluation(
        verdict_name == "pass",
        clamped,
        text,
        {"verdict": verdict_name, **(detail or {})},
        hits=[*hits],
        misses=[*misses],
    )


def details_of(detail: Mapping[str, Any]) -> dict[str, Any]:
    """What AgentV calls the `details` of a result: a program's own, and the scores of rubrics with ranges."""
    details = detail.get("details")
    scores = {"raw_scores": detail["raw_scores"]} if "raw_scores" in detail else {}
    return {**(details if isinstance(details, dict) else {}), **scores}
