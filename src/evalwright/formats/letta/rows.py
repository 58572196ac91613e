"""One sample of a stored run as letta-evals writes it, as a result line in its older or newer form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.formats.letta.client_records import agent_record, other_tokens, trajectory_records, usage_records
from evalwright.formats.letta.surface.models import sample_of
from evalwright.formats.letta.totals import EMPTY, REWARD, counted_by, grades_of
from evalwright.model.plan import Plan, Variant
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace, TraceError

__all__ = [
    "SampleRow",
    "grade_of",
    "masked",
    "metrics_record",
    "row_of",
    "sample_fields",
    "sample_timing",
    "sample_usage",
]

_APART = ("submission", "per_turn", "metadata")
"""The parts of a result's detail that have a place of their own in a grade."""
_CATEGORIES = {"extraction_error": "extraction", "grader_error": "grading", **dict.fromkeys(EMPTY, "extraction")}
_EXCEPTION = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout))\b")


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A sample with a model, and its grades."""

    model: str | None
    case: Case
    trace: Trace
    submissions: dict[str, str]
    grades: dict[str, Any] | None
    """None if the target, an extractor or a grader failed. With an `error` no grade counts."""
    error: dict[str, str] | None
    reward: dict[str, Any] | None
    """`score`, and the `metadata` from a composer."""
    grading: dict[str, float]
    """Seconds by grader."""

    def older(self, mask: Callable[[str], str], place: int | None = None) -> dict[str, Any]:
        """The line of `results.jsonl`. A `place` is used as the sample's id, as 0.9 counts; its own id is beside it."""
        first = next(iter(self.grades.values()), None) if self.grades else None
        failed = {"score": 0.0, "rationale": f"Error: {(self.error or {}).get('message', 'no grade')}", "metadata": {}}
        sample, metrics = sample_fields(self.case), self.trace.metrics
        if place is not None:
            sample = {**sample, "sample_id": sample["id"], "id": place}
        result = {
            "sample": masked(sample, mask),
            "submission": next(iter(self.submissions.values()), ""),
            "submissions": self.submissions,
            **self._answer_part(),
            "grade": first or failed,
            "grades": self.grades,
            "model_name": self.model or self.trace.extra.get("model"),
            "cost": metrics.cost_usd,
            "prompt_tokens": metrics.token_input,
            "completion_tokens": metrics.token_output,
            **other_tokens(self.trace.extra.get("usage")),
        }
        if self.error is not None:
            result["error"] = self.error
        return {"type": "result", "result": result}

    def newer(self) -> dict[str, Any]:
        """The line of `<model>.jsonl`; absent values are left out."""
        row = {
            "sample_id": self.case.extra.get("id", self.case.id),
            **self._answer_part(),
            "model_handle": self.model or "default",
            "submissions": self.submissions,
            "grades": self.grades or {},
            "reward": self.reward,
            "usage": sample_usage(self.trace),
            "timing": sample_timing(self.trace, self.grading),
            "error": self.failure,
        }
        return {key: value for key, value in row.items() if value is not None}

    @property
    def failure(self) -> dict[str, str] | None:
        """The error of the row with the class of the exception."""
        if self.error is None:
            return None
        raised = _EXCEPTION.search(self.error["message"])
        return {
            "category": self.error["category"],
            "exception_type": "ExtractionError"
            if self.error["type"] in EMPTY
            else raised[1]
            if raised
            else self.error["type"],
            "message": self.error["message"],
        }

    def _answer_part(self) -> dict[str, Any]:
        extra = self.trace.extra
        agent = extra.get("agent_id")
        answer = {
            "agent_id": agent,
            "trajectory": trajectory_records(extra.get("turns") or (), self.trace.started_at.isoformat()),
            "agent_usage": usage_records(extra.get("usage")),
        }
        if "blocks" in extra:
            answer["agent_state"] = agent_record(agent, self.model, extra["blocks"])
        return answer


def row_of(plan: Plan, variant: Variant, case: Case, trace: Trace, results: Sequence[EvaluationResult]) -> SampleRow:
    """The row of one cell."""
    by_evaluator = {row.evaluator: row for row in results}
    order = [spec.name for spec in plan.evaluators if spec.name in by_evaluator and spec.name != REWARD]
    counted = None if trace.error is not None else counted_by(plan)(results)
    shown = counted
    if counted is None and trace.error is None:  # a row with nothing to grade keeps its zeros, which do not count
        shown = grades_of([row for row in results if row.evaluator != REWARD])
    return SampleRow(
        model=variant.config.get("model"),
        case=case,
        trace=trace,
        submissions={key: str(by_evaluator[key].detail.get("submission") or "") for key in order},
        grades=None if shown is None else {key: grade_of(by_evaluator[key], shown[key]) for key in order},
        error=_error(trace, results) if counted is None else None,
        reward=None if counted is None else _reward((plan.gate or {}).get("metric_key", ""), counted, by_evaluator),
        grading={key: by_evaluator[key].latency_ms / 1000 for key in order},
    )


def metrics_record(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a run as the original's `metrics`, which has a null where something does not apply."""
    models = [{**model, "cost": None} for model in numbers.get("per_model") or ()]
    return {**numbers, "per_model": models or None, "cost": None}


def sample_usage(trace: Trace) -> dict[str, Any] | None:
    """Tokens and US dollars; None if none are known."""
    metrics = trace.metrics
    row = {
        "prompt_tokens": metrics.token_input,
        "completion_tokens": metrics.token_output,
        "reasoning_tokens": metrics.token_thinking,
        "cost": metrics.cost_usd,
    }
    return {key: value for key, value in row.items() if value is not None} or None


def sample_timing(trace: Trace, grading: Mapping[str, float]) -> dict[str, Any]:
    """Seconds, those of `grading` by grader. Graders run concurrently, so the longest one determines the total."""
    lasted = trace.finished_at - trace.started_at
    target = lasted.total_seconds() if trace.latency_ms is None else trace.latency_ms / 1000
    return {"total": target + max(grading.values(), default=0.0), "target": target, "per_grader": dict(grading)}


def _reward(
    metric: str, counted: Mapping[str, float], by_evaluator: Mapping[str, EvaluationResult]
) -> dict[str, Any] | None:
    if metric not in counted:
        return None
    metadata = by_evaluator[metric].detail.get("metadata") if metric == REWARD else None
    return {"score": counted[metric], **({"metadata": metadata} if metadata else {})}


def sample_fields(case: Case) -> dict[str, Any]:
    """The fields of a sample, as its dataset had them."""
    return sample_of(case).model_dump()


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """The value with `mask` applied to every string in it."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {masked(key, mask): masked(item, mask) for key, item in value.items()}
    return [masked(item, mask) for item in value] if isinstance(value, list) else value


def grade_of(row: EvaluationResult, score: float) -> dict[str, Any]:
    """The fields of a `GradeResult`."""
    metadata = {key: value for key, value in row.detail.items() if key not in _APART}
    metadata |= row.detail.get("metadata") or {}
    if row.error is not None:
        metadata["error"] = row.error.type
    turns = [
        {
            "turn": turn.get("turn"),
            "score": turn.get("score"),
            "submission": turn.get("submission") or "",
            "ground_truth": turn.get("ground_truth") or "",
            "rationale": _rationale_of(turn),
        }
        for turn in row.detail.get("per_turn") or ()
    ]
    return {
        "score": score,
        "rationale": row.reason if row.error is None else row.error.message,
        "metadata": metadata,
        "per_turn_grades": turns or None,
    }


def _rationale_of(turn: Mapping[str, Any]) -> Any:
    return turn.get("reason", turn.get("rationale"))


def _error(trace: Trace, results: Sequence[EvaluationResult]) -> dict[str, str]:
    """Category, class and message of what failed first."""
    if trace.error is not None:
        return {"category": "target", **_error_names(trace.error)}
    failed = next(row.error for row in results if row.error is not None and row.error.type != "not_counted")
    composed = next((row.error for row in results if row.evaluator == REWARD), None)
    category = "reward" if failed is composed else _CATEGORIES.get(failed.type, "unknown")
    return {"category": category, **_error_names(failed)}


def _error_names(error: TraceError) -> dict[str, str]:
    return {"type": error.type, "message": error.message}
