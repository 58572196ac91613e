"""The parts of an Answer in a mapping with our keys, as user code returns it and services send it.

Texts of other types become `str`, numeric strings in metrics become numbers, lists may hold bare strings, and null
lists are empty. Parts of another shape raise TargetError.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from evalwright.errors import TargetError
from evalwright.files.numbers import finite_number_in
from evalwright.files.plain import clean_text, plain
from evalwright.model.trace import Answer, Doubt, Metrics, Output, ToolCall, ToolResult, TraceMessage
from evalwright.targets.library_messages import role_of

__all__ = [
    "ANSWER_KEYS",
    "CALL_KEYS",
    "METRIC_KEYS",
    "RESULT_KEYS",
    "answer_from",
    "answer_in",
    "text_part",
    "unmeasured",
    "with_name",
    "with_notes",
]

ANSWER_KEYS = frozenset(
    {"final_answer", "thinking", "structured", "tool_calls", "tool_results", "messages", "metrics", "extra"}
)
_OF_OUTPUT = frozenset({"final_answer", "thinking", "structured"})
_COUNTS = frozenset({"token_input", "token_output", "token_thinking", "stream_chunks"})
_INTEGERS = _COUNTS | {"latency_first_token_ms", "latency_last_token_ms"}
"""Of a time, what is below a millisecond is dropped; of what can be counted, there should be nothing to drop."""
_FLOATS = frozenset({"cost_usd", "cost_thinking_usd", "tokens_per_second"})
METRIC_KEYS = frozenset({*_INTEGERS, *_FLOATS, "stream_completed", "custom"})
CALL_KEYS = frozenset({"id", "name", "arguments", "input", "args", "type", "function", "custom", "started_at"})
"""Keys of a tool call, including those of OpenAI's API and of LangChain (`args`)."""
RESULT_KEYS = frozenset({"tool_call_id", "name", "content", "role"})


def answer_in(parts: dict[str, Any]) -> Answer:
    """The Answer in a mapping with our keys and lists written by a service, which may have added keys of its own."""
    notes: list[str] = []
    return with_notes(answer_from(parts, notes), notes)


def with_notes(answer: Answer, notes: list[str]) -> Answer:
    """The answer, to which notes are added of what was replaced or left out because no record can hold it."""
    if notes:
        answer.extra = {**answer.extra, "replaced": notes}
        answer.doubts += (Doubt("a value was replaced or left out", notes[0]),)
    return answer


def answer_from(returned: dict[str, Any], notes: list[str]) -> Answer:
    """The Answer in a mapping. A line is added to `notes` for each value that no record can hold."""
    answer = Answer(output=_output(returned, notes))
    if not _OF_OUTPUT.issuperset(returned):
        if returned.get("tool_calls") is not None:
            calls = enumerate(_items(returned, "tool_calls"))
            answer.tool_calls = [_tool_call(call, f"tool_calls[{i}]", notes) for i, call in calls]
        if returned.get("tool_results") is not None:
            results = enumerate(_items(returned, "tool_results"))
            answer.tool_results = [_tool_result(result, f"tool_results[{i}]", notes) for i, result in results]
        if returned.get("messages") is not None:
            answer.messages, results_of_messages = _messages(_items(returned, "messages"), notes)
            answer.tool_results = answer.tool_results or results_of_messages
        if returned.get("metrics") is not None:
            answer.metrics = _metrics(returned["metrics"], notes)
        if returned.get("extra") is not None:
            answer.extra = _mapping(returned["extra"], "extra", notes)
    return answer


def unmeasured(metrics: Metrics, notes: list[str]) -> list[str]:
    """Names of the numbers that measure nothing, such as a negative cost. Adds a line to `notes` for each."""
    values = {name: getattr(metrics, name) for name in (*_INTEGERS, *_FLOATS)}
    return [
        name for name, value in values.items() if value is not None and _measured_number(name, value, notes) is None
    ]


def with_name(call: dict[str, Any]) -> dict[str, Any]:
    """The part of a tool call that has its name, which OpenAI's API nests one level deeper."""
    inner = call.get("function") or call.get("custom")
    return inner if "name" not in call and isinstance(inner, dict) else call


def text_part(value: Any, place: str, notes: list[str]) -> str | None:
    """A value as a text that a record can hold; None stays None. Raises TargetError for what was never awaited."""
    if value is None or (type(value) is str and value.isascii()):  # nothing to clean, as in most texts
        return value
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()  # otherwise Python warns of it, too, at an unrelated place
        raise TargetError(f"{place} is a {type(value).__name__} that was never awaited: await it in an `async def`")
    return clean_text(value if type(value) is str else str(value), place, notes)


def _output(returned: dict[str, Any], notes: list[str]) -> Output:
    structured = returned.get("structured")
    if structured is not None and not isinstance(structured, dict):
        raise TargetError(f"structured must be a mapping or null, found {type(structured).__name__}")
    return Output(
        final_answer=text_part(returned.get("final_answer"), "final_answer", notes),
        thinking=text_part(returned.get("thinking"), "thinking", notes),
        structured=None if structured is None else plain(structured, "structured", notes),
    )


def _name(value: Any, place: str, notes: list[str]) -> str:
    return text_part(value, place, notes) or ""


def _items(returned: dict[str, Any], key: str, within: str = "") -> list[Any]:
    value = returned.get(key)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise TargetError(f"{within}{key} must be a list, found {type(value).__name__}")
    return list(value)


def _mapping(value: Any, place: str, notes: list[str]) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TargetError(f"{place} must be a mapping, found {type(value).__name__}")
    cleaned: dict[str, Any] = plain(value, place, notes)
    return cleaned


def _arguments(value: Any, place: str, notes: list[str]) -> dict[str, Any]:
    """A mapping, or the JSON text of one, as model APIs return it; other text is kept under `_raw`."""
    if isinstance(value, str):
        try:
            parsed = msgspec.json.decode(value) if value.strip() else {}
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            parsed = None
        value = parsed if isinstance(parsed, dict) else {"_raw": value}
    return _mapping(value, place, notes)


def _tool_call(item: Any, place: str, notes: list[str]) -> ToolCall:
    if isinstance(item, str):
        return ToolCall(name=clean_text(item, place, notes))
    if not isinstance(item, dict):
        raise TargetError(f"{place} must be a mapping or a name, found {type(item).__name__}")
    named = with_name(item)
    arguments = next((named[key] for key in ("arguments", "input", "args") if named.get(key) is not None), None)
    return ToolCall(
        name=_name(named.get("name"), place, notes),
        id=text_part(item.get("id"), place, notes),
        arguments=_arguments(arguments, f"{place}.arguments", notes),
    )


def _tool_result(item: Any, place: str, notes: list[str]) -> ToolResult:
    if not isinstance(item, dict):
        return ToolResult(name="", content=_name(item, place, notes))
    content = item.get("content")
    return ToolResult(
        name=_name(item.get("name"), place, notes),
        content=plain(content, f"{place}.content", notes)
        if isinstance(content, dict)
        else _name(content, f"{place}.content", notes),
        tool_call_id=text_part(item.get("tool_call_id"), place, notes),
    )


def _messages(items: list[Any], notes: list[str]) -> tuple[list[TraceMessage], list[ToolResult]]:
    """The messages, and the results of tools that they tell, with the ids of their calls.

    Messages in the shape of OpenAI's API are read too. Their further calls are messages of their own after the first,
    as in all traces, and their results have the name of the call.
    """
    messages: list[TraceMessage] = []
    results: list[ToolResult] = []
    called: dict[str, str] = {}
    for i, item in enumerate(items):
        place = f"messages[{i}]"
        if not isinstance(item, dict):
            messages.append(TraceMessage(role="assistant", content=text_part(item, place, notes)))
            continue
        calls = _calls(item, place, notes)
        called.update({call.id: call.name for call in calls if call.id is not None})
        name = item.get("name")
        message = TraceMessage(
            role=text_part(role_of(item), place, notes) or "assistant",
            content=plain(item.get("content"), f"{place}.content", notes),
            thinking=text_part(item.get("thinking"), place, notes),
            tool_call=calls[0] if calls else None,
            name=text_part(called.get(str(item.get("tool_call_id"))) if name is None else name, place, notes),
        )
        messages.append(message)
        messages += [TraceMessage(role=message.role, tool_call=call) for call in calls[1:]]
        if message.role == "tool":
            results.append(_tool_result({**item, "name": message.name}, place, notes))
    return messages, results


def _calls(message: dict[str, Any], place: str, notes: list[str]) -> list[ToolCall]:
    """The calls of a message: `tool_call`, or several in `tool_calls`."""
    tool_call = message.get("tool_call")
    if tool_call is not None:
        return [_tool_call(tool_call, f"{place}.tool_call", notes)]
    several = enumerate(_items(message, "tool_calls", f"{place}."))
    return [_tool_call(call, f"{place}.tool_calls[{i}]", notes) for i, call in several]


def _metrics(value: Any, notes: list[str]) -> Metrics:
    if not isinstance(value, dict):
        raise TargetError(f"metrics must be a mapping, found {type(value).__name__}")
    metrics = Metrics()
    for name, measure in value.items():  # only those present: most answers report two or three of twelve
        if name in _INTEGERS:
            if measure.__class__ is int and 0 <= measure < 2**53:  # a float represents these exactly
                setattr(metrics, name, measure)
                continue
            number = _measured_number(name, measure, notes)
            if number is not None and name in _COUNTS and not number.is_integer():
                notes.append(f"metrics.{name}: expected a whole number, found {measure!r:.40}; {int(number)} is kept")
            setattr(metrics, name, None if number is None else int(number))
        elif name in _FLOATS:
            setattr(metrics, name, _measured_number(name, measure, notes))
        elif name == "stream_completed":
            metrics.stream_completed = measure if isinstance(measure, bool) else None
        elif name == "custom":
            metrics.custom = _mapping(measure, "metrics.custom", notes)
    return metrics


def _measured_number(name: str, value: Any, notes: list[str]) -> float | None:
    number = _number(value)
    if number is None and value is not None:
        readable = isinstance(value, (str, float)) or (type(value) is int and -(2**63) < value < 2**63)
        text = f"{value!r:.40}" if readable else type(value).__name__
        notes.append(f"metrics.{name}: expected a finite number from 0 on, found {text}; left out")
    return number


def _number(value: Any) -> float | None:
    """A finite number from 0 on, also from a numeric string; None for anything else, including booleans.

    A negative cost would pass any limit, and lower the cost of the run.
    """
    number = finite_number_in(value)
    # databases hold no integer beyond 64 bits
    return number if number is not None and 0 <= number < 2**63 else None
