"""The events with which agents stream to user interfaces: Vercel's AI SDK and AG-UI.

AI SDK: ai-sdk.dev/docs/ai-sdk-ui/stream-protocol, and its data streams before version 5. AG-UI: docs.ag-ui.com.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.targets.http.turns import Turns, object_at, objects_at, string_at

__all__ = ["AgUiEvents", "AiSdkEvents"]

_PARTS = {
    "0": "text",
    "2": "data",
    "3": "error",
    "8": "annotations",
    "9": "tool-input-available",
    "a": "tool-output-available",
    "b": "tool-input-start",
    "c": "tool-input-delta",
    "d": "finish",
    "e": "finish-step",
    "f": "start-step",
    "g": "reasoning",
    "h": "source",
    "i": "redacted-reasoning",
    "j": "reasoning-signature",
    "k": "file",
}
"""What the codes of a data stream mean, in the words of today's protocol where it has them."""


class AiSdkEvents:
    """UI message streams (`x-vercel-ai-ui-message-stream: v1`) and data streams (`x-vercel-ai-data-stream: v1`)."""

    end = "finish"
    codes: tuple[str, ...] = tuple(_PARTS)
    """The codes of the parts of a data stream."""

    @staticmethod
    def event_of(code: str, value: Any) -> dict[str, Any]:
        """A part of a data stream as an event."""
        return {**(value if isinstance(value, dict) else {"value": value}), "type": _PARTS[code]}

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def read(self, event: Mapping[str, Any]) -> None:
        """Take in an event."""
        kind = string_at(event, "type")
        if kind.startswith("tool-"):
            self._tool(kind, event)
        elif not self._is_text(kind, event):
            self._framed(kind, event)

    def _is_text(self, kind: str, event: Mapping[str, Any]) -> bool:
        turns = self._turns
        if kind == "text-delta":
            turns.add_text(string_at(event, "delta"))
        elif kind == "text":
            turns.add_text(string_at(event, "value"))
        elif kind == "reasoning-delta":
            turns.add_thinking(string_at(event, "delta"), str(event.get("id")))
        elif kind == "reasoning":
            turns.add_thinking(string_at(event, "value"))
        else:
            return kind in ("text-start", "text-end", "reasoning-start", "reasoning-end")
        return True

    def _framed(self, kind: str, event: Mapping[str, Any]) -> None:
        turns = self._turns
        if kind == "start-step":
            turns.begin()
        elif kind == "reset-step":
            turns.restart()
        elif kind == "error":
            turns.error = turns.error or string_at(event, "errorText") or string_at(event, "value") or "an error event"
        elif kind == "abort":
            turns.error = turns.error or f"aborted: {string_at(event, 'reason')}".removesuffix(": ")
        elif kind in ("start", "message-metadata", "finish"):
            self._end_or_usage(kind, event)
        elif kind not in ("finish-step", "redacted-reasoning", "reasoning-signature"):
            turns.unread[kind] += 1

    def _end_or_usage(self, kind: str, event: Mapping[str, Any]) -> None:
        turns, metadata = self._turns, object_at(event, "messageMetadata")
        if kind == "finish":
            turns.ended = True
            turns.finish_reason = string_at(event, "finishReason") or turns.finish_reason
        usage = object_at(metadata, "totalUsage") or object_at(metadata, "usage") or object_at(event, "usage")
        details = object_at(usage, "outputTokenDetails")
        turns.count(
            token_input=usage.get("inputTokens", usage.get("promptTokens")),
            token_output=usage.get("outputTokens", usage.get("completionTokens")),
            token_thinking=usage.get("reasoningTokens", details.get("reasoningTokens")),
        )

    def _tool(self, kind: str, event: Mapping[str, Any]) -> None:
        turns, id = self._turns, string_at(event, "toolCallId")
        if kind == "tool-input-start":
            turns.call(id, string_at(event, "toolName"))
        elif kind == "tool-input-delta":
            turns.add_arguments(id, string_at(event, "inputTextDelta") or string_at(event, "argsTextDelta"))
        elif kind in ("tool-input-available", "tool-input-error"):
            turns.call(id, string_at(event, "toolName"), event.get("input", event.get("args")))
            if kind == "tool-input-error":
                turns.result(id, string_at(event, "errorText"))
        elif kind == "tool-output-available":
            turns.result(id, event.get("output", event.get("result")))
        elif kind == "tool-output-error":
            turns.result(id, string_at(event, "errorText"))
        elif kind == "tool-output-denied":
            turns.result(id, "denied")
        else:
            turns.unread[kind] += 1


class AgUiEvents:
    """Events of the Agent User Interaction Protocol. Subagents' events do not enter the answer."""

    end = "RUN_FINISHED"

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._of_others: set[str] = set()
        """The ids of messages that are not the agent's."""
        self._message = self._call = ""
        self._streamed = False

    def read(self, event: Mapping[str, Any]) -> None:
        """Take in an event."""
        kind = string_at(event, "type")
        if event.get("subagentRunId") is not None or kind.startswith("SUBAGENT_"):
            self._turns.unread[f"{kind} of a subagent"] += 1
        elif kind.startswith("TEXT_MESSAGE_"):
            self._text(kind, event)
        elif kind.startswith("TOOL_CALL_"):
            self._tool(kind, event)
        elif kind.startswith(("REASONING_", "THINKING_")):
            self._thought(kind, event)
        else:
            self._state(kind, event)

    def _text(self, kind: str, event: Mapping[str, Any]) -> None:
        id = string_at(event, "messageId") or self._message
        if kind == "TEXT_MESSAGE_START" or (kind == "TEXT_MESSAGE_CHUNK" and id != self._message):
            self._message = id
            if event.get("role") not in (None, "assistant"):
                self._of_others.add(id)
            elif self._turns.answered or self._turns.spoken:
                self._turns.begin()
        if kind != "TEXT_MESSAGE_END" and id not in self._of_others:
            self._streamed = True
            self._turns.add_text(string_at(event, "delta"))

    def _tool(self, kind: str, event: Mapping[str, Any]) -> None:
        turns, id = self._turns, string_at(event, "toolCallId") or self._call
        self._streamed = True
        if kind == "TOOL_CALL_RESULT":
            turns.result(id, event.get("content"))
            return
        name = string_at(event, "toolCallName")
        if name and id != self._call:
            self._call = id
            if turns.answered:
                turns.begin()
        if kind != "TOOL_CALL_END":
            turns.call(id, name)
            turns.add_arguments(id, string_at(event, "delta"))

    def _thought(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind.endswith("_START") and self._turns.answered:
            self._turns.begin()
        self._turns.add_thinking(string_at(event, "delta"), string_at(event, "messageId"))

    def _state(self, kind: str, event: Mapping[str, Any]) -> None:
        turns = self._turns
        if kind in ("RUN_FINISHED", "RUN_ERROR"):
            turns.done = turns.ended = True
            self._count(objects_at(event, "usage"))
            turns.structured = event.get("result")
            turns.finish_reason = string_at(object_at(event, "outcome"), "type") or None
        if kind == "RUN_ERROR":
            turns.error = string_at(event, "message") or kind
        elif turns.finish_reason == "cancelled":
            turns.error = "the run was cancelled"
        elif kind == "MESSAGES_SNAPSHOT" and not self._streamed:
            self._snapshot(objects_at(event, "messages"))
        elif kind not in ("RUN_STARTED", "RUN_FINISHED", "STEP_STARTED", "STEP_FINISHED", "MESSAGES_SNAPSHOT"):
            turns.unread[kind] += 1

    def _snapshot(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """The messages since the user's last one, of an agent that streams no pieces."""
        turns = self._turns
        turns.clear()
        last = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
        for message in messages[last + 1 :]:
            if message.get("role") == "tool":
                turns.result(string_at(message, "toolCallId"), message.get("content"))
            elif message.get("role") == "assistant":
                turns.begin()
                turns.add_text(string_at(message, "content"))
                for call in objects_at(message, "toolCalls"):
                    function = object_at(call, "function")
                    turns.call(string_at(call, "id"), string_at(function, "name"), function.get("arguments"))

    def _count(self, entries: Sequence[Mapping[str, Any]]) -> None:
        for ours, theirs in _COUNTS.items():
            numbers = [entry.get(theirs) for entry in entries]
            if numbers and all(isinstance(number, int) for number in numbers):
                self._turns.count(**{ours: sum(number for number in numbers if number is not None)})


_COUNTS = {"token_input": "inputTokens", "token_output": "outputTokens", "token_thinking": "reasoningTokens"}
