"""What a judging program reads on stdin: the fields of AgentV 2.7, and the names that later releases give them.

AgentV's SDK for such programs validates its input and rejects null for what was not measured, so that is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.evaluators.code.transcript import events_of, known, whole_conversation
from evalwright.evaluators.limits.execution import used_by
from evalwright.evaluators.tools.calls import TracedCall, calls_of, messages_of
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["judge_payload", "trace_summary", "workspace_of"]


def judge_payload(case: Case, trace: Trace, config: Mapping[str, Any] | None, *, newer: bool) -> dict[str, Any]:
    """The document; with `newer`, `output` is the text of the answer, as in AgentV 4."""
    extra = case.extra
    answer = trace.output.final_answer or ""
    messages = [_with_named_calls(message) for message in messages_of(trace)]
    inputs = [_with_named_calls(message) for message in extra.get("input_messages", [])]
    expected = [_with_named_calls(message) for message in extra.get("expected_messages", [])]
    conversation = whole_conversation(inputs, messages)
    summary = trace_summary(trace)
    counts = (summary or {}).get("tool_calls_by_name")
    document = {
        "question": extra.get("question", case.input if isinstance(case.input, str) else ""),
        "expected_outcome": extra.get("expected_outcome") or "",
        "criteria": extra.get("expected_outcome") or "",
        "expected_messages": expected,
        "expected_output": expected,
        "reference_answer": extra.get("reference_answer", ""),
        "candidate_answer": answer,
        "answer": answer,
        "output": answer if newer else None,
        "output_messages": messages or None,
        "messages": conversation,
        "guideline_files": extra.get("guideline_files", []),
        "input_files": extra.get("input_files", []),
        "input_messages": inputs,
        "input": inputs,
        "trace": summary
        and {
            **summary,
            "tool_calls": counts,
            "messages": conversation,
            "events": events_of(conversation, calls_of(trace), answer),
        },
        "trace_summary": summary and {**summary, "tool_calls": counts},
        **{key: (summary or {}).get(key) for key in _MEASURED},
        "file_changes": trace.extra.get("file_changes"),
        "workspace_path": workspace_of(trace),
        "note": case.note,
        "case_id": case.id,
        "metadata": case.metadata,
        "conversation_id": case.group,
    }
    # Programs read `config` whether there is one or not.
    return _both_spellings({**known(document), "config": dict(config) if config else None})


_MEASURED = ("token_usage", "cost_usd", "duration_ms", "start_time", "end_time")
"""Fields of the summary that newer releases have beside it."""


def _with_named_calls(message: dict[str, Any]) -> dict[str, Any]:
    """The message without nulls; its calls have `tool` and `input`, whatever their original shape."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return known(message)
    return known({**message, "tool_calls": [_call_with_name(call) for call in calls if isinstance(call, dict)]})


def _call_with_name(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if "tool" in call or not isinstance(function, dict):
        return known(call)
    return known({"tool": str(function.get("name") or ""), "input": function.get("arguments"), **call})


def workspace_of(trace: Trace) -> str | None:
    """The folder in which the system worked; it no longer exists once the run is over."""
    path = trace.extra.get("workspace_path")
    return path if isinstance(path, str) and Path(path).is_dir() else None


def _both_spellings(document: dict[str, Any]) -> dict[str, Any]:
    """The top-level keys in camel case as well, as in the documentation of AgentEvals 1.0. Nested keys are the
    user's."""
    camel = {}
    for key, value in document.items():
        first, *rest = key.split("_")
        if rest:
            camel[first + "".join(word.capitalize() for word in rest)] = value
    return {**document, **camel}


def trace_summary(trace: Trace) -> dict[str, Any] | None:
    """AgentV's summary of a trace: calls by tool, tokens, US dollars, milliseconds, each if it was measured.

    None if the trace has no messages.
    """
    messages = messages_of(trace)
    if not messages:
        return None
    calls, used = calls_of(trace), used_by(trace)
    counted = used.input is not None and used.output is not None
    usage = known({"input": used.input, "output": used.output, "cached": used.cached}) if counted else None
    summary = {
        "event_count": len(calls),
        "tool_names": sorted({call.name for call in calls}),
        "tool_calls_by_name": dict(Counter(call.name for call in calls)),
        "error_count": 0,
        "llm_call_count": sum(message.get("role") == "assistant" for message in messages),
        "token_usage": usage,
        "cost_usd": used.cost_usd,
        "duration_ms": used.duration_ms,
        "start_time": trace.started_at.isoformat(),
        "end_time": trace.finished_at.isoformat(),
        "tool_durations": _durations(calls),
    }
    return known(summary)


def _durations(calls: Sequence[TracedCall]) -> dict[str, list[float]]:
    durations: dict[str, list[float]] = {}
    for call in calls:
        if call.duration_ms is not None:
            durations.setdefault(call.name, []).append(call.duration_ms)
    return durations
