"""The events with which models' APIs stream a reply: OpenAI's Chat Completions and Responses, Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.errors import TargetError
from evalwright.llm.served_calls import served_call
from evalwright.targets.http.call_pieces import CallPieces
from evalwright.targets.http.turns import Turns, object_at, objects_at, string_at

__all__ = ["AnthropicEvents", "ChatEvents", "ResponseEvents"]


class ChatEvents:
    """Chunks of a chat completion; of several choices the first one is read."""

    end = "finish_reason"
    """What says that the reply is complete."""

    def __init__(self, turns: Turns) -> None:
        self._turns, self._calls = turns, CallPieces()

    def read(self, event: Mapping[str, Any]) -> None:
        """Take in a chunk."""
        turns, usage = self._turns, object_at(event, "usage")
        turns.count(
            token_input=usage.get("prompt_tokens"),
            token_output=usage.get("completion_tokens"),
            token_thinking=object_at(usage, "completion_tokens_details").get("reasoning_tokens"),
        )
        for choice in objects_at(event, "choices"):
            if not choice.get("index"):
                self._add(object_at(choice, "delta"))
                if reason := string_at(choice, "finish_reason"):
                    turns.ended, turns.finish_reason = True, reason

    def _add(self, delta: Mapping[str, Any]) -> None:
        turns = self._turns
        for key in ("content", "refusal"):
            turns.add_text(string_at(delta, key))
        turns.add_thinking(string_at(delta, "reasoning_content") or string_at(delta, "reasoning"))
        calls = delta.get("tool_calls")
        if calls is None and delta.get("function_call") is not None:
            calls = [{"index": 0, "function": delta["function_call"]}]
        if calls:
            self._calls.add(calls)
            if self._calls.unread:
                raise TargetError("'tool_calls' in an event of the stream must be mappings with a function")
            turns.replace_calls(self._calls.all)


class ResponseEvents:
    """Events of a response."""

    end = "response.completed"

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._calls: dict[str, str] = {}
        """The ids of calls by those of their items."""

    def read(self, event: Mapping[str, Any]) -> None:
        """Take in an event."""
        turns, kind = self._turns, string_at(event, "type")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            turns.add_text(string_at(event, "delta"))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            block = f"{event.get('item_id')}.{event.get('summary_index')}"
            turns.add_thinking(string_at(event, "delta"), block)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._item(object_at(event, "item"))
        elif kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            if (call := self._calls.get(string_at(event, "item_id"))) is not None:
                turns.add_arguments(call, string_at(event, "delta"))
        elif kind == "error":
            turns.error = turns.error or string_at(object_at(event, "error") or event, "message") or kind
        elif kind in ("response.completed", "response.failed", "response.incomplete"):
            self._ended(kind, object_at(event, "response"))

    def _item(self, item: Mapping[str, Any]) -> None:
        """Begin or complete a call; the hosted tools' have the name of their type, without `_call`."""
        kind = string_at(item, "type")
        if not kind.endswith("_call"):
            return
        id = string_at(item, "call_id") or string_at(item, "id")
        self._calls[string_at(item, "id")] = id
        if kind in ("function_call", "custom_tool_call"):
            arguments = item.get("arguments", item.get("input"))
            self._turns.call(id, string_at(item, "name"), arguments or None)
        else:
            served = served_call(item)
            self._turns.call(id, served.call.name, served.call.arguments)
            if served.result is not None:
                self._turns.result(id, served.result)

    def _ended(self, kind: str, response: Mapping[str, Any]) -> None:
        turns, usage = self._turns, object_at(response, "usage")
        turns.done = turns.ended = True
        turns.finish_reason = string_at(object_at(response, "incomplete_details"), "reason") or None
        turns.count(
            token_input=usage.get("input_tokens"),
            token_output=usage.get("output_tokens"),
            token_thinking=object_at(usage, "output_tokens_details").get("reasoning_tokens"),
        )
        if kind == "response.failed":
            turns.error = string_at(object_at(response, "error"), "message") or kind


class AnthropicEvents:
    """Events of a message."""

    end = "message_stop"

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._calls: dict[str, str] = {}
        """The ids of the calls by the numbers of their blocks."""

    def read(self, event: Mapping[str, Any]) -> None:
        """Take in an event."""
        turns, kind, index = self._turns, string_at(event, "type"), str(event.get("index"))
        if kind == "content_block_start":
            self._block(index, object_at(event, "content_block"))
        elif kind == "content_block_delta":
            self._delta(index, object_at(event, "delta"))
        elif kind == "message_start":
            self._count(object_at(object_at(event, "message"), "usage"))
        elif kind == "message_delta":
            self._count(object_at(event, "usage"))
            turns.finish_reason = string_at(object_at(event, "delta"), "stop_reason") or turns.finish_reason
        elif kind == "message_stop":
            turns.done = turns.ended = True
        elif kind == "error":
            turns.error = string_at(object_at(event, "error"), "message") or "an error event"

    def _block(self, index: str, block: Mapping[str, Any]) -> None:
        turns, kind = self._turns, string_at(block, "type")
        if kind.endswith("tool_use"):
            id = self._calls[index] = string_at(block, "id")
            turns.call(id, string_at(block, "name"), block.get("input") or None)
        elif kind.endswith("tool_result"):
            turns.result(string_at(block, "tool_use_id"), block.get("content"))
        elif kind == "text":
            turns.add_text(string_at(block, "text"))
        elif kind == "thinking":
            turns.add_thinking(string_at(block, "thinking"), index)

    def _delta(self, index: str, delta: Mapping[str, Any]) -> None:
        kind = string_at(delta, "type")
        if kind == "text_delta":
            self._turns.add_text(string_at(delta, "text"))
        elif kind == "thinking_delta":
            self._turns.add_thinking(string_at(delta, "thinking"), index)
        elif kind == "input_json_delta" and index in self._calls:
            self._turns.add_arguments(self._calls[index], string_at(delta, "partial_json"))

    def _count(self, usage: Mapping[str, Any]) -> None:
        """What was read from or written to the cache was read by the model, too."""
        read = (usage.get(key) for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))
        if isinstance(usage.get("input_tokens"), int):
            self._turns.count(token_input=sum(number for number in read if isinstance(number, int)))
        self._turns.count(token_output=usage.get("output_tokens"))
