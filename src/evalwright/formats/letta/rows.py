"""One sample of a stored run as letta-evals writes it, in a result line of its older or its newer form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.formats.letta.surface.models import sample_of
from evalwright.formats.letta.totals import REWARD, grades_of, judges_of
from evalwright.model.plan import Plan, Variant
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace, TraceError

__all__ = ["SampleRow", "masked", "row_of", "sample_fields"]

_APART = ("submission", "per_turn", "metadata")
"""Of a result's detail, what has a place of its own in a grade."""
_CATEGORIES = {"extraction_error": "extraction", "grader_error": "grading"}


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A sample with a model, and what the graders said."""

    model: str | None
    case: Case
    trace: Trace
    submissions: dict[str, str]
    grades: dict[str, Any] | None
    """None where the target, an extractor or a grader failed: then no grade counts."""
    error: dict[str, str] | None
    reward: float | None

    def older(self, mask: Callable[[str], str]) -> dict[str, Any]:
        """The line of `results.jsonl`."""
        first = next(iter(self.grades.values()), None) if self.grades else None
        failed = {"score": 0.0, "rationale": f"Error: {(self.error or {}).get('message', 'no grade')}", "metadata": {}}
        metrics = self.trace.metrics
        result = {
            "sample": masked(sample_fields(self.case), mask),
            "submission": next(iter(self.submissions.values()), ""),
            "submissions": self.submissions,
            **self._answered(),
            "grade": first or failed,
            "grades": self.grades,
            "model_name": self.model,
            "cost": metrics.cost_usd,
            "prompt_tokens": metrics.token_input,
            "completion_tokens": metrics.token_output,
        }
        return {"type": "result", "result": result}

    def newer(self) -> dict[str, Any]:
        """The line of `<model>.jsonl`."""
        latency = self.trace.latency_ms
        seconds = None if latency is None else latency / 1000
        return {
            "sample_id": self.case.extra.get("id", self.case.id),
            "model_handle": self.model or "default",
            "submissions": self.submissions,
            **self._answered(),
            "grades": self.grades,
            "reward": self.reward,
            "timing": {"total": seconds, "target": seconds},
        }

    def _answered(self) -> dict[str, Any]:
        extra = self.trace.extra
        said = {
            "agent_id": extra.get("agent_id"),
            "trajectory": extra.get("turns") or [],
            "agent_usage": extra.get("usage"),
        }
        if "blocks" in extra:
            blocks = [{"label": label, "value": value} for label, value in extra["blocks"].items()]
            said["agent_state"] = {"blocks": blocks}
        return said if self.error is None else {**said, "error": self.error}


def row_of(plan: Plan, variant: Variant, case: Case, trace: Trace, results: Sequence[EvaluationResult]) -> SampleRow:
    """The row of one cell."""
    said = {row.evaluator: row for row in results}
    order = [spec.name for spec in plan.evaluators if spec.name in said and spec.name != REWARD]
    counted = None if trace.error is not None else grades_of(results, judges_of(plan))
    metric = (plan.gate or {}).get("metric_key", "")
    return SampleRow(
        model=variant.config.get("model"),
        case=case,
        trace=trace,
        submissions={key: str(said[key].detail.get("submission") or "") for key in order},
        grades=None if counted is None else {key: _grade(said[key], counted[key]) for key in order},
        error=_error(trace, results) if counted is None else None,
        reward=None if counted is None else counted.get(metric),
    )


def sample_fields(case: Case) -> dict[str, Any]:
    """The fields of a sample, as its dataset had them."""
    return sample_of(case).model_dump()


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """The value with `mask` applied to every text in it."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {masked(key, mask): masked(item, mask) for key, item in value.items()}
    return [masked(item, mask) for item in value] if isinstance(value, list) else value


def _grade(row: EvaluationResult, score: float) -> dict[str, Any]:
    metadata = {key: value for key, value in row.detail.items() if key not in _APART}
    metadata |= row.detail.get("metadata") or {}
    if row.error is not None:
        metadata["error"] = row.error.type
    turns = [
        {**{key: turn.get(key) for key in ("turn", "score", "submission", "ground_truth")}, "rationale": _said(turn)}
        for turn in row.detail.get("per_turn") or ()
    ]
    return {
        "score": score,
        "rationale": row.reason if row.error is None else row.error.message,
        "metadata": metadata,
        "per_turn_grades": turns or None,
    }


def _said(turn: Mapping[str, Any]) -> Any:
    return turn.get("reason", turn.get("rationale"))


def _error(trace: Trace, results: Sequence[EvaluationResult]) -> dict[str, str]:
    """Category, class and message of what failed first."""
    if trace.error is not None:
        return {"category": "target", **_named(trace.error)}
    failed = next(row.error for row in results if row.error is not None and row.error.type != "not_counted")
    return {"category": _CATEGORIES.get(failed.type, "unknown"), **_named(failed)}


def _named(error: TraceError) -> dict[str, str]:
    return {"type": error.type, "message": error.message}
