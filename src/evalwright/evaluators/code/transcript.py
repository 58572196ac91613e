"""A cell as a conversation and as events, in the form that AgentV 4 gives to judging programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.evaluators.tools.calls import TracedCall

__all__ = ["events_of", "known", "whole_conversation"]

_OF_MESSAGES = ("role", "name", "content", "metadata")


def whole_conversation(inputs: Sequence[dict[str, Any]], replies: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The input followed by the system's messages, unless these already contain the whole conversation."""
    if any(message.get("role") in ("user", "system") for message in replies):
        return [*replies]
    return [*map(_with_text, inputs), *replies]


def _with_text(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    return {**message, "content": json.dumps(content, indent=2)} if isinstance(content, dict) else message


def events_of(messages: Sequence[dict[str, Any]], calls: Sequence[TracedCall], answer: str) -> list[dict[str, Any]]:
    """Messages, tool calls and their results in order, then the answer; `calls` are those of the last messages."""
    counts = [len(message.get("tool_calls") or ()) for message in messages]
    before = sum(counts) - len(calls)
    events: list[dict[str, Any]] = []
    last_reply, calls_seen = None, 0
    for index, message in enumerate(messages):
        place = {"event_id": f"message-{index}", "ordinal": len(events), "type": "message"}
        content = known({key: message.get(key) for key in _OF_MESSAGES})
        events.append({**place, "message": content, "metadata": {"message_index": index}})
        last_reply = events[-1] if message.get("role") == "assistant" else last_reply
        for tool_index, raw in enumerate(message.get("tool_calls") or ()):
            call = calls[calls_seen - before] if calls_seen >= before else None
            calls_seen += 1
            metadata = {"message_index": index, "tool_index": tool_index}
            events += _events_of_call(raw, call, f"message-{index}", len(events), metadata)
    if last_reply is not None:
        place = {"event_id": "final-response", "parent_event_id": last_reply["event_id"], "ordinal": len(events)}
        final = {**last_reply["message"], "content": answer}
        events.append({**place, "type": "final_response", "message": final, "metadata": last_reply["metadata"]})
    return events


def _events_of_call(
    raw: Mapping[str, Any], call: TracedCall | None, parent: str, ordinal: int, metadata: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """The call, with what the trace records about it, and its result if there is one."""
    place = {"event_id": f"{parent}-tool-{metadata['tool_index']}", "parent_event_id": parent, "ordinal": ordinal}
    arguments, output, duration = (raw.get("input"), raw.get("output"), None)
    if call is not None:
        arguments, output, duration = call.args, call.output, call.duration_ms
    tool = {"name": raw.get("tool"), "call_id": raw.get("id"), "status": raw.get("status", "ok")}
    call_record = known({**tool, "input": arguments, "output": output})
    yield {**known({**place, "type": "tool_call", "duration_ms": duration}), "tool": call_record, "metadata": metadata}
    if output is not None:
        result = {"event_id": f"{place['event_id']}-result", "parent_event_id": place["event_id"]}
        result_record = known({**tool, "output": output})
        yield {**result, "ordinal": ordinal + 1, "type": "tool_result", "tool": result_record, "metadata": metadata}


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not None: AgentV's SDK rejects null for what was not measured."""
    return {key: value for key, value in values.items() if value is not None}
