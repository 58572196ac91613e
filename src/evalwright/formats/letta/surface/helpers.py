"""Readers of trajectories, which extractors of Letta suites call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evalwright.evaluators.build import build_extractor
from evalwright.evaluators.conversation.turns import assistant_texts
from evalwright.formats.letta.surface.messages import as_data
from evalwright.formats.letta.surface.models import AgentState
from evalwright.formats.shared.python_errors import as_the_original

__all__ = [
    "Trajectory",
    "flatten_content",
    "get_assistant_messages",
    "get_extractor",
    "get_last_turn_messages",
    "get_messages_by_type",
    "get_tool_calls",
]

Trajectory = list[list[Any]]


def flatten_content(content: Any) -> str:
    """The text of a message's content: text, or text parts joined with spaces."""
    return assistant_texts([[{"message_type": "assistant_message", "content": as_data(content)}]])[0]


def get_assistant_messages(trajectory: Trajectory) -> list[Any]:
    """The assistant's messages of all turns."""
    return [message for turn in trajectory for message in turn if _is(message, "assistant_message")]


def get_messages_by_type(trajectory: Trajectory, message_type: type) -> list[Any]:
    """The messages of one class."""
    return [message for turn in trajectory for message in turn if isinstance(message, message_type)]


def get_last_turn_messages(trajectory: Trajectory, message_type: type | None = None) -> list[Any]:
    """The messages of one class in the last turn, by default the assistant's."""
    last = trajectory[-1:]
    return get_assistant_messages(last) if message_type is None else get_messages_by_type(last, message_type)


def get_tool_calls(trajectory: Trajectory) -> list[tuple[Any, Any]]:
    """Each tool call with the next tool return of its turn."""
    pairs = []
    for turn in trajectory:
        for i, message in enumerate(turn):
            returned = next((later for later in turn[i + 1 :] if _is(later, "tool_return_message")), None)
            if _is(message, "tool_call_message") and returned is not None:
                pairs.append((message, returned))
    return pairs


def get_extractor(name: str, config: Mapping[str, Any] | None = None) -> Callable[..., str]:
    """The built-in extractor `name` as a function of a trajectory (and the agent's state). Raises ValueError."""
    with as_the_original():
        built = build_extractor(name, dict(config or {}))

    def extract(trajectory: Trajectory, agent_state: AgentState | None = None) -> str:
        blocks = None if agent_state is None else {block.label: block.value for block in agent_state.blocks}
        return built.extract([[as_data(message) for message in turn] for turn in trajectory], blocks)

    return extract


def _is(message: Any, kind: str) -> bool:
    return getattr(message, "message_type", None) == kind
