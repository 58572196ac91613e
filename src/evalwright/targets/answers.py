"""Turns what a Python target returns into an Answer: a text, a mapping, or an Answer; and adds what it did meanwhile.

A key that nothing reads is an error that names it, and so is an answer without anything that can be judged: either
would look like an empty answer, which passes any check that forbids a text.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from functools import wraps
from itertools import starmap
from typing import Any, TypeVar

import msgspec

from evalwright.errors import TargetError, did_you_mean
from evalwright.files.plain import clean_text, plain
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Doubt, Metrics, Output, TraceMessage
from evalwright.targets.answer_parts import (
    ANSWER_KEYS,
    CALL_KEYS,
    METRIC_KEYS,
    RESULT_KEYS,
    answer_from,
    text_part,
    unmeasured,
    with_name,
    with_notes,
)
from evalwright.targets.failures import target_failure
from evalwright.targets.library_messages import closing_text, with_mappings

__all__ = ["answer_of", "is_empty_answer", "stored_form", "traced"]

T = TypeVar("T")
Run = Callable[[T, Case, int], Awaitable[Answer]]

_TEXTS = ("answer", "output", "text", "content")
"""Keys under which a structured answer may hold its text; the first one present counts."""
_ASKING = frozenset({"user", "system", "developer"})
_OF_OUTPUT = frozenset({"final_answer", "structured"})
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


def traced(run: Run[T]) -> Run[T]:
    """Decorate the `run` of a target that calls an application's Python in this process: steps, model calls and tool
    calls are traced and complete its answer.

    If the application raises, what was traced so far is kept with the error.
    """
    from evalwright.capture.listeners import PROCESS, listening  # only such targets need it

    @wraps(run)
    async def running(target: T, case: Case, trial: int) -> Answer:
        with listening() as collected:
            try:
                answer = await run(target, case, trial)
            except Exception as error:
                if not (collected.spans or collected.steps):
                    raise
                answer = Answer(error=target_failure(error))
        if collected.spans or collected.steps:
            from evalwright.capture.traces import complete

            complete(answer, [*collected.spans, *collected.steps])
        if untraced := PROCESS.telemetry.untraced:
            answer.doubts = (*answer.doubts, *starmap(_doubt_about_calls, untraced.items()))
        return answer

    return running


def _doubt_about_calls(library: str, why: str) -> Doubt:
    return Doubt(f"model calls of {library} may be missing", why)


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
    final_answer; metrics without an answer are returned with that error. By evalh's rules text is a wrong shape, other
    keys are ignored, and an answer may be absent. With `any_mapping`, a mapping without any key of ours is the
    structured answer.
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
        answer = Answer(output=Output(final_answer=text_part(returned, "final_answer", notes)))
    elif returned.__class__ is not dict and not isinstance(returned, Mapping):
        wanted, hint = _EXPECTED[evalh_rules]
        raise TargetError(f"expected {wanted}, found {type(returned).__name__}{_place(function)}; {hint}")
    elif any_mapping and returned and ANSWER_KEYS.isdisjoint(returned):
        answer = Answer(output=_structured_output(returned, notes))
    else:
        parts = returned if returned.__class__ is dict else dict(returned)
        if not evalh_rules:
            parts = with_mappings(parts, notes)
            _refuse_unread(parts, function)
        answer = answer_from(parts, notes)
        if not evalh_rules and answer.messages:
            _refuse_lost_calls(parts, answer, function)
            if _OF_OUTPUT.isdisjoint(parts):
                answer.output.final_answer = closing_text(answer.messages)
        if not evalh_rules and "final_answer" not in optional and is_empty_answer(answer):
            missing = TargetError(_without_answer(returned, function))
            if answer.metrics == Metrics():
                raise missing
            answer.error = target_failure(missing)  # with what the call has cost
    return with_notes(answer, notes)


def stored_form(answer: Answer, function: Any) -> Answer:
    """The answer of users' code as a reader of the run will find it. Python checks no types, so without this a part of
    another type would be stored, judged, and never be readable again.

    As in a mapping, numbers that measure nothing are left out. Raises TargetError for a part of another type.
    """
    if not isinstance(answer.output, Output):
        found = type(answer.output).__name__
        raise TargetError(
            f"the output of the Answer{_place(function)} must be an Output, found {found}: write Answer.of(TEXT)"
        )
    try:
        stored = msgspec.json.decode(msgspec.json.encode(answer), type=Answer)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TargetError(f"the Answer{_place(function)} cannot be stored: {error}") from None
    notes: list[str] = []
    for name in unmeasured(answer.metrics, notes):
        setattr(stored.metrics, name, None)
    return with_notes(stored, notes)


def _structured_output(returned: Mapping[str, Any], notes: list[str]) -> Output:
    text = next((returned[key] for key in _TEXTS if isinstance(returned.get(key), str)), None)
    return Output(
        final_answer=None if text is None else clean_text(text, "final_answer", notes),
        structured=plain(dict(returned), "structured", notes),
    )


def is_empty_answer(answer: Answer) -> bool:
    """Whether it has neither a text, nor a structured answer, nor anything that was done on the way to one."""
    output = answer.output
    return (
        output.final_answer is None
        and output.structured is None
        and not (answer.tool_calls or answer.tool_results or any(map(_is_of_system, answer.messages)))
    )


def _is_of_system(message: TraceMessage) -> bool:
    """Whether the system said or did something with it: it may return what it was asked among its messages."""
    return message.role not in _ASKING and bool(message.content or message.tool_call)


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
    unread = list(_unread(returned, ANSWER_KEYS, "", ", as other values belong under extra"))
    for key, known, hint in (
        ("tool_calls", CALL_KEYS, ""),
        ("tool_results", RESULT_KEYS, ""),
        ("metrics", METRIC_KEYS, ", as other numbers belong under custom"),
    ):
        value = returned.get(key)
        items = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
        for i, item in items:
            if isinstance(item, Mapping):
                unread += _unread(item, known, key if i is None else f"{key}[{i}]", hint)
    calls = returned.get("tool_calls")
    for i, call in enumerate(calls if isinstance(calls, (list, tuple)) else ()):
        # A call without a name matches no expected tool: evaluators would report the tool missing without saying why.
        if isinstance(call, dict) and not with_name(call).get("name"):
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
    if not ANSWER_KEYS.issuperset(returned):
        return False
    for key, known, named in (("tool_calls", CALL_KEYS, True), ("tool_results", RESULT_KEYS, False)):
        items = returned.get(key)
        if items is None:
            continue
        if items.__class__ is not list:
            return False
        for item in items:
            if item.__class__ is not dict or not known.issuperset(item) or (named and not item.get("name")):
                return False
    metrics = returned.get("metrics")
    return metrics is None or (metrics.__class__ is dict and METRIC_KEYS.issuperset(metrics))


def _unread(answer: Mapping[Any, Any], known: Collection[str], place: str, hint: str) -> Iterator[str]:
    for key in answer:
        if key not in known:
            near = did_you_mean(str(key), sorted(known)) or f" (known: {', '.join(sorted(known))})"
            where = f" in {place}" if place else ""
            yield f"nothing reads the key {str(key)!r}{where}{hint}{near}"


def _without_answer(returned: Mapping[Any, Any], function: Any) -> str:
    what = f"a mapping with only {', '.join(map(repr, returned))}" if returned else "an empty mapping"
    if returned.get("messages"):
        what = "no message in messages is the system's"
    if returned.get("final_answer", ...) is None:
        what = "final_answer is None"
    return (
        f"no answer: {what}{_place(function)}; expected text or a mapping with final_answer "
        "(allow_missing: [final_answer] of the system if it may be absent)"
    )


def _place(function: Any) -> str:
    """Where the function is defined, as `(agent.py:12)`; empty for objects without source."""
    try:
        code = inspect.unwrap(getattr(function, "func", function)).__code__
    except (AttributeError, ValueError):
        return ""
    return f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"  # noqa: PTH119
