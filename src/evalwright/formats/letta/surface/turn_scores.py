"""letta-evals' texts about the scores of single turns."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.formats.letta.surface.models import Sample

__all__ = ["build_turn_summary", "build_turn_symbols", "calculate_turn_average", "is_per_turn_evaluation"]


def is_per_turn_evaluation(sample: Sample) -> bool:
    """Whether each message of the sample has a ground truth of its own."""
    return isinstance(sample.input, list) and isinstance(sample.ground_truth, list)


def build_turn_symbols(scores: Sequence[float | None], pass_threshold: float = 1.0) -> str:
    """A mark for each turn: `✓`, `✗`, or `…` for one without a score."""
    return " ".join("…" if score is None else "✓" if score >= pass_threshold else "✗" for score in scores)


def calculate_turn_average(scores: Sequence[float | None]) -> float:
    """The mean of the existing scores; 0 for none."""
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else 0.0


def build_turn_summary(scores: Sequence[float], pass_threshold: float = 1.0) -> str:
    """How many turns passed, and the marks of all: `2/3 passed: ✓ ✓ ✗`."""
    passed = sum(score >= pass_threshold for score in scores)
    return f"{passed}/{len(scores)} passed: {build_turn_symbols(scores, pass_threshold)}"
