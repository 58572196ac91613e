"""Traces of the OpenAI Agents SDK: what `export()` of its traces and spans returns, which its processors get, and what
is sent to a tracing endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.call_payloads import reply_messages, request_messages
from evalwright.importers.platform_documents import platform_objects, text_of
from evalwright.importers.record_values import dictionaries
from evalwright.importers.span_files import Lose
from evalwright.importers.spans import ReadSpans, SpanImporter
from evalwright.importers.wire_spans import WireSpan, moment_ns

__all__ = ["OpenAIAgents"]

_KINDS = {"agent": "AGENT", "function": "TOOL", "generation": "LLM", "response": "LLM"}
_READ = ("type", "name", "input", "output", "response", "usage", "model")
"""Keys of a span's data that are read; all others are kept as attributes."""
_USED = {
    "llm.token_count.prompt": ("input_tokens",),
    "llm.token_count.completion": ("output_tokens",),
    "llm.token_count.prompt_details.cache_read": ("input_tokens_details", "cached_tokens"),
    "llm.token_count.prompt_details.cache_write": ("input_tokens_details", "cache_write_tokens"),
    "llm.token_count.completion_details.reasoning": ("output_tokens_details", "reasoning_tokens"),
}


def read(source: Path, lose: Lose) -> Iterator[WireSpan]:
    """The spans of a file, and what is known of their traces."""
    for place, document in platform_objects(source, lose):
        listed = document.get("data")
        for item in map(mapping_or_empty, listed if isinstance(listed, list) else [document]):
            id, trace_id = text_of(item.get("id")), text_of(item.get("trace_id"))
            if id is not None and item.get("object") == "trace":
                yield WireSpan(id, "", attributes=_about_trace(item))
            elif id is not None and trace_id is not None and isinstance(item.get("span_data"), dict):
                yield _span(item, trace_id, id, item["span_data"])
            else:
                lose(place, "expected a trace, or a span with an id, a trace_id and span_data")


def _about_trace(trace: Mapping[str, Any]) -> dict[str, Any]:
    named = {"workflow_name": trace.get("workflow_name"), **mapping_or_empty(trace.get("metadata"))}
    return {
        "metadata": {key: value for key, value in named.items() if value is not None},
        **({"session.id": trace["group_id"]} if text_of(trace.get("group_id")) else {}),
    }


def _span(item: Mapping[str, Any], trace_id: str, id: str, data: Mapping[str, Any]) -> WireSpan:
    faults: list[str] = []
    kind, error = str(data.get("type")), item.get("error")
    return WireSpan(
        trace_id,
        id,
        text_of(data.get("name")) or kind,
        text_of(item.get("parent_id")),
        moment_ns(item.get("started_at"), "started_at", faults),
        moment_ns(item.get("ended_at"), "ended_at", faults),
        "error" if error else "unset",
        _message_of(error) if error else None,
        {
            **{key: value for key, value in data.items() if key not in _READ and value is not None},
            **({"metadata": item["metadata"]} if isinstance(item.get("metadata"), dict) else {}),
            **({"openinference.span.kind": _KINDS[kind]} if kind in _KINDS else {}),
            **_contents(data, kind),
            **_usage_of(data),
        },
        faults=faults,
    )


def _message_of(error: Any) -> str:
    """Why a span failed: the message, and the exception if its text is beside it."""
    error = error if isinstance(error, dict) else {"message": error}
    cause = mapping_or_empty(error.get("data")).get("error")
    return ": ".join(str(part) for part in (error.get("message"), cause) if part) or "error"


def _contents(data: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """What was given to a step and what it returned, except for sound."""
    given, returned = data.get("input"), data.get("output")
    if _KINDS.get(kind) != "LLM":
        shown = {"input.value": given, "output.value": returned}
        return {key: value for key, value in shown.items() if value is not None and not isinstance(value, dict)}
    response = mapping_or_empty(data.get("response"))
    model = text_of(data.get("model")) or text_of(response.get("model"))
    contents = {
        "llm.input_messages": request_messages({"messages": given, "instructions": response.get("instructions")}),
        "llm.output_messages": _replies(response, returned),
        "llm.model_name": model,
    }
    return {key: value for key, value in contents.items() if value}


def _replies(response: Mapping[str, Any], returned: Any) -> list[dict[str, Any]]:
    """The reply of a model: of a response, also as what a stream ended with; else the messages of a generation."""
    ended = [item for item in dictionaries(returned) if item.get("object") == "response"]
    return reply_messages(next(iter(ended), None) or response or {"messages": returned})


def _usage_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The tokens of a call, or of the turn or the run around it, which has the sum."""
    holders = map(mapping_or_empty, (data, data.get("data"), data.get("response")))
    usage = next((holder["usage"] for holder in holders if holder.get("usage")), None)
    found = {name: reduce(lambda at, key: mapping_or_empty(at).get(key), path, usage) for name, path in _USED.items()}
    return {name: count for name, count in found.items() if count is not None}


class OpenAIAgents(SpanImporter):
    """Traces and spans of the OpenAI Agents SDK."""

    read: ClassVar[ReadSpans] = staticmethod(read)
