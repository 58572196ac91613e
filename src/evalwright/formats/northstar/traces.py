"""Reads the trace that NorthStar's SDK exports into the spans of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.evaluators.steps.steps import in_order, spans_of_steps
from evalwright.files.key_paths import Place, as_written, bracketed
from evalwright.model.steps import RunFacts, Step, StepEvent, Steps
from evalwright.model.trace import Trace

__all__ = ["steps_in", "take_trace", "unread_trace_keys"]

_STATUSES = ("running", "ok", "error")
_KINDS = ("agent", "workflow", "model", "tool", "custom")
_TYPES = (
    "user_input", "system_message", "assistant_message", "reasoning", "tool_arguments", "tool_result",
    "final_response", "custom",
)  # fmt: skip
_KEYS = {
    "sessions": ("id", "created_at", "ended_at", "metadata", "project_id"),
    "runs": ("id", "session_id", "name", "started_at", "ended_at", "status", "error", "metadata"),
    "spans": (
        "id", "run_id", "parent_span_id", "kind", "name", "started_at", "ended_at", "status", "error", "iteration",
        "attributes",
    ),
    "events": ("id", "run_id", "span_id", "type", "created_at", "content", "attributes"),
}  # fmt: skip
_RUN_ID = {"sessions": None, "runs": "id", "spans": "run_id", "events": "run_id"}
"""Where a record has the id of its run."""
_MOST_WARNINGS = 20


def take_trace(payload: Mapping[str, Any], run_id: Any, trace: Trace) -> None:
    """Put the steps of one run into a trace. Raises ValueError for a payload that cannot be read."""
    trace.spans = spans_of_steps(steps_in(payload, run_id))
    unread = [
        f"{bracketed(place)}: {what}" for place, what in islice(unread_trace_keys(payload, run_id), _MOST_WARNINGS)
    ]
    if unread:
        trace.extra["warnings"] = unread


def unread_trace_keys(payload: Mapping[str, Any], run_id: Any) -> Iterator[tuple[Place, str]]:
    """The keys in the records of one run that nothing reads, and where they are; for a payload that can be read."""
    for part, known in _KEYS.items():
        for number, record in enumerate(_records(payload, part)):
            if (key := _RUN_ID[part]) is None or str(record.get(key)) == str(run_id):
                for name in record:
                    if name not in known:
                        yield (part, number, str(name)), f"nothing reads this key{did_you_mean(str(name), known)}"


def steps_in(payload: Mapping[str, Any], run_id: Any) -> Steps:
    """The steps of one run, in order. Raises ValueError for a payload that cannot be read; see `unread_trace_keys`."""
    run = _run(payload, str(run_id))
    spans = [_step(record) for record in _records_of_run(payload, "spans", run.run_id)]
    events = in_order((_event(record) for record in _records_of_run(payload, "events", run.run_id)), "created_at")
    for order, event in enumerate(events):
        event.order = order
    return Steps(run, in_order(spans, "started_at"), events)


def _run(payload: Mapping[str, Any], run_id: str) -> RunFacts:
    sessions = {str(_needed_field(session, "id", "sessions")) for session in _records(payload, "sessions")}
    for record in _records(payload, "runs"):
        if str(record.get("id")) != run_id:
            continue
        session, name = _needed_field(record, "session_id", "run"), _text(record, "name", "run")
        if str(session) not in sessions:
            raise ValueError(f"run {run_id}: its session {session} is not among the sessions")
        return RunFacts(
            run_id,
            name,
            _one_of(record, "status", _STATUSES, "run", "running"),
            _datetime_at(record, "started_at", "run"),
            _datetime_at(record, "ended_at", "run"),
            record.get("error"),
            _mapping(record, "metadata", "run"),
        )
    raise ValueError(f"run {run_id} is not among the runs")


def _records_of_run(payload: Mapping[str, Any], key: str, run_id: str) -> list[Mapping[str, Any]]:
    return [record for record in _records(payload, key) if str(_needed_field(record, "run_id", key)) == run_id]


def _records(payload: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    records = payload.get(key)
    if records is None:
        return []
    if not isinstance(records, list):
        raise ValueError(f"{key}: expected a list, found {as_written(records)}")
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise ValueError(f"{key}[{number}]: expected an object, found {as_written(record)}")
    return records


def _step(record: Mapping[str, Any]) -> Step:
    step_id = str(_needed_field(record, "id", "span"))
    where = f"span {step_id}"
    parent, iteration = record.get("parent_span_id"), record.get("iteration")
    if iteration is not None and (isinstance(iteration, bool) or not isinstance(iteration, int)):
        raise ValueError(f"{where}: iteration: expected a whole number, found {as_written(iteration)}")
    return Step(
        step_id,
        _one_of(record, "kind", _KINDS, where),
        _text(record, "name", where),
        None if parent is None else str(parent),
        _datetime_at(record, "started_at", where),
        _datetime_at(record, "ended_at", where),
        _one_of(record, "status", _STATUSES, where, "running"),
        record.get("error"),
        iteration,
        _mapping(record, "attributes", where),
    )


def _event(record: Mapping[str, Any]) -> StepEvent:
    """The SDK leaves out null content, so missing content is read as null."""
    event_id = str(_needed_field(record, "id", "event"))
    where, span_id = f"event {event_id}", record.get("span_id")
    return StepEvent(
        event_id,
        _one_of(record, "type", _TYPES, where),
        None if span_id is None else str(span_id),
        _datetime_at(record, "created_at", where),
        record.get("content"),
        _mapping(record, "attributes", where),
    )


def _needed_field(record: Mapping[str, Any], key: str, where: str) -> Any:
    if record.get(key) is None:
        raise ValueError(f"{where}: {key} is missing")
    return record[key]


def _text(record: Mapping[str, Any], key: str, where: str) -> str:
    value = _needed_field(record, key, where)
    if not isinstance(value, str):
        raise ValueError(f"{where}: {key}: expected text, found {as_written(value)}")
    return value


def _one_of(record: Mapping[str, Any], key: str, known: tuple[str, ...], where: str, default: str | None = None) -> str:
    value = record.get(key, default)
    if value not in known:
        raise ValueError(f"{where}: {key}: expected one of {', '.join(known)}, found {as_written(value)}")
    return str(value)


def _mapping(record: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    value = record.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {key}: expected an object, found {as_written(value)}")
    return value


def _datetime_at(record: Mapping[str, Any], key: str, where: str) -> datetime | None:
    value = record.get(key)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: {key}: expected an ISO 8601 time, found {as_written(value)}") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
