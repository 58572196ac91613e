"""The messages of a trace, and the tool calls that they do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from evalwright.model.trace import Trace, TraceMessage
from evalwright.reports.inspection import calls_with_results
from evalwright.viewer.pages.blocks import Blocks, ShownText

__all__ = ["MOST_ON_A_PAGE", "MessageRow", "ToolCalls", "ends", "shown_messages", "unsaid_calls"]

MOST_ON_A_PAGE = 100
"""Messages, and tool calls, on a page: of more, the first and the last half."""
T = TypeVar("T")


class MessageRow(NamedTuple):
    """One message of the conversation."""

    number: int
    role: str
    name: str
    content: list[ShownText]
    thinking: ShownText | None
    call: str
    arguments: ShownText | None


class ToolCalls(NamedTuple):
    """Tool calls as number, name, arguments and result."""

    rows: list[tuple[int, str, ShownText | None, ShownText | None]]
    hidden: int


def ends(items: Iterable[T], most: int | None = MOST_ON_A_PAGE) -> tuple[list[tuple[int, T]], int]:
    """The items with their places; of more than `most`, the first and the last half of them, and how many are left out.

    The beginning and the end of a long conversation show what went wrong.
    """
    placed = list(enumerate(items))
    hidden = 0 if most is None else max(0, len(placed) - most)
    if most is not None and hidden:
        placed[most // 2 : most // 2 + hidden] = []
    return placed, hidden


def shown_messages(messages: Iterable[tuple[int, TraceMessage]], blocks: Blocks) -> Iterator[MessageRow]:
    """Messages with their places among all messages of the trace, as rows."""
    for place, message in messages:
        at = f"trace/messages/{place}"
        call, content = message.tool_call, message.content
        if isinstance(content, list):
            parts = [blocks.of(part, f"{at}/content/{i}") for i, part in enumerate(content)]
        else:
            parts = [] if content is None else [blocks.of(content, f"{at}/content")]
        yield MessageRow(
            place + 1,
            message.role,
            message.name or "",
            parts,
            blocks.of(message.thinking, f"{at}/thinking") if message.thinking else None,
            "" if call is None else call.name,
            None if call is None else blocks.of(call.arguments, f"{at}/tool_call/arguments"),
        )


def _are_calls_in_messages(trace: Trace) -> bool:
    """Whether the messages contain every tool call and every result."""
    calls = {
        _call_key(message.tool_call.name, message.tool_call.arguments)
        for message in trace.messages
        if message.tool_call is not None
    }
    contents = {_call_key(message.content) for message in trace.messages}
    return all(_call_key(call.name, call.arguments) in calls for call in trace.tool_calls) and all(
        _call_key(result.content) in contents for result in trace.tool_results
    )


def _call_key(*values: Any) -> bytes:
    return msgspec.json.encode(values, order="deterministic")


def unsaid_calls(trace: Trace, blocks: Blocks, most: int | None = MOST_ON_A_PAGE) -> ToolCalls:
    """Tool calls with their results, if the messages do not contain them; see `ends`."""
    if _are_calls_in_messages(trace):
        return ToolCalls([], 0)
    turns = []
    places = {id(result): place for place, result in enumerate(trace.tool_results)}
    calls, hidden = ends(calls_with_results(trace), most)
    for place, (call, result) in calls:
        name = call.name if call is not None else result.name if result is not None else ""
        arguments = None if call is None else blocks.of(call.arguments, f"trace/tool_calls/{place}/arguments")
        content = (
            None if result is None else blocks.of(result.content, f"trace/tool_results/{places[id(result)]}/content")
        )
        turns.append((place + 1, name, arguments, content))
    return ToolCalls(turns, hidden)
