"""The model calls among captured spans, each once: several instrumentations may record the same call.

A framework's span is around that of the library that it calls, and the library may have spans of its own. They are
below each other, unless an instrumentation does not make its spans current, as that of LangChain: then the same call is
recognised by the id of its response, or by its time and its tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.capture.spans import LLMSpan, ObserveSpan, StepSpan, ToolCall

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["CapturedSpan", "call_tokens", "innermost", "nested", "requested"]

CapturedSpan = ObserveSpan | LLMSpan | StepSpan
_Call = LLMSpan | StepSpan

_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")


def innermost(captured: Sequence[CapturedSpan], says: Callable[[_Call], bool]) -> list[_Call]:
    """Model calls of which `says` is true and that contain no other such call."""
    spans = nested(captured)
    calls = [one for one in spans if _is_call(one) and says(one)]
    around = _around(calls, {one.span_id: one.parent_span_id for one in spans})
    return [call for call in calls if call.span_id not in around]


def _is_call(one: CapturedSpan) -> TypeIs[_Call]:
    return isinstance(one, LLMSpan) or (isinstance(one, StepSpan) and one.kind == "llm")


def _around(calls: Sequence[_Call], parents: Mapping[str, str | None]) -> set[str]:
    """The ids of all spans that contain one of the calls."""
    around: set[str] = set()
    for call in calls:
        at = call.parent_span_id
        while at is not None and at not in around:
            around.add(at)
            at = parents.get(at)
    return around


def nested(captured: Sequence[CapturedSpan]) -> list[CapturedSpan]:
    """The spans, in which a call that another instrumentation recorded, too, is below the span around it."""
    calls = sorted(filter(_is_call, captured), key=lambda one: (one.started_at, -one.ended_at.timestamp()))
    parents = {one.span_id: one.parent_span_id for one in captured}
    below: dict[str, str] = {}
    taken: set[tuple[str, str]] = set()
    for position, inner in enumerate(calls):
        for outer in reversed(calls[:position]):
            if (outer.span_id, inner.scope) not in taken and _is_around(outer, inner, parents):
                below[inner.span_id] = parents[inner.span_id] = outer.span_id
                taken.add((outer.span_id, inner.scope))
                break
    return [replace(one, parent_span_id=below.get(one.span_id, one.parent_span_id)) for one in captured]


def _is_around(outer: _Call, inner: _Call, parents: Mapping[str, str | None]) -> bool:
    """Whether two calls that are not below each other are the same."""
    if outer.scope == inner.scope or {outer.span_id, inner.span_id} & _around([outer, inner], parents):
        return False
    if (id := _response_of(outer)) is not None and id == _response_of(inner):
        return True
    counts = {call_tokens(one) for one in (outer, inner)} - {(0, 0)}
    return inner.ended_at <= outer.ended_at and len(counts) < 2


def _response_of(call: _Call) -> str | None:
    return call.response_id if isinstance(call, LLMSpan) else call.attributes.get("gen_ai.response.id")


def call_tokens(call: _Call) -> tuple[int, int]:
    """Input and output tokens; 0 for what is not reported."""
    if isinstance(call, LLMSpan):
        return call.input_tokens, call.output_tokens
    return _count(call.attributes, _INPUT), _count(call.attributes, _OUTPUT)


def _count(attributes: Mapping[str, Any], keys: Sequence[str]) -> int:
    found = next((attributes[key] for key in keys if key in attributes), 0)
    return found if isinstance(found, int) and found > 0 else 0


def requested(call: _Call) -> list[ToolCall]:
    """The tool calls in the reply of a model."""
    if isinstance(call, LLMSpan):
        return [one for message in call.output_messages for one in message.tool_calls]
    try:
        messages = json.loads(call.attributes.get("gen_ai.output.messages") or "[]")
        parts = [part for message in messages for part in message["parts"] if part["type"] == "tool_call"]
        return [ToolCall(str(part["name"]), _object(part.get("arguments")), part.get("id")) for part in parts]
    except (TypeError, ValueError, KeyError, RecursionError):
        return []  # content that is hidden or cut off: the spans of tools are left


def _object(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {"_raw": arguments}
    return arguments if isinstance(arguments, dict) else {} if arguments is None else {"_raw": arguments}
