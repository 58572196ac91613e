"""The mutants of a trace: what a mutation changes is changed wherever the trace has it.

Evaluators look at answers and calls in several places: in fields of their own, in messages, in spans, and in what the
format or the recording keeps in `extra`. A mutant that contradicted itself would survive only because of that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

import msgspec

from evalwright.audit.mutations import ANSWER_MUTATIONS, CALL_MUTATIONS, STEP_MUTATIONS, USE_MUTATIONS, Calls
from evalwright.model.cell import cell_key
from evalwright.model.recordings import text_of
from evalwright.model.trace import Output, ToolCall, Trace

__all__ = ["Mutant", "mutants_of", "use_mutants_of"]

_NOT_SAID = frozenset({"input", "prompt", "vars", "tool_return"})
"""Keys of what the system was given, by users and by tools."""
_GIVEN = frozenset({"user", "system", "developer", "tool"})
"""Roles of messages that the system did not write."""
_SHOWN = 200
_NAMES = ("name", "tool", "tool_name", "toolName")
_ARGUMENTS = ("arguments", "args", "input")


class Mutant(NamedTuple):
    """A trace after a mutation."""

    mutation: str
    trace: Trace | None
    """None if the mutation changes nothing in this trace."""
    change: str = ""


def mutants_of(trace: Trace, other: Output | None) -> Iterator[Mutant]:
    """The mutants of a trace, one for each mutation; `other` is a different answer, of another case."""
    whole = msgspec.to_builtins(trace)
    answer = trace.output
    has_answer = bool(answer.final_answer or answer.structured)
    for mutation, mutate in ANSWER_MUTATIONS.items():
        changed = mutate(answer, other) if has_answer else None
        if changed is None or _same(changed, answer):
            yield Mutant(mutation, None)
        else:
            yield Mutant(mutation, _traced(_with_answer(whole, answer, changed)), _answer_text(changed))
    for mutation, mutate_calls in CALL_MUTATIONS.items():
        mutated = mutate_calls(trace.tool_calls, _random(trace, mutation)) if trace.tool_calls else None
        if mutated is None:
            yield Mutant(mutation, None)
        else:
            yield Mutant(mutation, _traced(_with_calls(whole, trace.tool_calls, mutated.calls)), mutated.change)
    for mutation, mutate_steps in STEP_MUTATIONS.items():
        steps = mutate_steps(trace.spans, _random(trace, mutation))
        if steps is None:
            yield Mutant(mutation, None)
        else:
            yield Mutant(mutation, msgspec.structs.replace(trace, spans=[*steps.spans]), steps.change)


def use_mutants_of(trace: Trace) -> Iterator[Mutant]:
    """The mutants that only evaluators of times, costs and tokens could notice."""
    for mutation, mutate in USE_MUTATIONS.items():
        changed = mutate(trace)
        yield Mutant(mutation, None if changed == trace else changed, mutation)


def _random(trace: Trace, mutation: str) -> Random:
    """What is chosen for a trace is the same in each audit."""
    return Random(f"{cell_key(trace.case_key, trace.variant_name, trace.trial)} {mutation}")


def _traced(whole: dict[str, Any]) -> Trace:
    return msgspec.convert(whole, Trace)


def _same(one: Output, other: Output) -> bool:
    return (one.final_answer or "", one.structured) == (other.final_answer or "", other.structured)


def _answer_text(answer: Output) -> str:
    fields = json.dumps(answer.structured, ensure_ascii=False) if answer.structured else ""
    return (answer.final_answer or fields)[:_SHOWN]


def _with_answer(whole: dict[str, Any], old: Output, new: Output) -> dict[str, Any]:
    answers = _Answers(old, new)
    parts = {part: answers.replaced(whole[part]) for part in ("messages", "spans", "extra")}
    output = {**whole["output"], "final_answer": new.final_answer, "structured": new.structured}
    return {**whole, **parts, "output": output}


class _Answers:
    """Replaces an answer by another: as a text, as the document that this is in JSON, and as what is structured."""

    def __init__(self, old: Output, new: Output) -> None:
        self._text, self._new = (old.final_answer or "").strip(), new.final_answer or ""
        self._documents = [
            (before, self._new if after is None else after)
            for before, after in (
                (_document(self._text), _document(self._new)),
                (old.structured, new.structured),
            )
            if before
        ]

    def replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._new if self._text and value.strip() == self._text else value
        if not isinstance(value, (dict, list)):
            return value
        for before, after in self._documents:
            if value == before:
                return after
        if isinstance(value, list):
            return [self.replaced(item) for item in value]
        if value.get("role") in _GIVEN or _shape(value) is not None:
            return value
        return {key: item if key in _NOT_SAID else self._member(key, item) for key, item in value.items()}

    def _member(self, key: str, item: Any) -> Any:
        """A member of a mapping; the content of a message may be parts that are the answer only together."""
        parts = key == "content" and isinstance(item, list)
        if parts and self._text and (text_of(item) or "").strip() == self._text:
            return [{"type": "text", "text": self._new}]
        return self.replaced(item)


def _document(text: str) -> Any:
    """The mapping or list that a text is in JSON; None for other texts."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _with_calls(whole: dict[str, Any], old: list[ToolCall], new: Calls) -> dict[str, Any]:
    extra = {key: _CallReplacement(old, new).within(value) for key, value in whole["extra"].items()}
    changed = {part: _CallReplacement(old, new).within(whole[part]) for part in ("spans", "messages", "tool_results")}
    changed["messages"] = _answered(changed["messages"], new)
    return {**whole, **changed, "extra": extra, "tool_calls": msgspec.to_builtins([c for calls in new for c in calls])}


def _answered(messages: list[Any], new: Calls) -> list[Any]:
    """The messages without what tools answered to calls that are left out; there, only the order tells which it is."""
    places = [i for i, message in enumerate(messages) if message["role"] == "tool"]
    if len(places) != len(new):
        return messages
    gone = {place for place, calls in zip(places, new, strict=True) if not calls}
    return [message for i, message in enumerate(messages) if i not in gone]


class _CallReplacement:
    """Replaces the calls in one part of a trace, where they are recognised by their ids, or by name and order."""

    def __init__(self, old: list[ToolCall], new: Calls) -> None:
        self._old, self._new = old, new
        self._met: set[int] = set()
        ids = {call.id for call, calls in zip(old, new, strict=True) if calls}
        self._gone = {call.id for call in old} - ids - {None}

    def within(self, value: Any) -> Any:
        if isinstance(value, list):
            return [item for element in value for item in self._item(element)]
        if isinstance(value, dict):
            return {key: self.within(item) for key, item in value.items()}
        return value

    def _item(self, item: Any) -> list[Any]:
        """What stands in a list in place of an item: itself, or as many as its call has become."""
        if not isinstance(item, dict):
            return [self.within(item)]
        if (calls := self._calls_for(item)) is not None:
            return [_as_in(item, call) for call in calls]
        if isinstance(held := item.get("tool_call"), dict) and (calls := self._calls_for(held)) is not None:
            without_call = [{**item, "tool_call": None}] if not calls and item.get("content") else []
            return without_call or [{**item, **_held(item, _as_in(held, call))} for call in calls]
        if item.get("tool_call_id") in self._gone:
            return []
        changed = self.within(item)
        emptied = item.get("tool_calls") and changed.get("tool_calls") == []
        return [] if emptied and not changed.get("content") else [changed]

    def _calls_for(self, value: Mapping[str, Any]) -> list[ToolCall] | None:
        """What has become of a call; None if this is none of the trace's calls."""
        shape = _shape(value)
        if shape is None:
            return None
        alike = [i for i, call in enumerate(self._old) if call.id is not None and call.id == shape.id]
        if not alike:
            named = [i for i, call in enumerate(self._old) if call.name == shape.name and i not in self._met]
            alike = [i for i in named if None in (self._old[i].id, shape.id)]
        if not alike:
            return None
        # ids may begin again in each turn; what comes again after all of them is a further record of the last one
        which = next((i for i in alike if i not in self._met), alike[-1])
        self._met.add(which)
        return [*self._new[which]]


class _Shape(NamedTuple):
    """Where a call in a trace has its parts."""

    name: str
    id: str | None


def _shape(value: Mapping[str, Any]) -> _Shape | None:
    """None if this does not look like a call of a tool."""
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    if value.get("kind", "tool") != "tool" or not any(key in inner for key in _ARGUMENTS):
        return None
    named = next((inner[key] for key in _NAMES if isinstance(inner.get(key), str)), None)
    if named is None:
        return None
    attributes = value.get("attributes")
    ids = attributes if isinstance(attributes, dict) else value
    call_id = ids.get("tool_call_id", None if ids is attributes else value.get("id"))
    return _Shape(named, call_id if isinstance(call_id, str) else None)


def _as_in(value: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    """A call in the shape in which the trace has another one there."""
    if isinstance(value.get("function"), dict):
        return {**value, **_id_in(value, call), "function": _as_in(value["function"], call)}
    name = next(key for key in _NAMES if isinstance(value.get(key), str))
    arguments = next(key for key in _ARGUMENTS if key in value)
    new_arguments = json.dumps(call.arguments) if isinstance(value[arguments], str) else call.arguments
    return {**value, **_id_in(value, call), name: call.name, arguments: new_arguments}


def _id_in(value: Mapping[str, Any], call: ToolCall) -> dict[str, Any]:
    if isinstance(attributes := value.get("attributes"), dict):
        return {"attributes": {**attributes, "tool_call_id": call.id}} if "tool_call_id" in attributes else {}
    return {key: call.id for key in ("id", "tool_call_id") if key in value}


def _held(item: Mapping[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    return {"tool_call": call, "tool_calls": [call]} if "tool_calls" in item else {"tool_call": call}
