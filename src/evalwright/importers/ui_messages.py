"""Messages that keep their texts, calls and results in `parts`: those of Vercel's AI SDK for user interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from evalwright.importers.blocks import lost_with
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.span_messages import Message, plain_messages

__all__ = ["messages_in_parts"]

_TOOL = "tool-"
_BESIDE = ("source-", "data-")
"""What the types of parts begin with that are shown beside the texts."""
_ATTACHED = ("file", "image")


def messages_in_parts(message: Mapping[str, Any], lost: ImportNotes) -> Iterator[Message]:
    """The message in the form of chat completions: one for each step of the model, each with the results of its calls
    behind it. What is left out is noted."""
    step: list[Message] = []
    for part in [*dictionaries(message.get("parts")), {"type": "step-start"}]:
        kind = str(part.get("type"))
        if kind == "step-start":
            yield from _step(message, step)
            step = []
            continue
        beside = kind.startswith(_BESIDE)
        if beside or kind in _ATTACHED:
            lost.lose(lost_with(kind))
        if not beside:
            step.append(part)


def _step(message: Mapping[str, Any], parts: list[Message]) -> Iterator[Message]:
    if not parts:
        return
    calls = [(_called(part), part) for part in parts]
    spoken = [part if call is None else call for call, part in calls]
    yield from plain_messages([{"role": message.get("role"), "parts": spoken}], "user")
    for call, part in calls:
        inner = _invocation(part)
        result = next((inner[key] for key in _RESULTS if inner.get(key) is not None), None)
        if call is not None and result is not None:
            result = result if isinstance(result, str | dict) else msgspec.json.encode(result).decode()
            failed = inner.get("errorText") is not None
            about = {"tool_call_id": call["toolCallId"], "name": call["toolName"], "is_error": failed}
            yield {"role": "tool", "content": result, **about}


_RESULTS = ("errorText", "output", "result")


def _called(part: Message) -> Message | None:
    """The call in a part of a tool; None for other parts. Older releases have it below `toolInvocation`."""
    inner = _invocation(part)
    kind = str(part.get("type"))
    name = inner.get("toolName") or (kind.removeprefix(_TOOL) if kind.startswith(_TOOL) else None)
    if name is None or "toolCallId" not in inner or kind in ("tool-call", "tool-result"):
        return None
    return {
        "type": "tool-call",
        "toolName": name,
        "toolCallId": inner["toolCallId"],
        "input": inner.get("input", inner.get("args")),
    }


def _invocation(part: Message) -> Message:
    inner = part.get("toolInvocation")
    return inner if isinstance(inner, dict) else part
