"""The mutations: each changes the answer, the tool calls, the steps or what was used, as a system that is wrong might.

They know nothing of the suite, so some mutants are right answers, too: a refusal where one is asked for. All are
determined by what they are given, so that an audit can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from evalwright.files.numbers import is_number
from evalwright.model.trace import Output, Span, ToolCall, Trace

__all__ = [
    "ANSWER_MUTATIONS",
    "CALL_MUTATIONS",
    "MUTATIONS",
    "STEP_MUTATIONS",
    "USE_MUTATIONS",
    "Calls",
    "MutatedCalls",
    "MutatedSteps",
]

Calls = Sequence[Sequence[ToolCall]]
"""The calls that are made in place of each call of a trace: none where it is left out."""

REFUSAL = "I cannot help with that."
_OTHER_TEXT = "something else"
_OTHER_TOOL = "some_other_tool"
_OTHER_DIGITS = str.maketrans("0123456789", "1234567891")
"""Each digit becomes another, and no number gets a leading zero, which JSON does not allow."""


def _emptied(answer: Output, other: Output | None) -> Output | None:
    return Output("")


def _answer_of_another_case(answer: Output, other: Output | None) -> Output | None:
    return other


def _half(answer: Output, other: Output | None) -> Output | None:
    text, fields = answer.final_answer or "", answer.structured or {}
    half = text[: len(text) // 2].rstrip()
    first_half = dict([*fields.items()][: len(fields) // 2])
    return Output(half, structured=first_half or None) if half or first_half else None


def _other_numbers(answer: Output, other: Output | None) -> Output | None:
    text = answer.final_answer
    changed = None if text is None else text.translate(_OTHER_DIGITS)
    return Output(changed, structured=_with_other_numbers(answer.structured))


def _refused(answer: Output, other: Output | None) -> Output | None:
    return Output(REFUSAL)


def _with_other_numbers(value: Any) -> Any:
    """A JSON value with other digits in its texts and numbers; keys stay."""
    if isinstance(value, str):
        return value.translate(_OTHER_DIGITS)
    if is_number(value):
        return json.loads(json.dumps(value).translate(_OTHER_DIGITS))
    if isinstance(value, list):
        return [_with_other_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_other_numbers(item) for key, item in value.items()}
    return value


ANSWER_MUTATIONS: Mapping[str, Callable[[Output, Output | None], Output | None]] = {
    "answer emptied": _emptied,
    "answer of another case": _answer_of_another_case,
    "answer cut in half": _half,
    "other numbers in the answer": _other_numbers,
    "refusal instead of the answer": _refused,
}
"""Each takes the answer and that of another case, if there is a different one; None if it does not apply.

One that returns an equal answer does not apply, either.
"""


class MutatedCalls(NamedTuple):
    calls: Calls
    change: str


def _left_out(calls: Sequence[ToolCall], random: Random) -> MutatedCalls | None:
    chosen = random.randrange(len(calls))
    return MutatedCalls([[] if i == chosen else [call] for i, call in enumerate(calls)], f"no {calls[chosen].name}")


def _other_argument(calls: Sequence[ToolCall], random: Random) -> MutatedCalls | None:
    places = [(i, key) for i, call in enumerate(calls) for key, value in call.arguments.items() if value is not None]
    if not places:
        return None
    chosen, key = random.choice(places)
    call = calls[chosen]
    new_value = _other(call.arguments[key])
    changed = msgspec.structs.replace(call, arguments={**call.arguments, key: new_value})
    change = f"{call.name}({key}={json.dumps(new_value, ensure_ascii=False)})"
    return MutatedCalls([[changed if i == chosen else one] for i, one in enumerate(calls)], change)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    changed = _with_other_numbers(value)
    return changed if changed != value else _OTHER_TEXT


def _reversed(calls: Sequence[ToolCall], random: Random) -> MutatedCalls | None:
    turned = [*reversed(calls)]
    if [_what(call) for call in turned] == [_what(call) for call in calls]:
        return None
    return MutatedCalls([[call] for call in turned], ", ".join(call.name for call in turned))


def _what(call: ToolCall) -> tuple[str, dict[str, Any]]:
    return call.name, call.arguments


def _twice(calls: Sequence[ToolCall], random: Random) -> MutatedCalls | None:
    chosen = random.randrange(len(calls))
    again = _after(calls[chosen], calls[chosen].name, calls[chosen].arguments)
    return MutatedCalls([[call, again] if i == chosen else [call] for i, call in enumerate(calls)], again.name)


def _one_more(calls: Sequence[ToolCall], random: Random) -> MutatedCalls | None:
    more = _after(calls[-1], _OTHER_TOOL, {})
    return MutatedCalls([*([call] for call in calls[:-1]), [calls[-1], more]], more.name)


def _after(call: ToolCall, name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(name, None if call.id is None else f"{call.id}-more", arguments, call.started_at)


CALL_MUTATIONS: Mapping[str, Callable[[Sequence[ToolCall], Random], MutatedCalls | None]] = {
    "tool call left out": _left_out,
    "other argument of a tool call": _other_argument,
    "tool calls in reverse order": _reversed,
    "tool call made twice": _twice,
    "call of another tool added": _one_more,
}
"""Each takes the calls of a trace, of which there is at least one; None if it does not apply."""


class MutatedSteps(NamedTuple):
    spans: Sequence[Span]
    change: str


def _step_left_out(spans: Sequence[Span], random: Random) -> MutatedSteps | None:
    """Without a step that has none below it. Tool calls are left out by a mutation of their own."""
    above = {span.parent_id for span in spans}
    steps = [span for span in spans if span.parent_id is not None and span.id not in above and span.kind != "tool"]
    if not steps:
        return None
    chosen = random.choice(steps)
    return MutatedSteps([span for span in spans if span is not chosen], f"no {chosen.name}")


STEP_MUTATIONS: Mapping[str, Callable[[Sequence[Span], Random], MutatedSteps | None]] = {
    "step left out": _step_left_out,
}
"""Each takes the spans of a trace; None if it does not apply."""

_MORE = 10
_TIMES = ("latency_first_token_ms", "latency_last_token_ms")
_COSTS = ("cost_usd", "cost_thinking_usd")
_TOKENS = ("token_input", "token_output", "token_thinking")


def _slower(trace: Trace) -> Trace:
    speed = trace.metrics.tokens_per_second
    metrics = msgspec.structs.replace(trace.metrics, tokens_per_second=None if speed is None else speed / _MORE)
    slower = msgspec.structs.replace(trace, metrics=metrics, latency_ms=_times_more(trace.latency_ms))
    return _using_more(slower, _TIMES, "duration_ms")


def _dearer(trace: Trace) -> Trace:
    return _using_more(trace, _COSTS)


def _wordier(trace: Trace) -> Trace:
    return _using_more(trace, _TOKENS, "token_usage")


def _using_more(trace: Trace, metrics: Sequence[str], in_extra: str = "") -> Trace:
    more = {name: _times_more(getattr(trace.metrics, name)) for name in metrics}
    extra = {key: _times_more(value) if key == in_extra else value for key, value in trace.extra.items()}
    return msgspec.structs.replace(trace, metrics=msgspec.structs.replace(trace.metrics, **more), extra=extra)


def _times_more(value: Any) -> Any:
    """A number, or the numbers in a mapping; all else stays as it is."""
    if isinstance(value, dict):
        return {key: _times_more(item) for key, item in value.items()}
    return value * _MORE if is_number(value) else value


USE_MUTATIONS: Mapping[str, Callable[[Trace], Trace]] = {
    "ten times as slow": _slower,
    "ten times the cost": _dearer,
    "ten times the tokens": _wordier,
}
"""Each takes a trace; one that returns an equal trace does not apply."""

MUTATIONS: Sequence[str] = (*ANSWER_MUTATIONS, *CALL_MUTATIONS, *STEP_MUTATIONS, *USE_MUTATIONS)
"""The names of all mutations, in the order of reports."""
