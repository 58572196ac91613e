"""Runs of LangSmith, in the form of its API, its exports and its command line: one by one, or with their `child_runs`.

The shapes are those of its published run format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.call_payloads import reply_messages, request_messages
from evalwright.importers.platform_documents import number_under, platform_objects, text_of
from evalwright.importers.platform_scores import langsmith_scores
from evalwright.importers.record_values import dictionaries
from evalwright.importers.span_files import Lose
from evalwright.importers.span_messages import json_content
from evalwright.importers.spans import ReadSpans, SpanImporter
from evalwright.importers.wire_spans import WireSpan, moment_ns

__all__ = ["LangSmithRuns"]

_KINDS = {"llm": "LLM", "tool": "TOOL", "chain": "CHAIN", "retriever": "RETRIEVER", "embedding": "EMBEDDING"}
_USED = {
    "llm.token_count.prompt": ("prompt_tokens", "input_tokens"),
    "llm.token_count.completion": ("completion_tokens", "output_tokens"),
    "llm.cost.total": ("total_cost",),
}
_PACKED = ("inputs", "outputs", "extra", "tags", "feedback_stats")
"""Fields that are text with JSON in exports of many runs at once, as which they are columns of a table."""
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens")
_GIVEN = ("input_token_details", "prompt_token_details", "prompt_tokens_details")
_SAID = ("output_token_details", "completion_token_details", "completion_tokens_details")
_PARTS = {
    "llm.token_count.prompt_details.cache_read": (_GIVEN, ("cache_read", "cached_tokens")),
    "llm.token_count.prompt_details.cache_write": (_GIVEN, ("cache_creation",)),
    "llm.token_count.completion_details.reasoning": (_SAID, ("reasoning", "reasoning_tokens")),
}
"""Parts of a number of tokens: the names of the mappings in which SDKs put them, and theirs."""


def read(source: Path, lose: Lose) -> Iterator[WireSpan]:
    """The spans of a file, one for each run."""
    for place, document in platform_objects(source, lose):
        listed = document.get("runs") if isinstance(document.get("runs"), list) else [document]
        waiting = [*dictionaries(listed)]
        while waiting:
            run = _as_api(waiting.pop())
            if text_of(run.get("id")) is None or "run_type" not in run:
                lose(place, "expected a run with an id and a run_type")
                continue
            yield _span(run)
            above = {"trace_id": run.get("trace_id") or run["id"], "parent_run_id": run["id"]}
            waiting += [{**above, **child} for child in dictionaries(run.get("child_runs"))]


def _as_api(run: dict[str, Any]) -> dict[str, Any]:
    """A run in the form of the API; LangSmith's command line has other names."""
    if "run_id" not in run:
        return run
    counts = (run.get(key) for key in ("token_usage", "costs"))
    used = {key: count for count_group in counts if isinstance(count_group, dict) for key, count in count_group.items()}
    return {"id": run["run_id"], "extra": {"metadata": run.get("custom_metadata")}, **used, **run}


def _span(run: Mapping[str, Any]) -> WireSpan:
    faults: list[str] = []
    run = {**run, **{key: json_content(run.get(key)) for key in _PACKED}}
    kind = str(run["run_type"]).lower()
    error, inputs, outputs = run.get("error"), run["inputs"], run["outputs"]
    if kind == "tool":
        inputs, outputs = _tool_payload(inputs, "input"), _tool_payload(outputs, "output")
    attributes: dict[str, Any] = {"openinference.span.kind": _KINDS.get(kind, "CHAIN")}
    if kind == "llm":
        messages, replies = request_messages(inputs), reply_messages(outputs)
        attributes |= {"llm.input_messages": messages} if messages else {}
        attributes |= {"llm.output_messages": replies} if replies else {}
    attributes |= {"input.value": inputs} if inputs else {}
    attributes |= {"output.value": outputs} if outputs else {}
    attributes |= _about(run)
    attributes |= _usage_of(run, kind)
    return WireSpan(
        text_of(run.get("trace_id")) or str(run["id"]),
        str(run["id"]),
        text_of(run.get("name")) or kind,
        text_of(run.get("parent_run_id")),
        moment_ns(run.get("start_time"), "start_time", faults),
        moment_ns(run.get("end_time"), "end_time", faults),
        "error" if error else "unset",
        str(error) if error else None,
        attributes,
        faults=faults,
        scores=[*langsmith_scores(run["feedback_stats"])],
    )


def _about(run: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata and tags of a run, and its model."""
    extra = run["extra"] if isinstance(run["extra"], dict) else {}
    metadata, parameters = (extra.get(key) for key in ("metadata", "invocation_params"))
    named = ((metadata, "ls_model_name"), (parameters, "model"), (parameters, "model_name"))
    models = (text_of(holder.get(key)) for holder, key in named if isinstance(holder, dict))
    attributes = {"metadata": metadata, "tag.tags": run["tags"], "llm.model_name": next(filter(None, models), None)}
    return {name: value for name, value in attributes.items() if value}


def _tool_payload(value: Any, key: str) -> Any:
    """What a tool was given or returned, if it is a text or a single value that LangChain put below a key."""
    inside = value.get(key) if isinstance(value, dict) and value.keys() == {key} else None
    if key == "input" and not (isinstance(inside, str) and inside.startswith("{")):
        return value
    return value if inside is None else inside


def _usage_of(run: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Tokens and cost: those of the run, else for a call of a model those that its reply or its metadata has.

    Runs of other kinds repeat the replies that they get, whose tokens would count twice.
    """
    usage: dict[str, Any] = {}
    # the service writes zeros for runs whose tokens nobody counted
    counted = run if any(number_under(run, key) for key in _COUNTS) else {"total_cost": run.get("total_cost") or None}
    for holder in [counted, *(_usages(run) if kind == "llm" else ())]:
        for name, keys in _USED.items():
            _take(usage, name, [holder], keys)
        for name, (places, keys) in _PARTS.items():
            _take(usage, name, dictionaries([holder.get(place) for place in places]), keys)
    return usage


def _take(usage: dict[str, Any], name: str, holders: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> None:
    """Add the first value under one of the keys, unless there is one of that name already."""
    value = next((holder[key] for holder in holders for key in keys if holder.get(key) is not None), None)
    if value is not None:
        usage.setdefault(name, value)


def _usages(run: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Where SDKs put the usage of a call, in the order in which it is looked for."""
    for path in (
        ("outputs", "usage_metadata"),
        ("extra", "metadata", "usage_metadata"),
        ("outputs", "generations", 0, 0, "message", "kwargs", "usage_metadata"),
        ("outputs", "llm_output", "token_usage"),
        ("outputs", "usage"),
    ):
        value: Any = run
        for step in path:
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and len(value) > step else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, dict):
            yield value


class LangSmithRuns(SpanImporter):
    """Runs of LangSmith, one by one or with their `child_runs`."""

    read: ClassVar[ReadSpans] = staticmethod(read)
