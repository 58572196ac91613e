"""The sessions of one call of an agent as one trace.

A program may start several sessions: a script that calls an agent in turns, or an agent that goes on in a new one.
All of them are part of the call; the last one has its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from evalwright.errors import counted
from evalwright.files.numbers import is_number
from evalwright.importers.imported_records import Imported
from evalwright.model.trace import Metrics, Span, Trace

__all__ = ["EARLIER", "joined_trace"]

EARLIER = "earlier_sessions"
"""The key of a trace's `extra` with what was recorded about the sessions before the last one."""
_OF_IMPORT = ("source", "imported_from", "warnings")
_COUNTS = ("token_input", "token_output", "token_thinking", "cost_usd")

N = TypeVar("N", int, float)


def joined_trace(imported: Sequence[Imported]) -> tuple[Trace, list[str]]:
    """The last session's trace with the messages, calls and counts of all, and warnings about them.

    Raises ValueError if there is no session.
    """
    sessions = [(recording.case_id, recording.trace) for recording in imported if recording.trace is not None]
    if not sessions:
        raise ValueError("no session")
    traces = [trace for _, trace in sessions]
    warnings = [str(warning) for trace in traces for warning in trace.extra.get("warnings", ())]
    (name, last), before = sessions[-1], sessions[:-1]
    extra = _about(last)
    if before:
        warnings.append(f"{counted(len(sessions), 'session')} in its output: the answer is that of the last, {name}")
        earlier = [{"session": name, **_about(trace)} for name, trace in before]
        extra = {**extra, EARLIER: earlier}
        for name, trace in before:
            if trace.error is not None:
                warnings.append(f"its session {name} ended with an error: {trace.error.message}")
    trace = msgspec.structs.replace(
        last,
        messages=[message for trace in traces for message in trace.messages],
        tool_calls=[call for trace in traces for call in trace.tool_calls],
        tool_results=[result for trace in traces for result in trace.tool_results],
        spans=[span for number, trace in enumerate(traces, 1) for span in _spans(trace, number)],
        metrics=_sum([trace.metrics for trace in traces]),
        extra=extra,
    )
    return trace, warnings


def _about(trace: Trace) -> dict[str, Any]:
    return {key: value for key, value in trace.extra.items() if key not in _OF_IMPORT}


def _spans(trace: Trace, number: int) -> list[Span]:
    """The spans of a session; the ids of later ones are made different, as each session counts from the beginning."""
    if number == 1:
        return trace.spans
    return [
        msgspec.structs.replace(
            span, id=f"{number}/{span.id}", parent_id=None if span.parent_id is None else f"{number}/{span.parent_id}"
        )
        for span in trace.spans
    ]


def _sum(metrics: Sequence[Metrics]) -> Metrics:
    """Only plausible numbers: an agent may print anything in their place. A count is null if no session has it."""
    counts: dict[str, Any] = {}
    for name in _COUNTS:
        is_right = _is_cost if name == "cost_usd" else _is_count
        counts[name] = _total([getattr(metrics_of_session, name) for metrics_of_session in metrics], is_right)
    custom: dict[str, Any] = {}
    for metric in metrics:
        for name, value in metric.custom.items():
            both = [custom.get(name), value]
            custom[name] = _total(both, _is_count) if all(map(_is_count, both)) else value
    return msgspec.structs.replace(metrics[-1], **counts, custom=custom)


def _total(values: Sequence[Any], is_right: Callable[[Any], bool]) -> Any:
    known = [value for value in values if is_right(value)]
    return sum(known[1:], known[0]) if known else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_cost(value: Any) -> bool:
    return is_number(value) and 0 <= value < float("inf")
