"""Runs of LangSmith, in the form of its API and its exports: one by one, or with their `child_runs`.

The shapes are those of its published run format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evalwright.importers.blocks import dictionaries
from evalwright.importers.platform_documents import number_under, platform_objects, text_of
from evalwright.importers.platform_scores import langsmith_scores
from evalwright.importers.span_files import Lose
from evalwright.importers.spans import import_spans
from evalwright.importers.wire_spans import WireSpan, moment_ns
from evalwright.model.import_result import ImportResult

__all__ = ["LangSmithRuns"]

_KINDS = {"llm": "LLM", "tool": "TOOL", "chain": "CHAIN", "retriever": "RETRIEVER", "embedding": "EMBEDDING"}
_ROLES = {
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool",
}  # fmt: skip

_USED = {
    "llm.token_count.prompt": ("prompt_tokens", "input_tokens"),
    "llm.token_count.completion": ("completion_tokens", "output_tokens"),
    "llm.cost.total": ("total_cost",),
}


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
        asked, said = _asked(inputs), _said(outputs)
        attributes |= {"llm.input_messages": asked} if asked else {}
        attributes |= {"llm.output_messages": said} if said else {}
    attributes |= {"input.value": inputs} if inputs else {}
    attributes |= {"output.value": outputs} if outputs else {}
    attributes |= _used(run, kind)
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


def _used(run: Mapping[str, Any], kind: str) -> dict[str, float]:
    """Tokens and cost: those of the run, else for a call of a model those that its reply or its metadata has.

    Runs of other kinds repeat the replies that they get, whose tokens would count twice.
    """
    found: dict[str, float] = {}
    for holder in [run, *(_usages(run) if kind == "llm" else ())]:
        for name, keys in _USED.items():
            value = next((value for key in keys if (value := number_under(holder, key)) is not None), None)
            if value is not None:
                found.setdefault(name, value)
    return found


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


def _asked(inputs: Any) -> list[dict[str, Any]]:
    given = inputs.get("messages") if isinstance(inputs, dict) else None
    if isinstance(given, list) and given and isinstance(given[0], list):
        given = given[0]  # LangChain sends batches, with one list of messages per run
    return [message for one in dictionaries(given) if (message := _message(one)) is not None]


def _said(outputs: Any) -> list[dict[str, Any]]:
    """The reply of a model in the forms of LangChain and of OpenAI."""
    if not isinstance(outputs, dict):
        return []
    if isinstance(outputs.get("generations"), list):
        first = outputs["generations"][0] if outputs["generations"] else None
        parts = [*dictionaries(first if isinstance(first, list) else [first])]
        found = [_message(part["message"]) for part in parts if isinstance(part.get("message"), dict)]
        texts = [{"role": "assistant", "content": part["text"]} for part in parts if isinstance(part.get("text"), str)]
        return [one for one in found if one is not None] or texts
    choices = [one["message"] for one in dictionaries(outputs.get("choices")) if isinstance(one.get("message"), dict)]
    messages = choices or [*dictionaries(outputs.get("messages"))] or ([outputs] if "role" in outputs else [])
    return [message for one in messages if (message := _message(one)) is not None]


def _message(one: Mapping[str, Any]) -> dict[str, Any] | None:
    """A message in OpenAI's form, from LangChain's constructor, from its fields, or already in that form."""
    if isinstance(one.get("kwargs"), dict):
        path = one.get("id")
        name = str(path[-1]).removesuffix("Chunk") if isinstance(path, list) and path else ""
        one = {"type": name, **one["kwargs"]}
        one = {**one, "type": name or one.get("type")}
    role = one.get("role") or _ROLES.get(str(one.get("type")))
    if not isinstance(role, str):
        return None
    calls = [_call(call) for call in dictionaries(one.get("tool_calls"))]
    return {
        "role": role,
        "content": one.get("content"),
        **({"tool_calls": calls} if calls else {}),
        **({"tool_call_id": one["tool_call_id"]} if isinstance(one.get("tool_call_id"), str) else {}),
    }


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(call.get("function"), dict):
        return dict(call)
    arguments = msgspec.json.encode(call.get("args") or {}).decode()
    return {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": arguments}}
