"""The named plans and run configurations as lists of graders."""

from __future__ import annotations

from evalwright.errors import did_you_mean
from evalwright.formats.northstar.plans import PLANS
from evalwright.formats.northstar.surface.graders import Grader, default_graders
from evalwright.formats.northstar.surface.judges import (
    DEFAULT_RUBRIC_JUDGE_MODEL,
    CompletionFn,
    FaithfulnessJudge,
    HallucinatedToolResultJudge,
    PlanningActionMismatchJudge,
    RubricJudge,
)

__all__ = ["grader_plan", "trace_graders"]


def grader_plan(
    name: str, *, completion_fn: CompletionFn | None = None, judge_model: str = DEFAULT_RUBRIC_JUDGE_MODEL
) -> list[Grader]:
    """The graders of a named plan. Raises ValueError, which lists the names."""
    if name not in PLANS:
        raise ValueError(f"unknown plan {name!r}{did_you_mean(str(name), PLANS)}: expected one of {', '.join(PLANS)}")
    if name == "trace":
        return trace_graders(completion_fn=completion_fn, judge_model=judge_model)
    graders = default_graders()
    if name == "quality":
        graders.append(RubricJudge("rubric_judge", judge_model, completion_fn=completion_fn))
    if name == "agentic":
        graders.append(FaithfulnessJudge(model=judge_model, completion_fn=completion_fn))
    return graders


def trace_graders(
    *, completion_fn: CompletionFn | None = None, judge_model: str = DEFAULT_RUBRIC_JUDGE_MODEL
) -> list[Grader]:
    """The graders that look at the steps of a run."""
    from evalwright.formats.northstar.surface import step_graders as steps

    return [
        steps.BadToolFailureRecovery(),
        steps.UnnecessaryToolLoop(),
        steps.StaleContextUsage(),
        steps.InvalidStateTransition(),
        steps.RetrievalPrecisionRecall(),
        steps.StepCostAttribution(),
        steps.FailureOrigin(),
        HallucinatedToolResultJudge(model=judge_model, completion_fn=completion_fn),
        PlanningActionMismatchJudge(model=judge_model, completion_fn=completion_fn),
    ]
