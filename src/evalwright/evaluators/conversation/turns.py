"""A trace as a conversation in turns: each turn has the messages with which the system answered one user message.

Messages are plain data with a `message_type`: `assistant_message` {content}, `tool_call_message` {tool_call:
{name, arguments: JSON text, tool_call_id}, tool_calls}, `tool_return_message` {tool_call_id, tool_return, status},
`reasoning_message` {reasoning}. If a trace holds its turns (`extra.turns`), they are
used as they are; otherwise they are made from its messages, tool calls and answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evalwright.model.trace import ToolCall, ToolResult, Trace, TraceMessage

__all__ = ["Turn", "assistant_texts", "blocks_of", "text_or_json", "turns_of"]

Turn = list[dict[str, Any]]
_UNKNOWN = ToolResult("", "")
"""In place of the results that a trace has only as messages."""


def turns_of(trace: Trace) -> list[Turn]:
    """The turns of a trace; empty if nothing at all was said."""
    stored = trace.extra.get("turns")
    if isinstance(stored, list):
        return [[m for m in turn if isinstance(m, dict)] for turn in stored if isinstance(turn, list)]
    turns = _from_messages(trace) if trace.messages else [_from_answer(trace)]
    return [turn for turn in turns if turn]


def blocks_of(trace: Trace) -> dict[str, str] | None:
    """The system's memory after the last turn, by label; None if the trace does not record it."""
    blocks = trace.extra.get("blocks")
    return {str(k): str(v) for k, v in blocks.items()} if isinstance(blocks, dict) else None


def assistant_texts(turns: list[Turn]) -> list[str]:
    """The text of every assistant message, in order."""
    return [
        _assistant_text(message)
        for turn in turns
        for message in turn
        if message.get("message_type") == "assistant_message"
    ]


def _assistant_text(message: dict[str, Any]) -> str:
    """The text of a message whose content is text, or a list of text parts, joined with spaces."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return " ".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _from_messages(trace: Trace) -> list[Turn]:
    """Tool messages have no id of their call, and some no name of the tool: they get those of the results, in order."""
    turns: list[Turn] = [[]]
    results = iter(trace.tool_results)
    for message in trace.messages:
        if message.role == "user":
            turns.append([])
        else:
            turns[-1].extend(_spoken_items(message, results))
    return turns


def _spoken_items(message: TraceMessage, results: Iterator[ToolResult]) -> Iterator[dict[str, Any]]:
    if message.thinking:
        yield {"message_type": "reasoning_message", "reasoning": message.thinking}
    if message.tool_call is not None:
        yield _call_item(message.tool_call)
    if message.role == "tool":
        result = next(results, _UNKNOWN)
        yield _result_item(result.tool_call_id, message.name or result.name, message.content)
    elif message.role == "assistant" and message.content is not None:
        content = message.content if isinstance(message.content, list) else text_or_json(message.content)
        yield {"message_type": "assistant_message", "content": content}


def _from_answer(trace: Trace) -> Turn:
    turn = [_call_item(call) for call in trace.tool_calls]
    turn += [_result_item(result.tool_call_id, result.name, result.content) for result in trace.tool_results]
    if trace.output.final_answer is not None:
        turn.append({"message_type": "assistant_message", "content": trace.output.final_answer})
    return turn


def _call_item(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    part = {"name": call.name, "arguments": arguments, "tool_call_id": call.id}
    return {"message_type": "tool_call_message", "tool_call": part, "tool_calls": [part]}


def _result_item(call_id: str | None, tool: str | None, content: Any) -> dict[str, Any]:
    item = {"message_type": "tool_return_message", "tool_call_id": call_id, "tool_return": text_or_json(content)}
    return {**item, "status": "success", **({"name": tool} if tool else {})}


def text_or_json(content: Any) -> str:
    """Text as it is, other data as JSON; "" for None."""
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
