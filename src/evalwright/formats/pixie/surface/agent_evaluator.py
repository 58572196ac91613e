"""An evaluator that leaves its result to a person or agent who looks at the run afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalwright.formats.pixie.surface.evaluation import Evaluation

__all__ = ["create_agent_evaluator"]


class _AgentEvaluator:
    def __init__(self, name: str, criteria: str) -> None:
        self.name, self._criteria = name, criteria

    def __call__(self, evaluable: Any) -> Evaluation:
        details = {"evaluator": self.name, "criteria": self._criteria, "pending": True, "skipped": True}
        return Evaluation(0.0, f"pending: {self._criteria}", details)


def create_agent_evaluator(name: str, criteria: str) -> Callable[[Any], Evaluation]:
    """An evaluator that never scores: its result is pending, with the criteria for the person or agent that grades it.

    In a run it is skipped: it makes no entry pass or fail.
    """
    return _AgentEvaluator(name, criteria)
