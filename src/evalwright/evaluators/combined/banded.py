"""Results whose score says in which band they are: pass, borderline or fail (specification agentv, 3.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evalwright.model.result import Evaluation, band

__all__ = ["banded"]


def banded(
    score: float,
    hits: Sequence[str] = (),
    misses: Sequence[str] = (),
    reason: str = "",
    *,
    detail: dict[str, Any] | None = None,
    verdict: str | None = None,
) -> Evaluation:
    """The evaluation with a score, clamped to 0..1; it passes when its verdict, by default the band, is `pass`."""
    clamped = min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0
    said = verdict or band(clamped)
    told = reason or "; ".join(misses)
    return Evaluation(
        said == "pass", clamped, told, {"verdict": said, **(detail or {})}, hits=[*hits], misses=[*misses]
    )
