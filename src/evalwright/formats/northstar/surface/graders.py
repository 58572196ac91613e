"""The deterministic graders; each calls the evaluator of the same rule."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from evalwright.errors import InputError
from evalwright.evaluators.build import build_evaluator, calls_models
from evalwright.formats.northstar.authored import EvalCase
from evalwright.formats.northstar.plans import DETERMINISTIC
from evalwright.formats.northstar.surface.judge_calls import settled
from evalwright.formats.northstar.surface.results import GradeResult, failed_grade, grade_of
from evalwright.formats.northstar.surface.runs import EvalRun, canonical
from evalwright.model.protocols import Evaluator as EvaluatorProtocol
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = [
    "Contains",
    "CostUnder",
    "ForbiddenTools",
    "Grader",
    "GroundTruthMatch",
    "LatencyUnder",
    "MaxToolCalls",
    "NotContains",
    "RequiredTools",
    "ToolArgumentsMatch",
    "ToolOutputReferenced",
    "ToolSequence",
    "default_graders",
]


class Grader:
    """A grader built from the evaluator registered as `type`, with its configuration."""

    requires_feedback: bool = False

    def __init__(self, name: str, type: str, config: Mapping[str, Any] | None = None) -> None:
        self.name = name
        try:
            self.evaluator: EvaluatorProtocol = build_evaluator(type, config or {}).evaluator
        except InputError as error:
            raise ValueError(f"{name}: {error}") from error
        if calls_models(type, config or {}):
            self.requires_feedback = True

    def grade(self, case: EvalCase, run: EvalRun) -> GradeResult:
        """Grade the given run; if it cannot be judged, the grade fails and has `metadata.error_type`."""
        try:
            return self.graded(case, run)
        except Exception as error:
            return failed_grade(self, error)

    def graded(self, case: EvalCase, run: EvalRun) -> GradeResult:
        """The grade of a run. Raises any error that keeps it from being judged."""
        evaluation = self.evaluate(*canonical(case, run))
        return grade_of(self.name, evaluation if isinstance(evaluation, Evaluation) else settled(evaluation))

    def evaluate(self, case: Case, trace: Trace) -> Evaluation | Awaitable[Evaluation]:
        """The evaluator's result for a canonical case."""
        return self.evaluator.evaluate(case, trace)


class _Deterministic(Grader):
    name: str

    def __init__(self) -> None:
        super().__init__(self.name, DETERMINISTIC[self.name])


class MaxToolCalls(_Deterministic):
    """At most `expected.max_tool_calls` calls."""

    name = "max_tool_calls"


class RequiredTools(_Deterministic):
    """Every one of `expected.required_tools` was called."""

    name = "required_tools"


class ForbiddenTools(_Deterministic):
    """None of `expected.forbidden_tools` was called."""

    name = "forbidden_tools"


class ToolArgumentsMatch(_Deterministic):
    """Calls have the arguments in `expected.tool_arguments`."""

    name = "tool_arguments_match"


class ToolSequence(_Deterministic):
    """The called tools are `expected.tool_sequence`."""

    name = "tool_sequence"


class ToolOutputReferenced(_Deterministic):
    """The final response refers to an output of a tool."""

    name = "tool_output_referenced"
    threshold: float = 0.35

    def __init__(self, *, values: bool = False) -> None:
        Grader.__init__(self, self.name, self.name, {"threshold": self.threshold, "values": values})


class Contains(_Deterministic):
    """The final response has every phrase of `expected.contains`."""

    name = "contains"


class NotContains(_Deterministic):
    """The final response has no phrase of `expected.not_contains`."""

    name = "not_contains"


class GroundTruthMatch(_Deterministic):
    """`expected.ground_truth` is a part of the final response."""

    name = "ground_truth_match"


class LatencyUnder(_Deterministic):
    """`metrics.latency_ms` is at most `expected.max_latency_ms`."""

    name = "latency_under"


class CostUnder(_Deterministic):
    """`metrics.cost_usd` is at most `expected.max_cost_usd`."""

    name = "cost_under"


def default_graders() -> list[Grader]:
    """The deterministic plan."""
    return [
        MaxToolCalls(),
        RequiredTools(),
        ForbiddenTools(),
        ToolArgumentsMatch(),
        ToolSequence(),
        ToolOutputReferenced(),
        Contains(),
        NotContains(),
        GroundTruthMatch(),
        LatencyUnder(),
        CostUnder(),
    ]
