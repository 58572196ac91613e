"""Turns what a test reports into the records of a cell."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.files.plain import plain
from evalwright.formats.pixie.observer import PASSES, Note
from evalwright.model.plan import EvaluatorSpec, PassCriteria
from evalwright.model.result import Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Trace, TraceError
from evalwright.pytest_runs.registered import TestOutcome, config_of_result
from evalwright.pytest_runs.spool import SpoolRecord
from evalwright.run.records import evaluator_failure, result_of
from evalwright.scoring.verdict import cell_verdict
from evalwright.targets.failures import target_failure

__all__ = ["CRITERIA", "TESTS_VARIANT", "begun", "of_notes", "of_outcome", "record_of"]

TESTS_VARIANT = "pytest"
CRITERIA = PassCriteria(errored_evaluators="error")
_DIED = TraceError("interrupted", "the process of the test ended before there was a verdict")


def record_of(
    test: str,
    position: int,
    case: Case,
    trace: Trace,
    results: Sequence[EvaluationResult],
) -> SpoolRecord:
    """A cell with the verdict that follows from its results."""
    names = [spec.name for spec in case.evaluators or ()]
    verdict = cell_verdict(CRITERIA, names, trace, results)
    return SpoolRecord(test, position, case, trace, list(results), verdict, CRITERIA)


def begun(test: str, position: int, case: Case) -> SpoolRecord:
    """The record of a cell to keep if its process dies now."""
    return record_of(test, position, case, _trace(case, datetime.now(UTC), None, Answer(error=_DIED)), [])


def _trace(case: Case, started: datetime, finished: datetime | None, answer: Answer) -> Trace:
    finished = finished or datetime.now(UTC)
    return Trace(
        case.id,
        TESTS_VARIANT,
        started,
        finished,
        int((finished - started).total_seconds() * 1000),
        case.input,
        answer.output,
        metrics=answer.metrics,
        error=answer.error,
        extra=answer.extra,
        spans=answer.spans,
    )


def of_outcome(
    test: str, position: int, case: Case, started: datetime, status: str, error: BaseException | None
) -> SpoolRecord:
    """A cell that the test itself judged; `status` is passed, failed, error or skipped."""
    reason = "" if error is None else target_failure(error).message
    spec = EvaluatorSpec("test", "test_outcome", {"status": status, "reason": reason})
    case.evaluators = [spec]
    trace = _trace(case, started, None, Answer())
    try:
        evaluation = TestOutcome(status, reason).evaluate(case, trace)
    except EvaluatorError as failure:
        return record_of(test, position, case, trace, [_result(trace, spec, None, evaluator_failure(failure, 0))])
    return record_of(test, position, case, trace, [_result(trace, spec, evaluation, None)])


def of_notes(test: str, position: int, case_id: str, notes: Sequence[Note]) -> SpoolRecord:
    """The cell of one input that `assert_pass` or `evaluate` judged, the latter once or several times."""
    last = notes[-1]
    if len(notes) > 1:
        evaluators = [evaluator for note in notes for evaluator in note.evaluators]
        outcomes = [outcome for note in notes for outcome in note.outcomes or [note.error]]
        last = replace(last, evaluators=evaluators, outcomes=outcomes, started_at=notes[0].started_at, error=None)
    return _record_of_note(test, position, case_id, last)


def _record_of_note(test: str, position: int, case_id: str, note: Note) -> SpoolRecord:
    from evalwright.formats.pixie.target import observed_answer

    replaced: list[str] = []
    fields = _fields(note, replaced)
    captured = [{**output, "purpose": "output"} for output in fields.pop("eval_output")]
    description, specs = fields.pop("description"), _specs(note)
    own = note.given is getattr(note.evaluable, "eval_input", None)
    items = _collapsed_items(fields["eval_input"]) if own else plain(note.given, "input", replaced)
    case = Case(case_id, items, description=description, extra=fields)
    answer = observed_answer(fields, captured) if note.evaluable is not None else Answer()
    answer.error = target_failure(note.error) if note.error is not None else None
    if note.spans:
        from evalwright.capture.traces import metrics_of, spans_of

        answer.spans, answer.metrics = spans_of(note.spans), metrics_of(note.spans)
    if replaced:
        answer.extra["replaced"] = replaced
    trace = _trace(case, note.started_at, note.finished_at, answer)
    trace.latency_ms = None if note.seconds is None else int(note.seconds * 1000)
    results = _results(note, trace, specs)
    case.evaluators = [
        msgspec.structs.replace(spec, config=config_of_result(result)) if spec.type == "in_test" else spec
        for spec, result in zip(specs, results, strict=True)
    ]
    return record_of(test, position, case, trace, results)


def _fields(note: Note, notes: list[str]) -> dict[str, Any]:
    """What evaluators see, in the shape of an application's dataset entry."""
    evaluable = note.evaluable
    fields: dict[str, Any] = {
        "eval_input": _named_data(getattr(evaluable, "eval_input", None), notes)
        or [{"name": "input", "value": plain(note.given, "input", notes)}],
        "eval_output": _named_data(getattr(evaluable, "eval_output", None), notes),
        "eval_metadata": plain(getattr(evaluable, "eval_metadata", None), "eval_metadata", notes),
        "description": getattr(evaluable, "description", None),
    }
    expectation = getattr(evaluable, "expectation", None)
    if evaluable is not None and getattr(expectation, "name", "") != "UNSET":
        fields["expectation"] = plain(expectation, "expectation", notes)
    return fields


def _named_data(items: Any, notes: list[str]) -> list[dict[str, Any]]:
    return [{"name": item.name, "value": plain(item.value, item.name, notes)} for item in items or ()]


def _collapsed_items(items: Sequence[dict[str, Any]]) -> Any:
    return items[0]["value"] if len(items) == 1 else {item["name"]: item["value"] for item in items}


def _specs(note: Note) -> list[EvaluatorSpec]:
    """Evaluators, as far as re-evaluation can rebuild them by name or file; others are only named, without their
    results."""
    from evalwright.formats.pixie.surface.evaluation import label_of

    seen: dict[str, int] = {}
    specs = []
    for evaluator in note.evaluators:
        label = label_of(evaluator)
        seen[label] = count = seen.get(label, 0) + 1
        kind, config = _kind(evaluator) or ("in_test", {})
        threshold = None if note.threshold == PASSES else note.threshold
        specs.append(EvaluatorSpec(label if count == 1 else f"{label}#{count}", kind, config, threshold=threshold))
    return specs


def _kind(evaluator: Any) -> tuple[str, dict[str, Any]] | None:
    """The type and configuration that rebuild the same evaluator; None if it cannot be rebuilt from data."""
    from evalwright.formats.pixie.evaluator import TYPE

    maker = getattr(evaluator, "made_by", None)
    if maker is not None:
        name, options = maker
        try:
            build_evaluator(name, options)
        except InputError:  # such as a custom client
            return None
        return name, options
    if not inspect.isfunction(evaluator) or "<" in evaluator.__qualname__:
        return None
    file = getattr(sys.modules.get(evaluator.__module__), "__file__", None)
    if file is None or all(p.default is not p.empty for p in inspect.signature(evaluator).parameters.values()):
        return None
    return TYPE, {"reference": f"{file}:{evaluator.__qualname__}", "folders": ["."]}


def _results(note: Note, trace: Trace, specs: Sequence[EvaluatorSpec]) -> list[EvaluationResult]:
    from evalwright.formats.pixie.evaluator import judgement

    if note.error is not None:
        missing = TraceError("no_output", f"the application returned no output: {trace.error.message}")  # type: ignore[union-attr]
        return [_result(trace, spec, None, missing) for spec in specs]
    rows = []
    for spec, outcome in zip(specs, note.outcomes, strict=True):
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            rows.append(_result(trace, spec, judgement(outcome, note.threshold), None))
        except BaseException as error:
            rows.append(_result(trace, spec, None, evaluator_failure(error, 0)))
            rows[-1].detail = plain(getattr(error, "detail", {}), "detail", [])
    return rows


def _result(
    trace: Trace, spec: EvaluatorSpec, evaluation: Evaluation | None, error: TraceError | None
) -> EvaluationResult:
    row = result_of(spec, trace, evaluation, error, trace.started_at, trace.finished_at)
    row.reason, row.detail = plain(str(row.reason), "reason", []), plain(dict(row.detail), "detail", [])
    return row
