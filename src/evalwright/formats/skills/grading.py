"""One cell in skill-creator's terms: `grading.json`, `timing.json`, and the run of `benchmark.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from evalwright.formats.skills.cases import USED
from evalwright.model.artifact import Artifact
from evalwright.model.result import JUDGED, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.reports.cells import FullCell

__all__ = ["GradedCell"]


@dataclass(frozen=True, slots=True)
class GradedCell:
    """A finished cell."""

    case: Case
    eval_id: int | str
    cell: FullCell
    artifact: Artifact | None

    @property
    def trace(self) -> Trace:
        return self.cell.trace

    @property
    def name(self) -> str:
        return self.case.description or f"eval-{self.case.id}"

    @property
    def judged(self) -> bool:
        """Whether it has a verdict; other cells are left out of all means."""
        return self.cell.verdict.status in JUDGED

    @property
    def seconds(self) -> float:
        return round((self.trace.latency_ms or 0) / 1000, 3)

    @property
    def tokens(self) -> int | None:
        metrics = self.trace.metrics
        known = [count for count in (metrics.token_input, metrics.token_output) if count is not None]
        return sum(known) if known else None

    def expectations(self) -> list[dict[str, Any]]:
        """The criteria in the order of the file."""
        order = {spec.name: i for i, spec in enumerate(self.case.evaluators or ())}
        rows = sorted(self.cell.results, key=lambda row: order.get(row.evaluator, len(order)))
        return [
            {"text": _text(row, self.case), "passed": row.passed, "evidence": row.reason}
            for row in rows
            if not row.skipped and (row.evaluator != USED or row.detail.get("decides") is True)
        ]

    def grading(self) -> dict[str, Any]:
        expectations = self.expectations()
        return {
            "expectations": expectations,
            "summary": _summary(expectations),
            "execution_metrics": self.execution(),
            # without the total: where that is given, skill-creator's script counts characters of the output as tokens
            "timing": {"executor_duration_seconds": self.seconds, "grader_duration_seconds": self._grading_seconds()},
        }

    def timing(self) -> dict[str, Any]:
        tokens = {} if self.tokens is None else {"total_tokens": self.tokens}
        return {**tokens, "duration_ms": self.trace.latency_ms or 0, "total_duration_seconds": self.seconds}

    def run(self, configuration: str) -> dict[str, Any]:
        """The entry in `benchmark.json`."""
        expectations = self.expectations()
        metrics = self.execution()
        tokens = {} if self.tokens is None else {"tokens": self.tokens}
        return {
            "eval_id": self.eval_id,
            "eval_name": self.name,
            "configuration": configuration,
            "run_number": self.trace.trial + 1,
            "result": {
                **_summary(expectations),
                "time_seconds": self.seconds,
                **tokens,
                "tool_calls": metrics["total_tool_calls"],
                "errors": metrics["errors_encountered"],
            },
            "expectations": expectations,
            "notes": [str(note) for note in self.trace.extra.get("warnings", ())],
        }

    def execution(self) -> dict[str, Any]:
        trace = self.trace
        calls = Counter(call.name for call in trace.tool_calls)
        files = {} if self.artifact is None else self.artifact.record.after_manifest.files
        return {
            "tool_calls": dict(calls),
            "total_tool_calls": calls.total(),
            "total_steps": sum(message.role == "assistant" for message in trace.messages),
            "errors_encountered": trace.metrics.custom.get("failed_tool_results", 0),
            "output_chars": sum(files[path].size for path in self.made if path in files),
            "transcript_chars": sum(len(_plain_text(message.content)) for message in trace.messages),
        }

    @property
    def made(self) -> list[str]:
        """The files that the agent added or changed."""
        return [] if self.artifact is None else [*self.artifact.record.diff.added, *self.artifact.record.diff.modified]

    def _grading_seconds(self) -> float:
        return round(sum(row.latency_ms for row in self.cell.results) / 1000, 3)


def _summary(expectations: list[dict[str, Any]]) -> Mapping[str, Any]:
    passed, total = sum(expectation["passed"] for expectation in expectations), len(expectations)
    rate = round(passed / total, 4) if total else 0.0
    return {"pass_rate": rate, "passed": passed, "failed": total - passed, "total": total}


def _text(row: EvaluationResult, case: Case) -> str:
    if row.evaluator == USED:
        return "The skill is used." if row.passed is bool(row.detail.get("used")) else "The skill is not used."
    text = row.detail.get("text")
    if isinstance(text, str):
        return text
    spec = next((evaluator for evaluator in case.evaluators or () if evaluator.name == row.evaluator), None)
    return row.evaluator if spec is None else f"{row.evaluator}: {_plain_text(spec.config.get('value', ''))}"


def _plain_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
