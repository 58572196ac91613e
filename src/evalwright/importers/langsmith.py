"""Runs of LangSmith, in the form of its API and its exports: one by one, or with their `child_runs`.

The shapes are those of its published run format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.importers.blocks import dictionaries
from evalwright.importers.call_payloads import reply_messages, request_messages
from evalwright.importers.platform_documents import number_under, platform_objects, text_of
from evalwright.importers.platform_scores import langsmith_scores
from evalwright.importers.span_files import Lose
from evalwright.importers.spans import import_spans
from evalwright.importers.wire_spans import WireSpan, moment_ns
from evalwright.model.import_result import ImportResult

__all__ = ["LangSmithRuns"]

_KINDS = {"llm": "LLM", "tool": "TOOL", "chain": "CHAIN", "retriever": "RETRIEVER", "embedding": "EMBEDDING"}
_USED = {
    "llm.token_count.prompt": ("prompt_tokens", "input_tokens"),
    "llm.token_count.completion": ("completion_tokens", "output_tokens"),
    "llm.cost.total": ("total_cost",),
}
_GIVEN = ("input_token_details", "prompt_token_details", "prompt_tokens_details")
_SAID = ("output_token_details", "completion_token_details", "completion_tokens_details")
_PARTS = {
    "llm.token_count.prompt_details.cache_read": (_GIVEN, ("cache_read", "cached_tokens")),
    "llm.token_count.prompt_details.cache_write": (_GIVEN, ("cache_creation",)),
    "llm.token_count.completion_details.reasoning": (_SAID, ("reasoning", "reasoning_tokens")),
}
"""Parts of a number of tokens: the names of the mappings in which SDKs put them, and theirs."""


class LangSmithRuns:
    """Runs of LangSmith, one by one or with their `child_runs`."""

    @staticmethod
    def import_files(sources: Sequence[Path], out: Path, mapping: Mapping[str, str] | None = None) -> ImportResult:
        return import_spans(sources, out, mapping, read)


def read(source: Path, lose: Lose) -> Iterator[WireSpan]:
    """The spans of a file, one for each run."""
    for place, one in platform_objects(source, lose):
        listed = one.get("runs") if isinstance(one.get("runs"), list) else [one]
        waiting = [*dictionaries(listed)]
        while waiting:
            run = waiting.pop()
            if text_of(run.get("id")) is None or "run_type" not in run:
                lose(place, "expected a run with an id and a run_type")
                continue
            yield _span(run)
            above = {"trace_id": run.get("trace_id") or run["id"], "parent_run_id": run["id"]}
            waiting += [{**above, **child} for child in dictionaries(run.get("child_runs"))]


def _span(run: Mapping[str, Any]) -> WireSpan:
    faults: list[str] = []
    kind = str(run["run_type"]).lower()
    error = run.get("error")
    inputs, outputs = run.get("inputs"), run.get("outputs")
    attributes: dict[str, Any] = {"openinference.span.kind": _KINDS.get(kind, "CHAIN")}
    if kind == "llm":
        asked, replies = request_messages(inputs), reply_messages(outputs)
        attributes |= {"llm.input_messages": asked} if asked else {}
        attributes |= {"llm.output_messages": replies} if replies else {}
    attributes |= {"input.value": inputs} if inputs else {}
    attributes |= {"output.value": outputs} if outputs else {}
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
        scores=[*langsmith_scores(run.get("feedback_stats"))],
    )


def _usage_of(run: Mapping[str, Any], kind: str) -> dict[str, float]:
    """Tokens and cost: those of the run, else for a call of a model those that its reply or its metadata has.

    Runs of other kinds repeat the replies that they get, whose tokens would count twice.
    """
    found: dict[str, float] = {}
    for holder in [run, *(_usages(run) if kind == "llm" else ())]:
        for name, keys in _USED.items():
            _take(found, name, [holder], keys)
        for name, (places, keys) in _PARTS.items():
            _take(found, name, dictionaries([holder.get(place) for place in places]), keys)
    return found


def _take(found: dict[str, float], name: str, holders: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> None:
    """Add the first number under one of the keys, unless there is one of that name already."""
    numbers = (number_under(holder, key) for holder in holders for key in keys)
    value = next((number for number in numbers if number is not None), None)
    if value is not None:
        found.setdefault(name, value)


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
