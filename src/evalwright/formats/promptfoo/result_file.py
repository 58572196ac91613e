"""promptfoo's own result file, `results.json`, which its viewer and its actions for CI read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from evalwright.files.durable import replace_file, storage_error
from evalwright.formats.promptfoo.values import dense
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader, RunWriter
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace

__all__ = ["ResultsFile", "ResultsReport"]

_Key = tuple[str, str, int]
_ASSERT, _ERROR = 1, 2
"""Why a result is no success, in promptfoo's numbers."""


class ResultsFile:
    """Writes the file at `path` whenever a session of the run ends."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._path = Path(config["path"])

    def write(self, run: RunWriter, plan: Plan, summary: RunSummary) -> None:
        """Raises StorageError."""
        text = ResultsReport().render(run, summary)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error("make", self._path.parent, error) from error
        replace_file(self._path, run.mask(text).encode("utf-8", "backslashreplace"))


class ResultsReport:
    """One JSON object with `evalId`, `results.results[]`, `results.prompts[]` and `results.stats`."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        native: Mapping[str, Any] = summary.native or {}
        document = {
            "evalId": summary.run_id,
            "results": {
                "version": 3,
                "timestamp": summary.started_at.isoformat(),
                "prompts": [_column(one, reader.plan) for one in native.get("prompts", ())],
                "results": list(_results(reader)),
                "stats": {key: native.get(key, 0) for key in ("successes", "failures", "errors")},
            },
            "config": {} if reader.plan is None else {"description": reader.plan.metadata.get("description")},
            "shareableUrl": None,
            "metadata": {"exportedBy": "evalwright"},
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _column(one: Mapping[str, Any], plan: Plan | None) -> dict[str, Any]:
    variant = next((v for v in plan.variants if v.name == one["variant"]), None) if plan is not None else None
    prompt = {} if variant is None else variant.config.get("prompt", {})
    provider = {} if variant is None else variant.config.get("provider", {})
    return {
        "raw": prompt.get("raw", ""),
        "label": prompt.get("label", one["variant"]),
        "provider": provider.get("label", one["variant"]),
        "metrics": {key: value for key, value in one.items() if key != "variant"},
    }


def _results(reader: RunReader) -> Iterator[dict[str, Any]]:
    verdicts: dict[_Key, CaseVerdict] = {}
    for verdict in reader.verdicts(CaseVerdict):
        verdicts[verdict.case_key, verdict.variant_name, verdict.trial] = verdict
    rows: dict[_Key, dict[str, EvaluationResult]] = {}
    for row in reader.results(EvaluationResult):
        rows.setdefault((row.case_key, row.variant_name, row.trial), {})[row.evaluator] = row
    columns = {} if reader.plan is None else {variant.name: i for i, variant in enumerate(reader.plan.variants)}
    trials = 1 if reader.plan is None else reader.plan.run.trials
    for trace in reader.traces(Trace):
        key = (trace.case_key, trace.variant_name, trace.trial)
        found = verdicts.get(key)
        if found is None or found.attempt != trace.attempt or found.status == "skip":
            continue
        case = Case(trace.case_id, trace.input) if trace.case_index is None else reader.case(trace.case_index)
        own = list(rows.get(key, {}).values())
        number = (trace.case_index or 0) * trials + trace.trial  # every repetition has a number of its own
        yield _result(trace, found, own, case, (number, columns.get(trace.variant_name, 0)))


def _result(
    trace: Trace, verdict: CaseVerdict, rows: list[EvaluationResult], case: Case, place: tuple[int, int]
) -> dict[str, Any]:
    seen: Mapping[str, Any] = trace.extra.get("promptfoo", {})
    reasons = "; ".join(verdict.reasons)
    named = {} if verdict.named_scores is msgspec.UNSET else verdict.named_scores
    result: dict[str, Any] = {
        "promptIdx": place[1],
        "testIdx": place[0],
        "repeatIndex": trace.trial,
        "testCase": {"vars": case.input, "description": case.description, "metadata": case.metadata},
        "prompt": {"raw": dense(seen.get("prompt", "")), "label": trace.variant_name},
        "provider": seen.get("provider", {"id": trace.variant_name, "label": ""}),
        "vars": seen.get("vars", {}),
        "success": verdict.status == "pass",
        "score": verdict.score or 0,
        "namedScores": named,
        "latencyMs": trace.latency_ms,
        "cost": trace.metrics.cost_usd or 0,
        "failureReason": 0 if verdict.status == "pass" else _ERROR if verdict.status == "error" else _ASSERT,
        "response": {"output": seen["output"]} if "output" in seen else {"error": reasons},
    }
    if verdict.status != "pass":
        result["error"] = reasons
    if verdict.status != "error":
        result["gradingResult"] = {
            "pass": verdict.status == "pass",
            "score": verdict.score or 0,
            "reason": reasons or "All assertions passed",
            "namedScores": named,
            "componentResults": [_component(row, case) for row in rows],
        }
    return result


def _component(row: EvaluationResult, case: Case) -> dict[str, Any]:
    spec = next((one for one in case.evaluators or () if one.name == row.evaluator), None)
    assertion = {} if spec is None else spec.config.get("assertion", {})
    return {
        "pass": row.passed,
        "score": row.score or 0,
        "reason": row.reason or ("Assertion passed" if row.passed else ""),
        "assertion": {"type": row.evaluator_type, **assertion},
    }
