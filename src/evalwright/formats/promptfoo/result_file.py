"""promptfoo's own result file, `results.json`, which its viewer and its CI actions read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, NamedTuple

import msgspec

from evalwright.errors import counted
from evalwright.formats.promptfoo.components import components
from evalwright.formats.promptfoo.evaluator import add_measured
from evalwright.formats.promptfoo.extensions import test_of
from evalwright.formats.promptfoo.numbering import TestNumbers, test_numbers
from evalwright.formats.promptfoo.values import dense
from evalwright.formats.shared.report_file import ReportFile
from evalwright.model.plan import Plan, Variant
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.reports.cells import Choice, chosen_cells

__all__ = ["ResultsFile", "ResultsReport", "result_column", "result_columns", "written_result", "written_results"]

_NO_RESULTS = '\n    "results": []'
"""At this depth, there is no other place like it."""
_OPENING, _CLOSING = len("[\n  [\n    [\n"), len("\n    ]\n  ]\n]")
_IN_MEMORY = 16 << 20
"""Bytes of results from which on they wait on the disk."""
_ASSERT, _ERROR = 1, 2
"""Why a result is not a success, in promptfoo's numbers."""


class ResultsFile(ReportFile):
    """promptfoo's result file at `path`, written whenever a session of the run ends."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__({"report": "promptfoo", **config})

    @classmethod
    def of_stored(cls, plan: Plan, folder: Path) -> ResultsFile:
        return cls({"path": folder / "results.json"})

    def losses(self, plan: Plan, summary: RunSummary) -> Iterator[str]:
        """promptfoo has no result for a test that was skipped."""
        if skipped := sum(variant.cells.get("skip", 0) for variant in summary.variants):
            yield f"{counted(skipped, 'skipped cell')} left out: promptfoo knows passes, failures and errors only"


class ResultsReport:
    """promptfoo's result file: `evalId`, `results.results[]`, `results.prompts[]` and `results.stats`."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        return "".join(self.pieces(reader, summary))

    def pieces(self, reader: RunReader, summary: RunSummary) -> Iterator[str]:
        """The same text in pieces, one per result. What the results add up to comes before them, and they are not in
        the order of the run: their texts wait in a temporary file."""
        columns = result_columns(reader.plan)
        counted: dict[int, _Counters] = {column.number: _Counters() for column in columns.values()}
        with SpooledTemporaryFile(_IN_MEMORY) as texts:
            places = _stored_texts(_counting_results(written_results(reader, columns), counted), texts)
            before, _, after = self._around(reader, summary, columns, counted).partition(_NO_RESULTS)
            between = before + _NO_RESULTS[:-1]
            for _, start, length in places:
                texts.seek(start)
                # Within three lists, so that it is indented as far as it has to be.
                text = msgspec.json.format(b"[[[" + texts.read(length) + b"]]]", indent=2).decode()
                yield between + "\n" + text[_OPENING:-_CLOSING]
                between = ","
            yield (f"\n    ]{after}" if places else f"{between}]{after}") + "\n"

    @staticmethod
    def _around(
        reader: RunReader, summary: RunSummary, columns: Mapping[str, _Column], counted: Mapping[int, _Counters]
    ) -> str:
        """The file without its results."""
        native: Mapping[str, Any] = summary.native or {}
        own = {column["variant"]: column for column in native.get("prompts", ())}
        prompts = [(result_column(columns, name), own.get(name, {})) for name in own or columns]
        document = {
            "evalId": summary.run_id,
            "results": {
                "version": 3,
                "timestamp": summary.started_at.isoformat(),
                "prompts": [
                    column.described({**counted.get(column.number, _Counters()).metrics, **row})
                    for column, row in prompts
                ],
                "results": [],
                "stats": {
                    "successes": sum(counters.passed for counters in counted.values()),
                    "failures": sum(counters.failed for counters in counted.values()),
                    "errors": sum(counters.errors for counters in counted.values()),
                    **{key: native[key] for key in ("successes", "failures", "errors") if key in native},
                },
            },
            "config": {} if reader.plan is None else {"description": reader.plan.metadata.get("description")},
            "shareableUrl": None,
            "metadata": {"exportedBy": "evalwright"},
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _stored_texts(results: Iterable[Mapping[str, Any]], texts: IO[bytes]) -> list[tuple[tuple[int, int], int, int]]:
    """Where the text of each result is: its number and its column's, position and length, in the order of the file."""
    places, end = [], 0
    for result in results:
        text = msgspec.json.encode(result)
        places.append(((result["testIdx"], result["promptIdx"]), end, len(text)))
        texts.write(text)
        end += len(text)
    return sorted(places)


@dataclass(slots=True)
class _Counters:
    """What the results of a column add up to. A cost or number of tokens that a call does not report is not part of
    it."""

    score: float = 0.0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    cost: float = 0.0
    latency_ms: float = 0.0
    tokens: Counter[str] = field(default_factory=Counter[str])

    def add(self, result: Mapping[str, Any]) -> None:
        self.score += result["score"]
        self.passed += result["success"]
        self.failed += result["failureReason"] == _ASSERT
        self.errors += result["failureReason"] == _ERROR
        self.cost += result["cost"] or 0.0
        self.latency_ms += result["latencyMs"] or 0
        self.tokens.update({"numRequests": 1, **result["response"].get("tokenUsage", {})})

    @property
    def metrics(self) -> dict[str, Any]:
        """Under promptfoo's names."""
        return {
            "score": self.score,
            "testPassCount": self.passed,
            "testFailCount": self.failed,
            "testErrorCount": self.errors,
            "cost": self.cost,
            "totalLatencyMs": self.latency_ms,
            "tokenUsage": dict(self.tokens),
        }


def _counting_results(results: Iterable[dict[str, Any]], counted: dict[int, _Counters]) -> Iterator[dict[str, Any]]:
    """The results, each added to the counters of its column."""
    for result in results:
        counted.setdefault(result["promptIdx"], _Counters()).add(result)
        yield result


class _Column(NamedTuple):
    """A prompt with a provider, under the names that rows and the list of columns share."""

    number: int
    raw: str
    label: str
    provider: Mapping[str, str]

    def described(self, counters: Mapping[str, Any]) -> dict[str, Any]:
        provider = self.provider["label"] or self.provider["id"]
        metrics = {key: value for key, value in counters.items() if key != "variant"}
        return {"raw": self.raw, "label": self.label, "provider": provider, "metrics": metrics}


def result_columns(plan: Plan | None) -> dict[str, _Column]:
    return {} if plan is None else {variant.name: _column(i, variant) for i, variant in enumerate(plan.variants)}


def _column(number: int, variant: Variant) -> _Column:
    prompt, provider = variant.config.get("prompt"), variant.config.get("provider")
    if not isinstance(prompt, dict) or not isinstance(provider, dict):  # a run of another format
        return _nameless(variant.name, number)
    id = str(provider.get("id"))
    label = str(provider.get("label") or "")
    named = {"id": id, "label": "" if label == id else label}
    return _Column(number, str(prompt.get("raw", "")), str(prompt.get("label", variant.name)), named)


def _nameless(variant: str, number: int = 0) -> _Column:
    return _Column(number, "", variant, {"id": variant, "label": ""})


def result_column(columns: Mapping[str, _Column], variant: str) -> _Column:
    return columns.get(variant) or _nameless(variant)


def written_results(
    reader: RunReader, columns: Mapping[str, _Column], numbers: Sequence[TestNumbers] = ()
) -> Iterator[dict[str, Any]]:
    """The result of each finished cell; `numbers` are those of the cases, if not promptfoo's own."""
    plan = reader.plan
    if plan is None:
        return
    numbers = numbers or list(test_numbers(reader.cases(), _repeat(plan)))
    for cell in chosen_cells(reader, plan, (), Choice()):
        trace = cell.trace
        if not cell.is_judged or cell.verdict.status == "skip":
            continue
        case = Case(trace.case_id, trace.input) if trace.case_index is None else reader.case(trace.case_index)
        number = trace.trial if trace.case_index is None else numbers[trace.case_index].of_trial(trace.trial)
        column = result_column(columns, trace.variant_name)
        yield written_result(trace, cell.verdict, cell.results, case, number, column)


def _repeat(plan: Plan) -> int:
    """How often tests run that do not say so themselves."""
    repeat: int | None = next((variant.config.get("repeat") for variant in plan.variants), None)
    return repeat or plan.run.trials


def written_result(
    trace: Trace, verdict: CaseVerdict, rows: list[EvaluationResult], case: Case, number: int, column: _Column
) -> dict[str, Any]:
    seen: Mapping[str, Any] = trace.extra.get("promptfoo", {})
    reasons = "; ".join(verdict.reasons)
    named = {} if verdict.named_scores is msgspec.UNSET else verdict.named_scores
    result: dict[str, Any] = {
        "promptIdx": column.number,
        "testIdx": number,
        "repeatIndex": trace.trial,
        "testCase": test_of(case),
        "prompt": {"raw": dense(seen.get("prompt", "")), "label": column.label},
        "provider": column.provider,
        "vars": seen.get("vars", case.input if isinstance(case.input, dict) else {"input": case.input}),
        "success": verdict.status == "pass",
        "score": verdict.score or 0,
        "namedScores": named,
        "latencyMs": trace.latency_ms,
        "cost": trace.metrics.cost_usd,
        "failureReason": 0 if verdict.status == "pass" else _ERROR if verdict.status == "error" else _ASSERT,
        "response": _response(trace, seen, reasons),
        "metadata": {**case.metadata, **seen.get("metadata", {})},
    }
    if verdict.status != "pass":
        result["error"] = reasons
    if verdict.status != "error":
        result["gradingResult"] = {
            "pass": verdict.status == "pass",
            "score": verdict.score or 0,
            "reason": reasons or "All assertions passed",
            "namedScores": named,
            "componentResults": list(components(rows, case)),
        }
    return result


def _response(trace: Trace, seen: Mapping[str, Any], reasons: str) -> dict[str, Any]:
    output = seen.get("output", trace.output.final_answer)
    if trace.error is not None or output is None:
        return {"error": reasons}
    response = {"output": output, **seen.get("remarks", {})}
    add_measured(response, trace.metrics)
    return response
