"""Events of OpenHands since release 1.0: each has a `kind`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.blocks import texts_of
from evalwright.importers.openhands_conversation import OpenHandsConversation
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.transcript import arguments_of

__all__ = ["OpenHandsEvents", "active_branch"]

_ROOT = "__root__"
_UPDATE = "ConversationStateUpdateEvent"
_BOOKKEEPING = (
    "Condensation", "CondensationRequest", "CondensationSummaryEvent", "PauseEvent", "InterruptEvent", "TokenEvent",
    "LLMCompletionLogEvent", "HookExecutionEvent", "StreamingDeltaEvent", "SecurityAnalysisEvent",
)  # fmt: skip
"""Kinds of events that are not part of the conversation."""
_ENDED = ("completed", "failed")


def active_branch(events: list[dict[str, Any]], leaf: Any, notes: ImportNotes) -> list[dict[str, Any]]:
    """The events from the root to the leaf, which is the last event unless it is named.

    An event without a parent follows the one before it, as in conversations from before there were branches.
    """
    if not any(event.get("parent_id") for event in events):
        return events
    places = {id: number for number, event in enumerate(events) if isinstance(id := event.get("id"), str)}
    talked = [number for number, event in enumerate(events) if event.get("kind") != _UPDATE]
    at: int | None = places.get(leaf) if isinstance(leaf, str) else None
    at = talked[-1] if at is None and talked else at
    kept: set[int] = set()
    while at is not None and at >= 0 and at not in kept:
        kept.add(at)
        parent = events[at].get("parent_id")
        at = None if parent == _ROOT else places.get(parent, at - 1) if isinstance(parent, str) else at - 1
    if abandoned := len({*talked} - kept):
        notes.lose("events of abandoned branches", abandoned)
    return [event for number, event in enumerate(events) if number in kept or event.get("kind") == _UPDATE]


class OpenHandsEvents(OpenHandsConversation):
    """A conversation of release 1.0 or newer."""

    def read(self, event: Mapping[str, Any]) -> None:
        at = self.time_of(event)
        match event.get("kind"):
            case "ActionEvent":
                self._action(event, at)
            case "ObservationEvent":
                self._observation(event, at)
            case "MessageEvent":
                self._message(event, at)
            case "SystemPromptEvent":
                parts = [event.get("system_prompt"), event.get("dynamic_context")]
                self.system("\n".join(texts_of(part, self.notes) for part in parts if part))
            case "UserRejectObservation":
                self._result(event, str(event.get("rejection_reason", "")), at, failed=True)
            case "AgentErrorEvent":
                self._result(event, str(event.get("error", "")), at, failed=True)
            case "ConversationErrorEvent":
                self.fails(str(event.get("code") or "agent_error"), event.get("detail"))
            case "ACPToolCallEvent":
                self._foreign_call(event, at)
            case "ConversationStateUpdateEvent":
                self._update(event.get("key"), event.get("value"))
            case kind if kind not in _BOOKKEEPING:
                self.notes.lose(f"events of kind {kind!r}")

    def _action(self, event: Mapping[str, Any], at: datetime | None) -> None:
        turn = self.response(event.get("llm_response_id"), at)
        self._thinks(turn, event)
        if thought := texts_of(event.get("thought"), self.notes):
            turn.add_text(thought)
        call = event.get("tool_call")
        call = call if isinstance(call, dict) else {}
        function = call.get("function")  # in the first releases, in the form of chat completions
        given = (function if isinstance(function, dict) else call).get("arguments")
        action = event.get("action")
        if given is None and isinstance(action, dict):
            given = {key: value for key, value in action.items() if key != "kind"}
        arguments, name = arguments_of(given), str(event.get("tool_name") or "tool")
        self.calls_in(turn, name, event.get("tool_call_id"), arguments, at)
        if name == "finish" and isinstance(arguments.get("message"), str):
            self.answer = arguments["message"]

    def _observation(self, event: Mapping[str, Any], at: datetime | None) -> None:
        observation = event.get("observation")
        if not isinstance(observation, dict):
            self._result(event, texts_of(observation, self.notes), at)
            return
        shown = next((observation[key] for key in ("content", "output", "message") if key in observation), None)
        if shown is None:
            shown = {key: value for key, value in observation.items() if key != "kind"}
        metadata = observation.get("metadata")
        codes = [observation.get("exit_code"), metadata.get("exit_code") if isinstance(metadata, dict) else None]
        failed = bool(observation.get("is_error") or observation.get("error")) or any(map(_is_failure, codes))
        self._result(event, shown if isinstance(shown, dict) else texts_of(shown, self.notes), at, failed)

    def _result(self, event: Mapping[str, Any], shown: Any, at: datetime | None, failed: bool = False) -> None:
        self.result(event.get("tool_call_id"), shown, str(event.get("tool_name") or "tool"), at, failed)

    def _message(self, event: Mapping[str, Any], at: datetime | None) -> None:
        message = event.get("llm_message")
        message = message if isinstance(message, dict) else {}
        text = texts_of(message.get("content"), self.notes)
        if event.get("source") == "agent":
            turn = self.response(event.get("llm_response_id"), at)
            self._thinks(turn, message)
            if text:
                turn.add_text(text)
                self.answer = None  # said after a task that was finished before
        else:
            self.user(text, asks=event.get("source") == "user")
            if added := texts_of(event.get("extended_content"), self.notes):
                self.user(added, asks=False)

    def _thinks(self, turn: AgentTurn, message: Mapping[str, Any]) -> None:
        thoughts = [dictionary.get("thinking") for dictionary in dictionaries(message.get("thinking_blocks"))]
        for thought in [message.get("reasoning_content")] if message.get("reasoning_content") else thoughts:
            if isinstance(thought, str) and thought:
                turn.think(thought)

    def _foreign_call(self, event: Mapping[str, Any], at: datetime | None) -> None:
        """A call by an agent that OpenHands runs; it is written again whenever its status changes."""
        id, name = event.get("tool_call_id"), str(event.get("tool_kind") or event.get("title") or "tool")
        if not self.knows(id):
            self.call(name, id, arguments_of(event.get("raw_input")), at)
        if event.get("status") in _ENDED:
            shown = event.get("raw_output")
            shown = event.get("content") if shown is None else shown
            shown = shown if isinstance(shown, dict) else texts_of(shown, self.notes)
            self.result(id, shown, name, at, failed=bool(event.get("is_error")) or event["status"] == "failed")

    def _update(self, key: Any, value: Any) -> None:
        if isinstance(value, dict):
            self.read_state(value if key == "full_state" else {"stats": value} if key == "stats" else {})


def _is_failure(code: Any) -> bool:
    """Whether a command's exit code says that it failed; -1 is that of one that still runs."""
    return type(code) is int and code > 0
