"""The events of a LangGraph server, of any stream mode that has messages or the state.

docs.langchain.com/langsmith/streaming
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.targets.http.mapping import tool_call_in
from evalwright.targets.http.turns import Turns, object_at, objects_at, string_at

__all__ = ["LangGraphEvents"]

_SILENT = frozenset({"metadata", "messages/metadata", "end", "heartbeat"})
_OF_MODEL, _OF_USER = ("ai", "AIMessageChunk", "assistant"), ("human", "user")
_INTERRUPT = "__interrupt__"
"""The key of what an agent asks before it goes on."""
_COUNTS = {"token_input": "input_tokens", "token_output": "output_tokens"}


class LangGraphEvents:
    """Events `{"type": NAME, "data": ...}` with the messages of LangChain, each of which has an id.

    A state has all messages so far, so that it replaces what was streamed before it.
    """

    end = ""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._current: str | None = None
        """The id of the message of this turn."""
        self._known: set[str] = set()
        self._calls: dict[tuple[str, str], str] = {}
        """The ids of calls by those of their messages and their numbers: only their first pieces have them."""
        self._usage: dict[str, dict[str, int]] = {}

    def read(self, event: Mapping[str, Any]) -> None:
        """Take in an event."""
        name, _, namespace = string_at(event, "type").partition("|")
        data = object_at(event, "data")
        if _INTERRUPT in data:
            self._turns.finish_reason = "interrupt"
        if namespace:
            self._turns.unread[f"{name} of a subgraph"] += 1
        elif name == "messages":
            for message in objects_at(event, "data")[:1]:  # the metadata is behind it
                self._add(message, piece=message.get("type") == "AIMessageChunk")
        elif name in ("messages/partial", "messages/complete"):
            for message in objects_at(event, "data"):
                self._replace(message)
        elif name == "updates":
            self._update(data)
        elif name == "values":
            self._state(data)
        elif name == "error":
            named = [string_at(data, "error"), string_at(data, "message")]
            self._turns.error = ": ".join(filter(None, named)) or "an error event"
        elif name not in _SILENT:
            self._turns.unread[name] += 1

    def _state(self, state: Mapping[str, Any]) -> None:
        messages = objects_at(state, "messages")
        if not messages:
            if rest := {key: value for key, value in state.items() if key != _INTERRUPT}:
                self._turns.structured = rest
            return
        self._turns.structured = None
        self._turns.clear()
        self._known.clear()
        last = max((i for i, message in enumerate(messages) if _kind_of(message) in _OF_USER), default=-1)
        for message in messages[last + 1 :]:
            self._add(message)

    def _update(self, data: Mapping[str, Any]) -> None:
        for node in data:
            if node == _INTERRUPT:
                continue
            change = object_at(data, node)
            messages = objects_at(change, "messages") or [object_at(change, "messages")]
            if not any(messages):
                self._turns.unread["updates without messages"] += 1
            for message in messages:
                self._add(message)

    def _replace(self, message: Mapping[str, Any]) -> None:
        """Add a message as it is so far, which may be known in part."""
        id = string_at(message, "id")
        if id in self._known:
            self._turns.resume(id)
            if self._turns.answered:
                return
            self._turns.restart()
            self._known.discard(id)
        self._add(message)

    def _add(self, message: Mapping[str, Any], *, piece: bool = False) -> None:
        id, kind = string_at(message, "id"), _kind_of(message)
        if kind == "tool":
            self._turns.result(string_at(message, "tool_call_id"), message.get("content"))
        elif kind in _OF_MODEL and (piece or not id or id not in self._known):
            if id:
                self._turns.resume(id)
                self._known.add(id)
            elif not piece or self._current:
                self._turns.begin()
            self._current = id
            self._content(message)
            self._call(message, id, piece)
            self._count(id, object_at(message, "usage_metadata"), piece)

    def _content(self, message: Mapping[str, Any]) -> None:
        if not isinstance(message.get("content"), list):
            self._turns.add_text(string_at(message, "content"))
        for block in objects_at(message, "content"):
            self._turns.add_text(string_at(block, "text"))
            self._turns.add_thinking(string_at(block, "thinking") or string_at(block, "reasoning"))

    def _call(self, message: Mapping[str, Any], message_id: str, piece: bool) -> None:
        for call in () if piece else objects_at(message, "tool_calls"):
            if parts := tool_call_in(call):
                self._turns.call(string_at(parts, "id"), string_at(parts, "name"), parts["arguments"])
        for part in objects_at(message, "tool_call_chunks"):
            number = (message_id, str(part.get("index")))
            id = string_at(part, "id") or self._calls.get(number) or ".".join(number)
            self._calls[number] = id
            self._turns.call(id, string_at(part, "name"))
            self._turns.add_arguments(id, string_at(part, "args"))

    def _count(self, id: str, usage: Mapping[str, Any], piece: bool) -> None:
        """Note the tokens of a message: those of its pieces add up."""
        before = self._usage.get(id, {}) if piece else {}
        used = {key: usage[key] for key in _COUNTS.values() if isinstance(usage.get(key), int)}
        if used:
            self._usage[id] = {**before, **{key: before.get(key, 0) + number for key, number in used.items()}}
            for ours, theirs in _COUNTS.items():
                self._turns.count(**{ours: sum(counts.get(theirs, 0) for counts in self._usage.values())})


def _kind_of(message: Mapping[str, Any]) -> Any:
    """Its `type`; messages in the form of OpenAI's chat API, which a state may have, too, say it as their `role`."""
    return message.get("type") or message.get("role")
