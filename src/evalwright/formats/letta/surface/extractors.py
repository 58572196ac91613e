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


after_marker = _function("after_marker")
all_assistant = _function("all_assistant")
first_assistant = _function("first_assistant")
last_assistant = _function("last_assistant")
last_turn = _function("last_turn")
memory_block = _function("memory_block")
pattern = _function("pattern")
tool_arguments = _function("tool_arguments")
tool_output = _function("tool_output")
