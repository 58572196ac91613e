"""A conversation with a backend that stands in for an agent."""

from __future__ import annotations

from typing import Any

from evalwright.formats.letta.surface.models import Sample

__all__ = ["Context"]


class Context:
    """What a backend knows about the conversation that it takes part in."""

    agent: dict[str, Any]
    agent_id: str
    model: str | None
    run: int
    sample: Sample

    def __init__(
        self, sample: Sample, model: str | None, run: int, agent_id: str, agent: dict[str, Any], blocks: dict[str, str]
    ) -> None:
        self.sample, self.model, self.run = sample, model, run
        self.agent_id, self.agent = agent_id, agent
        self.blocks = blocks
        """The agent's memory by label; its content after the last turn is the agent's final state."""
        self.turn = 0
        self.history: list[list[dict[str, Any]]] = []
        self.state: dict[str, Any] = {}
        """For the backend's own use; lives as long as the conversation."""
        self.usage: Any = {}
        """What was used: one mapping, or a list of one for each reply."""
