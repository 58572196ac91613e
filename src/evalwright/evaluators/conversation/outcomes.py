"""What checks of conversations share: results, and the limit on what a result lists."""

from __future__ import annotations

from typing import Any

from evalwright.model.result import Evaluation

__all__ = ["KEPT", "MOST_SHOWN", "NO_ANSWER", "graded", "skipped"]

NO_ANSWER = "the conversation has no final response"
MOST_SHOWN = 20
"""Calls or terms that a reason or detail lists at most."""
KEPT = 1000
"""Results of a check that are kept: in large files, most cases get one that others got before."""


def skipped(key: str) -> Evaluation:
    """The result for a case that asks for nothing under `key`."""
    return Evaluation(False, None, f"the case has no {key}", skipped=True)


def graded(passed: bool, reason: str, detail: dict[str, Any]) -> Evaluation:
    """A result whose score is 1 or 0."""
    return Evaluation(passed, 1.0 if passed else 0.0, reason, detail)
