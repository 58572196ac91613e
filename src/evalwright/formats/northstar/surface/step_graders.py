"""Graders of the steps of a run; each calls the evaluator of the same rule."""

from __future__ import annotations

from evalwright.formats.northstar.surface.graders import Grader

__all__ = [
    "BadToolFailureRecovery",
    "FailureOrigin",
    "InvalidStateTransition",
    "RetrievalPrecisionRecall",
    "StaleContextUsage",
    "StepCostAttribution",
    "UnnecessaryToolLoop",
]


class _StepGrader(Grader):
    name: str

    def __init__(self) -> None:
        super().__init__(self.name, self.name)


class BadToolFailureRecovery(_StepGrader):
    """After a failed tool the system says or reasons something."""

    name = "bad_tool_failure_recovery"


class UnnecessaryToolLoop(_StepGrader):
    """No tool is called too often with the same arguments."""

    name = "unnecessary_tool_loop"


class InvalidStateTransition(_StepGrader):
    """Every change of state is allowed."""

    name = "invalid_state_transition"


class RetrievalPrecisionRecall(_StepGrader):
    """What was retrieved is relevant enough, and there is enough of it."""

    name = "retrieval_precision_recall"


class StepCostAttribution(_StepGrader):
    """No step costs too much."""

    name = "step_cost_attribution"


class StaleContextUsage(_StepGrader):
    """No stale context was used."""

    name = "stale_context_usage"


class FailureOrigin(_StepGrader):
    """Names the first step that failed."""

    name = "failure_origin"
