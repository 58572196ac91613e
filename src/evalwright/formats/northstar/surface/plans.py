"""The named plans and run configurations as lists of graders (specification northstar, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalwright.dialects.northstar_plans import DETERMINISTIC, PLANS, configured
from evalwright.errors import InputError, did_you_mean
from evalwright.northstar.graders import Grader, default_graders
from evalwright.northstar.judges import (
    DEFAULT_RUBRIC_JUDGE_MODEL,
    CompletionFn,
    FaithfulnessJudge,
    HallucinatedToolResultJudge,
    PlanningActionMismatchJudge,
    RubricJudge,
)

if TYPE_CHECKING:
    from evalwright.northstar.suites import EvalSuite

__all__ = ["grader_plan", "suite_from_config", "trace_graders"]


def grader_plan(
    name: str, *, completion_fn: CompletionFn | None = None, judge_model: str = DEFAULT_RUBRIC_JUDGE_MODEL
) -> list[Grader]:
    """The graders of a named plan. Raises ValueError that lists the names."""
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
    from evalwright.northstar import step_graders as steps

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


def suite_from_config(configuration: Mapping[str, Any]) -> EvalSuite:
    """The suite of a run configuration. Raises ValueError with every problem."""
    from evalwright.northstar.suites import EvalSuite

    try:
        specs = configured(configuration, "configuration")
    except InputError as error:
        raise ValueError(str(error)) from error
    added = [Grader(spec.name, spec.type, spec.config) for spec in specs[len(DETERMINISTIC) :]]
    return EvalSuite([*default_graders(), *added], plan="quality" if added else "deterministic")
