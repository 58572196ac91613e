"""Likely mistakes in a recorded conversation that NorthStar accepts, and that nothing else would report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from evalwright.files.key_paths import Place
from evalwright.model.conversation import ConversationExpected
from evalwright.model.recordings import json_text

__all__ = ["CaseDoubt", "doubts_in"]

CaseDoubt = tuple[Place, str]
"""A place in a record, and the doubt about it."""

_SPEAKERS = ("system", "user", "tool")
_ROLES = (*_SPEAKERS, "assistant")
_FOR_JUDGES = {
    "goal": "--plan quality does",
    "rubric": "--plan quality does",
    "context": "--plan quality and --plan agentic do",
    "trace": "--plan trace does",
}
"""Keys that only graders of other plans read, and how to get them evaluated."""
_decode = msgspec.json.Decoder().decode


def doubts_in(
    messages: Sequence[dict[str, Any]], expected: ConversationExpected, *, must_expect: bool
) -> Iterator[CaseDoubt]:
    """All of them; with `must_expect` the graders judge only by what a case expects."""
    for i, message in enumerate(messages):
        if message.get("content").__class__ is str and message["content"] and _only_speaks(message):
            continue  # like nearly all
        for place, what in _doubts_about_message(message):
            yield ("messages", i, *place), what
    if must_expect:
        yield from _doubts_about_expected(expected)


def _only_speaks(message: dict[str, Any]) -> bool:
    role = message.get("role")
    return role in _SPEAKERS or (role == "assistant" and "tool_calls" not in message)


def _doubts_about_expected(expected: ConversationExpected) -> Iterator[CaseDoubt]:
    judged = False
    for key, value in zip(expected.__struct_fields__, msgspec.structs.astuple(expected), strict=True):
        if value is None:
            continue
        if key in _FOR_JUDGES:
            yield ("expected", key), f"no grader of the plan 'deterministic' reads this key: {_FOR_JUDGES[key]}"
            continue
        judged = True
        if value in ("", []) or (isinstance(value, list) and "" in value):
            yield ("expected", key), "every answer satisfies what is empty: leave it out, or say what is expected"
    if not judged:
        yield ("expected",), 'nothing is expected that a grader judges: {"contains": "..."} asks for text'


def _doubts_about_message(message: dict[str, Any]) -> Iterator[CaseDoubt]:
    role = message.get("role")
    if role not in _ROLES:
        found = "no role" if role is None else f"the role {str(role)[:40]!r}"
        yield ("role",), f"nothing reads a message with {found}: expected system, user, assistant or tool"
        return
    calls = message.get("tool_calls") or ([] if message.get("function_call") is None else [None])
    if message.get("content") in (None, "", []) and not (role == "assistant" and calls):
        yield ("content",), f"it is missing or empty: this message of the {role} says nothing"
    if role == "assistant" and isinstance(listed := message.get("tool_calls") or [], list):
        for i, call in enumerate(listed):
            for place, what in _doubts_about_call(call):
                yield ("tool_calls", i, *place), what
    elif role == "assistant":
        yield ("tool_calls",), f"expected a list of calls, found {_short_json(listed)}: no call is read from it"


def _doubts_about_call(call: Any) -> Iterator[CaseDoubt]:
    if not isinstance(call, dict):
        yield (), f"expected an object with a function, found {_short_json(call)}: no call is read from it"
        return
    function = call.get("function")
    inside, above = (function, ("function",)) if isinstance(function, dict) else (call, ())
    if not (inside.get("name") or call.get("name")):
        yield (*above, "name"), "it is missing: the call counts as one of 'unknown_tool'"
    arguments = inside.get("arguments", call.get("arguments"))
    if isinstance(arguments, str) and not _is_json(arguments):
        shown = arguments if len(arguments) <= 40 else f"{arguments[:40]}…"
        yield (*above, "arguments"), f"expected JSON, found the text {shown!r}: no arguments can be read from it"


def _short_json(value: Any) -> str:
    text = json_text(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _is_json(text: str) -> bool:
    try:
        _decode(text)
    except (ValueError, RecursionError):
        try:
            json.loads(text)  # NaN and infinities, which Python's own dialect of JSON has
        except (ValueError, RecursionError):
            return False
    return True
