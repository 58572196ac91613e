"""Formats of streams whose events are known, so that no path has to say where their parts are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from evalwright.targets.http.agent_protocols import AgUiEvents, AiSdkEvents
from evalwright.targets.http.langgraph_events import LangGraphEvents
from evalwright.targets.http.model_protocols import AnthropicEvents, ChatEvents, ResponseEvents
from evalwright.targets.http.turns import Turns

__all__ = ["PROTOCOLS"]


class _Protocol(Protocol):
    end: str
    """What says that an answer is complete, for messages. Empty if its end is that of the response; then events have
    names, which are given with the data."""

    def __init__(self, turns: Turns) -> None: ...

    def read(self, event: Mapping[str, Any]) -> None: ...


PROTOCOLS: dict[str, type[_Protocol]] = {
    "ag_ui": AgUiEvents,
    "ai_sdk": AiSdkEvents,
    "anthropic_messages": AnthropicEvents,
    "langgraph": LangGraphEvents,
    "openai_chat": ChatEvents,
    "openai_responses": ResponseEvents,
}
