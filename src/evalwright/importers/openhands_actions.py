"""Events of OpenHands before release 1.0: actions and observations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from evalwright.importers.blocks import texts_of
from evalwright.importers.openhands_conversation import OpenHandsConversation
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.transcript import arguments_of

__all__ = ["OpenHandsActions"]

_SILENT_ACTIONS = ("recall", "change_agent_state", "condensation", "condensation_request", "null")
_SILENT_OBSERVATIONS = ("recall", "agent_state_changed", "condense", "null")
"""Kinds that are not part of the conversation."""
_BOOKKEEPING = (
    "thought", "confirmation_state", "hidden", "blocking", "security_risk", "translated_ipython_code", "impl_source",
    "is_static",
)  # fmt: skip
"""Arguments that OpenHands adds to those of the model."""


class OpenHandsActions(OpenHandsConversation):
    """A conversation of a release before 1.0. The events of an agent that it delegates to are among its own."""

    def __init__(self, notes: ImportNotes) -> None:
        super().__init__(notes)
        self._helper: OpenHandsActions | None = None
        self._helps_as = ""

    def read(self, event: Mapping[str, Any]) -> None:
        self.read_usage(event.get("llm_metrics"))  # that of all agents so far, whichever called a model
        self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        at = self.time_of(event)
        if self._helper is not None:
            if event.get("observation") != "delegate" or self._helper._helper is not None:
                self._helper._take(event)
                return
            self._end_delegation()
        details = event.get("args") if "action" in event else event.get("extras")
        details = details if isinstance(details, dict) else {}
        if "action" in event:
            self._action(event, details, at)
        elif "observation" in event:
            self._observation(event, details, at)
        else:
            self.notes.lose("events without an action or observation")

    def finish(self) -> None:
        self._end_delegation()
        super().finish()

    def _end_delegation(self) -> None:
        """The agent that this one delegated to has come to its end."""
        if self._helper is not None:
            self._helper.finish()
            self.subagent(self._helps_as, self._helper)
            self._helper = None

    def _action(self, event: Mapping[str, Any], args: Mapping[str, Any], at: datetime | None) -> None:
        kind, source = str(event["action"]), event.get("source")
        content = str(args.get("content") or event.get("message") or "")
        if kind == "system":
            self.system(content)
        elif kind in _SILENT_ACTIONS:
            return
        elif kind == "message" and source != "agent":
            self.user(content)
            self._images(args)
        elif source != "agent":
            self.notes.lose(f"actions of the user of kind {kind!r}")
        elif kind == "message":
            self.response(_response(event).get("id"), at).add_text(content)
            self.answer = None  # said after a task that was finished before
            self._images(args)
        else:
            self._call(event, kind, args, at)

    def _call(self, event: Mapping[str, Any], kind: str, args: Mapping[str, Any], at: datetime | None) -> None:
        metadata, response = _metadata(event), _response(event)
        turn = self.response(response.get("id"), at)
        id = metadata.get("tool_call_id")
        message = next((choice.get("message") for choice in dictionaries(response.get("choices"))), None)
        message = message if isinstance(message, dict) else {}
        if turn.empty and isinstance(message.get("reasoning_content"), str):
            turn.think(message["reasoning_content"])
        thought = args.get("thought")
        if kind != "think" and isinstance(thought, str) and thought and thought not in (turn.texts or ()):
            turn.add_text(thought)
        for call in dictionaries(message.get("tool_calls")):
            function = call.get("function")
            if call.get("id") == id and isinstance(function, dict):
                arguments = arguments_of(function.get("arguments"))
                break
        else:
            dropped = [key for key in _BOOKKEEPING if key != "thought" or kind != "think"]
            arguments = {key: value for key, value in args.items() if key not in dropped}
        self.name_model(response.get("model"))
        self.calls_in(turn, str(metadata.get("function_name") or kind), id or event.get("id"), arguments, at)
        if kind == "delegate":
            self._helper, self._helps_as = OpenHandsActions(self.notes), str(args.get("agent") or "agent")
        elif kind == "finish":
            self.answer = str(args.get("final_thought") or thought or "") or None

    def _observation(self, event: Mapping[str, Any], extras: Mapping[str, Any], at: datetime | None) -> None:
        kind = str(event["observation"])
        if kind == "agent_state_changed":
            self._changes(str(extras.get("agent_state")), extras.get("reason"))
        if kind in _SILENT_OBSERVATIONS:
            return
        metadata = extras.get("metadata")
        code = (metadata if isinstance(metadata, dict) else extras).get("exit_code")
        failed = kind in ("error", "user_rejected") or (type(code) is int and code > 0)
        id = _metadata(event).get("tool_call_id") or event.get("cause")
        named = None if self.knows(id) else str(_metadata(event).get("function_name") or kind)
        self.result(id, texts_of(event.get("content"), self.notes), named, at, failed)

    def _changes(self, state: str, reason: Any) -> None:
        if state == "error":
            self.fails("agent_error", reason)
        elif state in ("running", "finished"):
            self._failure = None

    def _images(self, args: Mapping[str, Any]) -> None:
        images = args.get("image_urls")
        if isinstance(images, list) and images:
            self.notes.lose("images", len(images))


def _metadata(event: Mapping[str, Any]) -> Mapping[str, Any]:
    tool_call_metadata = event.get("tool_call_metadata")
    return tool_call_metadata if isinstance(tool_call_metadata, dict) else {}


def _response(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The model's response that an action was part of."""
    model_response = _metadata(event).get("model_response")
    return model_response if isinstance(model_response, dict) else {}
