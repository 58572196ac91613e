"""Turns what a Python target returns into an Answer: a text, a mapping, or an Answer.

In a mapping, texts of other types become `str`, numeric strings in metrics become numbers, lists may hold bare strings,
and null lists are empty. A key that nothing reads is an error that names it, and so is an answer without anything that
can be judged: either would look like an empty answer, which passes any check that forbids a text.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from evalwright.errors import TargetError, did_you_mean
from evalwright.files.plain import clean_text, plain
from evalwright.model.trace import Answer, Doubt, Metrics, Output, ToolCall, ToolResult, TraceMessage

__all__ = ["answer_in", "answer_of", "says_nothing", "stored_form", "unmeasured", "with_notes"]

_KEYS = frozenset(
    {"final_answer", "thinking", "structured", "tool_calls", "tool_results", "messages", "metrics", "extra"}
)
_OF_OUTPUT = frozenset({"final_answer", "thinking", "structured"})
_TEXTS = ("answer", "output", "text", "content")
"""Keys under which a structured answer may hold its text; the first one present counts."""
_INTEGERS = frozenset(
    {
        "token_input",
        "token_output",
        "token_thinking",
        "latency_first_token_ms",
        "latency_last_token_ms",
        "stream_chunks",
    }
)
_FLOATS = frozenset({"cost_usd", "cost_thinking_usd", "tokens_per_second"})

_OF_METRICS = frozenset({*_INTEGERS, *_FLOATS, "stream_completed", "custom"})
_OF_CALL = frozenset({"id", "name", "arguments", "input", "args", "type", "function", "custom", "started_at"})
"""Keys of a tool call, including those of OpenAI's API and of LangChain (`args`)."""
_OF_RESULT = frozenset({"tool_call_id", "name", "content", "role"})

_MAPPING = "a mapping (a dict with final_answer, tool_calls, ...)"
_EXPECTED = {
    False: (f"text, {_MAPPING} or an Answer", 'e.g. return "text"'),
    True: (
        f"{_MAPPING} or an Answer",
        "by the rules of evalh, a function of (case, variant) returns a mapping: to return text, give it one "
        "parameter, or leave out --format evalh",
    ),
}
"""What is expected and what helps, by whether it has to be a mapping."""


def answer_of(
    returned: Any,
    function: Any = None,
    *,
    evalh_rules: bool = False,
    any_mapping: bool = False,
    optional: Collection[str] = (),
) -> Answer:
    """The Answer in what user code returned; messages name where `function` is defined.

    Raises TargetError if it has the wrong shape, keys that nothing reads, or no content, unless `optional` contains
    final_answer. By evalh's rules text is a wrong shape, other keys are ignored, and an answer may be absent. With
    `any_mapping`, a mapping without any key of ours is the structured answer.
    """
    if returned.__class__ is dict and len(returned) == 1:
        text = returned.get("final_answer")
        if text.__class__ is str and text.isascii():  # as of most systems: there is nothing to refuse or to clean
            return Answer(Output(text))
    if isinstance(returned, Answer):
        return stored_form(returned, function)
    notes: list[str] = []
    if returned.__class__ is not dict:
        returned = _fields(returned)
    if isinstance(returned, str) and not evalh_rules:
        answer = Answer(output=Output(final_answer=_text(returned, "final_answer", notes)))
    elif returned.__class__ is not dict and not isinstance(returned, Mapping):
        wanted, hint = _EXPECTED[evalh_rules]
        raise TargetError(f"expected {wanted}, found {type(returned).__name__}{_place(function)}; {hint}")
    elif any_mapping and returned and _KEYS.isdisjoint(returned):
        answer = Answer(output=_structured(returned, notes))
    else:
        if not evalh_rules:
            _refuse_unread(returned, function)
        answer = _answer(returned if returned.__class__ is dict else dict(returned), notes)
        if not evalh_rules and answer.messages:
            _refuse_lost_calls(returned, answer, function)
        if not evalh_rules and "final_answer" not in optional and says_nothing(answer):
            raise TargetError(_without_answer(returned, function))
    return with_notes(answer, notes)


def with_notes(answer: Answer, notes: list[str]) -> Answer:
    """The answer, to which notes are added of what was replaced or left out because no record can hold it."""
    if notes:
        answer.extra = {**answer.extra, "replaced": notes}
        answer.doubts += (Doubt("a value was replaced or left out", notes[0]),)
    return answer


def stored_form(answer: Answer, function: Any) -> Answer:
    """The answer of users' code as a reader of the run will find it. Python checks no types, so without this a part of
    another type would be stored, judged, and never be readable again.

    As in a mapping, numbers that measure nothing are left out. Raises TargetError for a part of another type.
    """
    try:
        stored = msgspec.json.decode(msgspec.json.encode(answer), type=Answer)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TargetError(f"the Answer{_place(function)} cannot be stored: {error}") from None
    notes: list[str] = []
    for name in unmeasured(answer.metrics, notes):
        setattr(stored.metrics, name, None)
    return with_notes(stored, notes)


def unmeasured(metrics: Metrics, notes: list[str]) -> list[str]:
    """Names of the numbers that measure nothing, such as a negative cost. Adds a line to `notes` for each."""
    given = {name: getattr(metrics, name) for name in (*_INTEGERS, *_FLOATS)}
    return [name for name, value in given.items() if value is not None and _measured(name, value, notes) is None]


def _answer(returned: dict[str, Any], notes: list[str]) -> Answer:
    answer = Answer(output=_output(returned, notes))
    if not _OF_OUTPUT.issuperset(returned):
        if returned.get("tool_calls") is not None:
            calls = enumerate(_items(returned, "tool_calls"))
            answer.tool_calls = [_tool_call(call, f"tool_calls[{i}]", notes) for i, call in calls]
        if returned.get("tool_results") is not None:
            results = enumerate(_items(returned, "tool_results"))
            answer.tool_results = [_tool_result(result, f"tool_results[{i}]", notes) for i, result in results]
        if returned.get("messages") is not None:
            answer.messages, told = _messages(_items(returned, "messages"), notes)
            answer.tool_results = answer.tool_results or told
        if returned.get("metrics") is not None:
            answer.metrics = _metrics(returned["metrics"], notes)
        if returned.get("extra") is not None:
            answer.extra = _mapping(returned["extra"], "extra", notes)
    return answer


def _structured(returned: Mapping[str, Any], notes: list[str]) -> Output:
    text = next((returned[key] for key in _TEXTS if isinstance(returned.get(key), str)), None)
    return Output(
        final_answer=None if text is None else clean_text(text, "final_answer", notes),
        structured=plain(dict(returned), "structured", notes),
    )


def answer_in(parts: dict[str, Any]) -> Answer:
    """The Answer in a mapping with our keys and lists written by a service, which may have added keys of its own."""
    notes: list[str] = []
    answer = _answer(parts, notes)
    if notes:
        answer.extra = {**answer.extra, "replaced": notes}
    return answer


def says_nothing(answer: Answer) -> bool:
    """Whether it has neither a text, nor a structured answer, nor anything that was done on the way to one."""
    output = answer.output
    return (
        output.final_answer is None
        and output.structured is None
        and not (answer.tool_calls or answer.messages or answer.tool_results)
    )


def _fields(returned: Any) -> Any:
    """The fields of an object whose class declares them; anything else as it is."""
    if isinstance(returned, (str, Mapping, type)):
        return returned
    if dataclasses.is_dataclass(returned):
        return {field.name: getattr(returned, field.name) for field in dataclasses.fields(returned)}
    if isinstance(returned, msgspec.Struct):
        return {name: getattr(returned, name) for name in returned.__struct_fields__}
    declared = getattr(type(returned), "model_fields", None)  # pydantic's, which need not be imported for this
    if isinstance(declared, Mapping):
        return {name: getattr(returned, name) for name in declared}
    return returned


def _refuse_unread(returned: Mapping[Any, Any], function: Any) -> None:
    if _is_all_read(returned):
        return
    unread = list(_unread(returned, _KEYS, "", ", as other values belong under extra"))
    for key, known, hint in (
        ("tool_calls", _OF_CALL, ""),
        ("tool_results", _OF_RESULT, ""),
        ("metrics", _OF_METRICS, ", as other numbers belong under custom"),
    ):
        value = returned.get(key)
        items = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
        for i, item in items:
            if isinstance(item, Mapping):
                unread += _unread(item, known, key if i is None else f"{key}[{i}]", hint)
    calls = returned.get("tool_calls")
    for i, call in enumerate(calls if isinstance(calls, (list, tuple)) else ()):
        # A call without a name matches no expected tool: evaluators would report the tool missing without saying why.
        if isinstance(call, dict) and not _named(call).get("name"):
            unread.append(f"tool_calls[{i}] has no 'name'")
    if unread:
        raise TargetError(f"{'; '.join(unread)}{_place(function)}")


def _refuse_lost_calls(returned: Mapping[Any, Any], answer: Answer, function: Any) -> None:
    """Raise TargetError for a call in the messages that no evaluator would see: it would seem not to have been made."""
    if answer.tool_calls:
        return  # they are what evaluators see
    if any(message.tool_call is not None and not message.tool_call.name for message in answer.messages):
        raise TargetError(f"a tool call in messages has no 'name'{_place(function)}")
    from evalwright.model.unread_calls import unread_calls  # few answers have messages

    for i in unread_calls(returned["messages"]):
        raise TargetError(
            f"nothing reads the tool call in messages[{i}]{_place(function)}: give it as tool_calls of the message "
            "or of the whole answer"
        )


def _is_all_read(returned: Mapping[Any, Any]) -> bool:
    """Whether every key is known and every call has a name; a fast check that nearly all answers pass."""
    if not _KEYS.issuperset(returned):
        return False
    for key, known, named in (("tool_calls", _OF_CALL, True), ("tool_results", _OF_RESULT, False)):
        items = returned.get(key)
        if items is None:
            continue
        if items.__class__ is not list:
            return False
        for item in items:
            if item.__class__ is not dict or not known.issuperset(item) or (named and not item.get("name")):
                return False
    metrics = returned.get("metrics")
    return metrics is None or (metrics.__class__ is dict and _OF_METRICS.issuperset(metrics))


def _unread(given: Mapping[Any, Any], known: Collection[str], place: str, hint: str) -> Iterator[str]:
    for key in given:
        if key not in known:
            near = did_you_mean(str(key), sorted(known)) or f" (known: {', '.join(sorted(known))})"
            where = f" in {place}" if place else ""
            yield f"nothing reads the key {str(key)!r}{where}{hint}{near}"


def _without_answer(returned: Mapping[Any, Any], function: Any) -> str:
    found = f"a mapping with only {', '.join(map(repr, returned))}" if returned else "an empty mapping"
    if returned.get("final_answer", ...) is None:
        found = "final_answer is None"
    return (
        f"no answer: {found}{_place(function)}; expected text or a mapping with final_answer "
        "(allow_missing: [final_answer] of the system if it may be absent)"
    )


def _named(call: dict[str, Any]) -> dict[str, Any]:
    """The part of a tool call that has its name, which OpenAI's API nests one level deeper."""
    inner = call.get("function") or call.get("custom")
    return inner if "name" not in call and isinstance(inner, dict) else call


def _place(function: Any) -> str:
    """Where the function is defined, as `(agent.py:12)`; empty for objects without source."""
    try:
        code = inspect.unwrap(getattr(function, "func", function)).__code__
    except (AttributeError, ValueError):
        return ""
    return f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"  # noqa: PTH119


def _output(returned: dict[str, Any], notes: list[str]) -> Output:
    structured = returned.get("structured")
    if structured is not None and not isinstance(structured, dict):
        raise TargetError(f"structured must be a mapping or null, found {type(structured).__name__}")
    return Output(
        final_answer=_text(returned.get("final_answer"), "final_answer", notes),
        thinking=_text(returned.get("thinking"), "thinking", notes),
        structured=None if structured is None else plain(structured, "structured", notes),
    )


def _text(value: Any, place: str, notes: list[str]) -> str | None:
    if value is None or (type(value) is str and value.isascii()):  # nothing to clean, as in most texts
        return value
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()  # otherwise Python warns of it, too, at an unrelated place
        raise TargetError(f"{place} is a {type(value).__name__} that was never awaited: await it in an `async def`")
    return clean_text(value if type(value) is str else str(value), place, notes)


def _name(value: Any, place: str, notes: list[str]) -> str:
    return _text(value, place, notes) or ""


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
    named = _named(item)
    arguments = next((named[key] for key in ("arguments", "input", "args") if named.get(key) is not None), None)
    return ToolCall(
        name=_name(named.get("name"), place, notes),
        id=_text(item.get("id"), place, notes),
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
        tool_call_id=_text(item.get("tool_call_id"), place, notes),
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
            messages.append(TraceMessage(role="assistant", content=_text(item, place, notes)))
            continue
        calls = _calls(item, place, notes)
        called.update({call.id: call.name for call in calls if call.id is not None})
        name = item.get("name")
        message = TraceMessage(
            role=_text(item.get("role"), place, notes) or "assistant",
            content=plain(item.get("content"), f"{place}.content", notes),
            thinking=_text(item.get("thinking"), place, notes),
            tool_call=calls[0] if calls else None,
            name=_text(called.get(str(item.get("tool_call_id"))) if name is None else name, place, notes),
        )
        messages.append(message)
        messages += [TraceMessage(role=message.role, tool_call=call) for call in calls[1:]]
        if message.role == "tool":
            results.append(_tool_result({**item, "name": message.name}, place, notes))
    return messages, results


def _calls(message: dict[str, Any], place: str, notes: list[str]) -> list[ToolCall]:
    """The calls of a message: `tool_call`, or several in `tool_calls`."""
    one = message.get("tool_call")
    if one is not None:
        return [_tool_call(one, f"{place}.tool_call", notes)]
    several = enumerate(_items(message, "tool_calls", f"{place}."))
    return [_tool_call(call, f"{place}.tool_calls[{i}]", notes) for i, call in several]


def _metrics(value: Any, notes: list[str]) -> Metrics:
    if not isinstance(value, dict):
        raise TargetError(f"metrics must be a mapping, found {type(value).__name__}")
    metrics = Metrics()
    for name, given in value.items():  # only those present: most answers report two or three of twelve
        if name in _INTEGERS:
            if given.__class__ is int and 0 <= given < 2**53:  # a float represents these exactly
                setattr(metrics, name, given)
                continue
            number = _measured(name, given, notes)
            setattr(metrics, name, None if number is None else int(number))
        elif name in _FLOATS:
            setattr(metrics, name, _measured(name, given, notes))
        elif name == "stream_completed":
            metrics.stream_completed = given if isinstance(given, bool) else None
        elif name == "custom":
            metrics.custom = _mapping(given, "metrics.custom", notes)
    return metrics


def _measured(name: str, given: Any, notes: list[str]) -> float | None:
    number = _number(given)
    if number is None and given is not None:
        readable = isinstance(given, (str, float)) or (type(given) is int and -(2**63) < given < 2**63)
        found = f"{given!r:.40}" if readable else type(given).__name__
        notes.append(f"metrics.{name}: expected a finite number from 0 on, found {found}; left out")
    return number


def _number(value: Any) -> float | None:
    """A finite number from 0 on, also from a numeric string; None for anything else, including booleans.

    A negative cost would pass any limit, and lower the cost of the run.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    # Infinity minus itself is NaN, and so is NaN minus itself; and databases hold no integer beyond 64 bits.
    return number if number - number == 0 and 0 <= number < 2**63 else None
