"""Spans of Braintrust's experiments and logs, in the form of its API: one row for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.call_payloads import reply_messages, request_messages
from evalwright.importers.platform_documents import number_under, platform_objects, text_of
from evalwright.importers.platform_scores import braintrust_scores
from evalwright.importers.record_values import dictionaries
from evalwright.importers.span_files import Lose
from evalwright.importers.spans import ReadSpans, SpanImporter
from evalwright.importers.wire_spans import WireEvent, WireSpan, moment_ns

__all__ = ["BraintrustSpans"]

_KINDS = {"llm": "LLM", "tool": "TOOL"}
_USED = {
    "llm.token_count.prompt": "prompt_tokens",
    "llm.token_count.completion": "completion_tokens",
    "llm.token_count.prompt_details.cache_read": "prompt_cached_tokens",
    "llm.token_count.prompt_details.cache_write": "prompt_cache_creation_tokens",
    "llm.token_count.completion_details.reasoning": "completion_reasoning_tokens",
    "llm.cost.total": "estimated_cost",
}


def read(source: Path, lose: Lose) -> Iterator[WireSpan]:
    """The spans of a file.

    A case of an experiment has a span around those of the task and of the scorers. The recording is that of the task
    alone, with what was found by the scorers, whose time and tokens are not those of the system.
    """
    tasks = _tasks(source)
    for place, row in _rows(source, lose):
        id, root = text_of(row.get("span_id")) or text_of(row.get("id")), text_of(row.get("root_span_id"))
        if id is None or root is None:
            lose(place, "expected a span with a span_id and a root_span_id")
            continue
        parent = _parent_id(row)
        scores, expected = [*braintrust_scores(row)], row.get("expected")
        facts = {"expected": expected} if expected is not None else {}
        if id in tasks:
            yield WireSpan(root, tasks[id], attributes=_labels(row), scores=scores, facts=facts)
        elif _about(row).get("purpose") != "scorer":
            yield _span(row, root, id, None if parent in tasks else parent, scores, facts)
        elif scores:
            yield WireSpan(root, tasks.get(parent or "", parent or id), scores=scores)


def _rows(source: Path, lose: Lose) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, which may be below the keys that answers of the API have."""
    for place, document in platform_objects(source, lose):
        listed = next((document[key] for key in ("events", "data") if isinstance(document.get(key), list)), None)
        for row in [document] if listed is None else dictionaries(listed):
            yield place, row


def _tasks(source: Path) -> dict[str, str]:
    """The span of the task by the one of its case."""
    cases: set[str] = set()
    tasks: dict[str, str] = {}
    for _, row in _rows(source, lambda place, why: None):
        kind, id, parent = _about(row).get("type"), text_of(row.get("span_id")), _parent_id(row)
        if kind == "eval" and id is not None and parent is None:
            cases.add(id)
        elif kind == "task" and id is not None and parent is not None:
            tasks.setdefault(parent, id)
    return {case: tasks[case] for case in cases & tasks.keys()}


def _parent_id(row: Mapping[str, Any]) -> str | None:
    parents = row.get("span_parents")
    return text_of(parents[0]) if isinstance(parents, list) and parents else None


def _about(row: Mapping[str, Any]) -> Mapping[str, Any]:
    span_attributes = row.get("span_attributes")
    return span_attributes if isinstance(span_attributes, dict) else {}


def _span(
    row: Mapping[str, Any],
    root: str,
    id: str,
    parent: str | None,
    scores: list[dict[str, Any]],
    facts: dict[str, Any],
) -> WireSpan:
    faults: list[str] = []
    kind, error = str(_about(row).get("type")), row.get("error")
    inputs, output = row.get("input"), row.get("output")
    metrics = row.get("metrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    attributes: dict[str, Any] = {"openinference.span.kind": _KINDS.get(kind, "CHAIN")}
    if kind == "llm":
        messages = request_messages(inputs)
        choices = isinstance(output, list) and any("message" in dictionary for dictionary in dictionaries(output))
        replied = reply_messages({"choices" if choices else "messages": output} if isinstance(output, list) else output)
        attributes |= {"llm.input_messages": messages} if messages else {}
        attributes |= {"llm.output_messages": replied} if replied else {}
        attributes |= {name: metrics[key] for name, key in _USED.items() if metrics.get(key) is not None}
    attributes |= _labels(row)
    attributes |= {"input.value": inputs} if inputs is not None and "llm.input_messages" not in attributes else {}
    attributes |= {"output.value": output} if output is not None and "llm.output_messages" not in attributes else {}
    return WireSpan(
        root,
        id,
        text_of(_about(row).get("name")) or kind,
        parent,
        _moment(metrics, "start", faults) or moment_ns(row.get("created"), "created", faults),
        _moment(metrics, "end", faults),
        "error" if error else "unset",
        None,
        attributes,
        [_error_event(str(error))] if error else [],
        faults=faults,
        scores=scores,
        facts=facts,
    )


def _labels(row: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata and tags of a row, and its model, which is among them."""
    metadata, tags = row.get("metadata"), row.get("tags")
    labels: dict[str, Any] = {"tag.tags": tags} if isinstance(tags, list) else {}
    if isinstance(metadata, dict) and metadata:
        labels["metadata"] = metadata
        labels |= {"llm.model_name": metadata["model"]} if text_of(metadata.get("model")) else {}
    return labels


def _error_event(error: str) -> WireEvent:
    """An error, which is mostly a text with the stack: its message is the last line in Python, else the first one."""
    lines = error.strip().splitlines() or [error]
    message = lines[-1 if lines[0].startswith("Traceback") else 0]
    stack = {"exception.stacktrace": error} if len(lines) > 1 else {}
    return WireEvent("exception", None, {"exception.message": message, **stack})


def _moment(metrics: Mapping[str, Any], key: str, faults: list[str]) -> int | None:
    """A time in seconds since 1970, in nanoseconds."""
    seconds = number_under(metrics, key)
    return moment_ns(metrics.get(key) if seconds is None else seconds * 1000, f"metrics.{key}", faults)


class BraintrustSpans(SpanImporter):
    """Spans of Braintrust's experiments and logs."""

    read: ClassVar[ReadSpans] = staticmethod(read)
