"""The scores of an AgentEvals run in a few lines, and the misses that occur most often."""

from __future__ import annotations

from typing import Any

from evalwright.errors import counted
from evalwright.reports.text import Paint, one_line

__all__ = ["score_lines"]

_LONGEST = 160
_PARTS = (("mean", "mean_score"), ("median", "median_score"), ("lowest", "min_score"), ("highest", "max_score"))


def score_lines(native: dict[str, Any], paint: Paint) -> list[str]:
    """Nothing for totals of other formats (`RunSummary.native`)."""
    if "median_score" not in native:
        return []
    parts = [f"{label} {native[name]:.3f}" for label, name in _PARTS]
    if native["std_score"] is not None:
        parts.append(f"standard deviation {native['std_score']:.3f}")
    line = f"{paint('score', 'dim')} {', '.join(parts)} of {counted(native['total'], 'cell')}, errors counted as 0"
    misses = [f"  {miss['count']:>4,} × {one_line(miss['text'], _LONGEST)}" for miss in native["misses"]]
    return [line, *([paint("Most frequent misses", "heading"), *misses] if misses else [])]
