"""Traces of MLflow: what `Trace.to_json()` writes, and `traces.json` among a trace's artifacts; of MLflow 2, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.call_payloads import reply_messages, request_messages
from evalwright.importers.platform_documents import platform_objects, text_of
from evalwright.importers.platform_scores import mlflow_facts, mlflow_scores
from evalwright.importers.record_values import dictionaries
from evalwright.importers.span_files import Lose
from evalwright.importers.span_messages import json_content
from evalwright.importers.spans import ReadSpans, SpanImporter
from evalwright.importers.wire_spans import WireSpan, otlp_span, storable

__all__ = ["MlflowTraces"]

_KINDS = {
    "LLM": "LLM", "CHAT_MODEL": "LLM", "TOOL": "TOOL", "AGENT": "AGENT", "RETRIEVER": "RETRIEVER",
    "EMBEDDING": "EMBEDDING", "UNKNOWN": None,
}  # fmt: skip
"""Types of spans, and OpenInference's kinds; those of other types are steps of a chain."""
_TOKENS = {
    "llm.token_count.prompt": "input_tokens",
    "llm.token_count.completion": "output_tokens",
    "llm.token_count.prompt_details.cache_read": "cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_write": "cache_creation_input_tokens",
}
_USAGE, _COST = "mlflow.chat.tokenUsage", "mlflow.llm.cost"
_TOTALS = {_USAGE: "mlflow.trace.tokenUsage", _COST: "mlflow.trace.cost"}
"""What the spans of a trace have used, and where the trace has its sum, which counts where no span inside has any."""
_ABOUT = {"mlflow.trace.session": "session.id", "mlflow.trace.user": "user.id"}


def read(source: Path, lose: Lose) -> Iterator[WireSpan]:
    """The spans of a file."""
    for place, trace in platform_objects(source, lose):
        info = trace.get("info")
        data = json_content(trace.get("data", trace))
        listed = data.get("spans") if isinstance(data, dict) else None
        if not isinstance(listed, list) or not listed:
            lose(place, "expected a trace with spans")
            continue
        if (strange := len(listed) - sum(1 for _ in dictionaries(listed))) > 0:
            lose(place, f"{strange} of {len(listed)} spans are no objects")
        yield from _with_scores([*_spans(listed, place, lose)], info if isinstance(info, dict) else {}, place, lose)


def _spans(listed: list[Any], place: str, lose: Lose) -> Iterator[WireSpan]:
    for raw in dictionaries(listed):
        try:
            yield _span(raw)
        except ValueError as error:
            lose(place, str(error))


def _with_scores(spans: list[WireSpan], info: Mapping[str, Any], place: str, lose: Lose) -> list[WireSpan]:
    """The spans with what was found in them, and the first one with what is known about the whole trace."""
    ids = {span.span_id for span in spans}
    top = next((span for span in spans if span.parent_id is None), None)
    for id, score in mlflow_scores(info.get("assessments"), place, lose):
        if id in ids:
            next(span for span in spans if span.span_id == id).scores.append(score)
        elif top is not None:
            top.scores.append(score if id is None else {**score, "span": id})
    if top is not None:
        top.facts |= mlflow_facts(info.get("assessments"))
        top.attributes |= _about(info)
        if top.status != "error" and "ERROR" in (info.get("state"), info.get("status")):
            # applications may say so of a whole trace, none of whose steps failed
            top.status, top.message = "error", "the state of the trace is ERROR"
    return spans


def _about(info: Mapping[str, Any]) -> dict[str, Any]:
    """What is known about a whole trace: its session and user, its usage, and what the application itself added."""
    sections = (info.get(key) for key in ("tags", "request_metadata", "trace_metadata"))
    about = {key: value for section in sections if isinstance(section, dict) for key, value in section.items()}
    added = {key: value for key, value in about.items() if not key.startswith("mlflow.")}
    attributes = {name: about[key] for key, name in _ABOUT.items() if text_of(about.get(key)) is not None}
    total = {key: json_content(about.get(name)) for key, name in _TOTALS.items()}
    return {**attributes, **_usage_of(total), **({"metadata": added} if added else {})}


def _span(raw: Mapping[str, Any]) -> WireSpan:
    """A span. Raises ValueError without the id of a trace."""
    span = otlp_span({**_as_mlflow_3(raw), "attributes": None, "events": None}, None)
    raw_attributes = raw.get("attributes")
    raw_attributes = raw_attributes if isinstance(raw_attributes, dict) else {}
    attributes = {key: storable(_decoded(value)) for key, value in raw_attributes.items()}
    inputs, outputs = attributes.get("mlflow.spanInputs"), attributes.get("mlflow.spanOutputs")
    kind = _KINDS.get(str(attributes.get("mlflow.spanType") or "UNKNOWN"), "CHAIN")
    span.attributes = {key: value for key, value in attributes.items() if not key.startswith("mlflow.")}
    span.attributes |= {"openinference.span.kind": kind} if kind is not None else {}
    if kind == "LLM":
        messages, replies = request_messages(inputs), reply_messages(outputs)
        span.attributes |= {"llm.input_messages": messages} if messages else {}
        span.attributes |= {"llm.output_messages": replies} if replies else {}
    span.attributes |= _usage_of(attributes)
    span.attributes |= {"input.value": inputs} if inputs is not None else {}
    span.attributes |= {"output.value": outputs} if outputs is not None else {}
    if span.status == "error" and span.message is None:
        span.message = _exception(raw)
    return span


def _decoded(value: Any) -> Any:
    """The value of an attribute, which is written as JSON whatever its type; any other text as it is."""
    return None if value == "null" else json_content(value)


def _as_mlflow_3(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A span in the form of MLflow 3; MLflow 2 has its ids below `context`."""
    context = raw.get("context")
    if not isinstance(context, dict):
        return dict(raw)
    return {
        **context,
        "name": raw.get("name"),
        "parent_span_id": raw.get("parent_id"),
        "start_time_unix_nano": raw.get("start_time"),
        "end_time_unix_nano": raw.get("end_time"),
        "status": {"code": raw.get("status_code"), "message": raw.get("status_message")},
    }


def _usage_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The model of a call, its tokens and its cost."""
    usage, cost = attributes.get(_USAGE), attributes.get(_COST)
    read_attributes: dict[str, Any] = {}
    if isinstance(usage, dict):
        read_attributes |= {name: usage.get(key) for name, key in _TOKENS.items()}
    if isinstance(cost, dict):
        read_attributes["llm.cost.total"] = cost.get("total_cost")
    read_attributes["llm.model_name"] = text_of(attributes.get("mlflow.llm.model"))
    return {name: value for name, value in read_attributes.items() if value is not None}


def _exception(raw: Mapping[str, Any]) -> str | None:
    """The exception that ended a span, which is one of its events."""
    for event in dictionaries(raw.get("events")):
        about = event.get("attributes")
        if event.get("name") == "exception" and isinstance(about, dict):
            return f"{about.get('exception.type', 'exception')}: {about.get('exception.message', '')}"
    return None


class MlflowTraces(SpanImporter):
    """Traces of MLflow, as documents, in a list or one on each line."""

    read: ClassVar[ReadSpans] = staticmethod(read)
