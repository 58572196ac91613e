"""Reports of pydantic_evals: what a task returned for each case of a dataset, and what its evaluators found."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from evalwright.files.key_paths import Place, bracketed
from evalwright.files.numbers import is_number
from evalwright.files.yaml import Document
from evalwright.importers.imported_records import Imported, ImportFindings
from evalwright.importers.pydantic_evaluators import expected_field
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_milliseconds, token_count
from evalwright.importers.transcript import Transcript
from evalwright.model.trace import TraceError

__all__ = ["input_of", "is_report", "metadata_of", "report_cases"]

_REPORT = ("name", "dataset_name", "cases", "failures", "experiment_metadata", "trace_id", "span_id")
_CASE = (
    "name", "source_case_name", "inputs", "metadata", "expected_output", "output", "metrics", "attributes", "scores",
    "labels", "assertions", "evaluator_failures", "task_duration", "total_duration", "trace_id", "span_id",
    "error_message", "error_stacktrace",
)  # fmt: skip
_SENT, _WRITTEN, _COST = "input_tokens", "output_tokens", "cost"
"""The names that pydantic_evals gives to what it counts in the spans of a task."""


def is_report(document: Any) -> bool:
    """Whether a document of pydantic_evals is a report, not a dataset."""
    cases = document.get("cases") if isinstance(document, dict) else None
    return isinstance(cases, list) and (
        isinstance(document.get("failures"), list) or any("output" in case for case in dictionaries(cases))
    )


def report_cases(file: Path, document: Document, findings: ImportFindings) -> Iterator[Imported]:
    """The recordings of a report. The runs of a case are its trials, and each report of another name is a system."""
    report = document.value
    if isinstance(name := report.get("dataset_name"), str):
        findings.name = name
    _count_unread(report, _REPORT, "the report", findings.notes)
    system = str(report.get("name") or "recorded")
    for key in ("cases", "failures"):
        listed = report.get(key) or []
        if not isinstance(listed, list):
            message = f"expected a list of cases, found {described(listed)}"
            findings.mistakes.add(file, message, document.line((key,)), key)
            continue
        for position, case in enumerate(listed):
            place: Place = (key, position)
            if not isinstance(case, dict) or "inputs" not in case:
                message = f"expected a case with inputs, found {described(case)}"
                findings.mistakes.add(file, message, document.line(place), bracketed(place))
                continue
            yield _record(file, case, place, system, findings)


def input_of(case: dict[str, Any]) -> dict[str, Any]:
    """The input of a case as ours, which is always a mapping."""
    inputs = case["inputs"]
    return dict(inputs) if isinstance(inputs, dict) else {"inputs": inputs}


def metadata_of(case: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a case as ours, which is always a mapping."""
    metadata = case.get("metadata")
    return metadata if isinstance(metadata, dict) else {} if metadata is None else {"metadata": metadata}


def _record(file: Path, case: dict[str, Any], place: Place, system: str, findings: ImportFindings) -> Imported:
    notes = findings.notes
    _count_unread(case, _CASE, "cases", notes)
    talk = Transcript()
    talk.user(_as_text(case["inputs"]))
    if place[0] == "failures":
        stack = case.get("error_stacktrace")
        message = str(case.get("error_message") or "the task failed")
        talk.error = TraceError("task_error", message, stack if isinstance(stack, str) else None)
    else:
        _answer(talk, case.get("output"))
    metrics = _mapping(case, "metrics")
    talk.tokens = Tokens(
        token_count(metrics.get(_SENT), notes),
        token_count(metrics.get(_WRITTEN), notes),
        cost=recorded_dollars(metrics.get(_COST), notes),
    )
    talk.latency_ms = recorded_milliseconds(case.get("task_duration"), notes, unit=1000)
    measured = {name: number for name, number in metrics.items() if name not in (_SENT, _WRITTEN, _COST)}
    scores = _scores(talk, case)
    talk.custom = {**{name: number for name, number in measured.items() if is_number(number)}, **talk.custom}
    beside = {key: case[key] for key in ("attributes", "trace_id") if case.get(key)}
    origin = {"imported_from": {"file": file.name, "format": "pydantic-evals", "key": bracketed(place)}}
    expected = case.get("expected_output")
    return Imported(
        file,
        str(case.get("source_case_name") or case.get("name") or f"case-{bracketed(place)}"),
        input_of(case),
        talk.trace(system, {**beside, **({"recorded_scores": scores} if scores else {}), **origin}),
        expected={"facts": {} if expected is None else {"expected_output": expected}},
        metadata=metadata_of(case),
        record=case,
        key=bracketed(place),
        authored=True,
    )


def _answer(talk: Transcript, output: Any) -> None:
    """What the task returned, where evaluators of an imported dataset look for it."""
    talk.turn().add_text(_as_text(output))
    if expected_field(output) == "output.structured":
        talk.structured = output
    elif not isinstance(output, str):
        talk.structured = {"value": output}


def _scores(talk: Transcript, case: dict[str, Any]) -> list[dict[str, Any]]:
    """What the evaluators found. All assertions together are the reward; without the result of an evaluator that
    failed, it is known only if another one did not hold."""
    listed = []
    for kind in ("assertions", "scores", "labels"):
        for name, result in _mapping(case, kind).items():
            value = result.get("value") if isinstance(result, dict) else None
            passed = value if isinstance(value, bool) else None
            score = float(value) if isinstance(value, bool | int | float) else None
            label = {"label": value} if isinstance(value, str) else {}
            reason = result.get("reason") if isinstance(result, dict) else None
            listed.append({"name": name, "passed": passed, "score": score, "reason": reason, **label})
            if score is not None:
                talk.custom.setdefault(name, score)
    failed = [*dictionaries(case.get("evaluator_failures"))]
    listed += [
        {"name": str(failure.get("name")), "passed": None, "score": None, "reason": failure.get("error_message")}
        for failure in failed
    ]
    verdicts = [score["passed"] for score in listed if score["passed"] is not None]
    if verdicts and (not failed or not all(verdicts)):
        talk.custom["reward"] = float(all(verdicts))
    return listed


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _mapping(case: dict[str, Any], key: str) -> dict[str, Any]:
    value = case.get(key)
    return value if isinstance(value, dict) else {}


def _count_unread(record: dict[str, Any], known: Collection[str], of: str, notes: ImportNotes) -> None:
    for key, value in record.items():
        if key not in known and value not in (None, [], {}):
            notes.lose(f"keys {key!r} of {of}")
