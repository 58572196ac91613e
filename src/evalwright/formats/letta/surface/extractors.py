"""The built-in extractors as functions `(trajectory, config[, agent_state])`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evalwright.formats.letta.surface.helpers import get_extractor
from evalwright.formats.letta.surface.models import AgentState

__all__ = [
    "after_marker",
    "all_assistant",
    "first_assistant",
    "last_assistant",
    "last_turn",
    "memory_block",
    "pattern",
    "tool_arguments",
    "tool_output",
]


def _function(name: str) -> Callable[..., str]:
    def extract(
        trajectory: list[list[Any]], config: Mapping[str, Any] | None = None, agent_state: AgentState | None = None
    ) -> str:
        return get_extractor(name, config)(trajectory, agent_state)

    extract.__name__ = name
    return extract


after_marker: Callable[..., str] = _function("after_marker")
all_assistant: Callable[..., str] = _function("all_assistant")
first_assistant: Callable[..., str] = _function("first_assistant")
last_assistant: Callable[..., str] = _function("last_assistant")
last_turn: Callable[..., str] = _function("last_turn")
memory_block: Callable[..., str] = _function("memory_block")
pattern: Callable[..., str] = _function("pattern")
tool_arguments: Callable[..., str] = _function("tool_arguments")
tool_output: Callable[..., str] = _function("tool_output")
