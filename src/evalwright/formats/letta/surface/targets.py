"""Targets of letta-evals, for programs that derive from them or name them; here a suite's backend answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from evalwright.formats.letta.surface.models import Sample
from evalwright.formats.letta.surface.results import TargetResult

__all__ = ["AbstractAgentTarget", "LettaAgentTarget", "LettaCodeTarget", "TargetError"]


class TargetError(Exception):
    """A target that failed, with what is known about its agent."""

    def __init__(
        self,
        message: str,
        agent_id: str | None = None,
        partial_trajectory: list[list[Any]] | None = None,
        agent_usage: list[dict[str, Any]] | None = None,
        token_data: list[Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.agent_id: str | None = agent_id
        self.partial_trajectory: list[list[Any]] = partial_trajectory or []
        self.agent_usage: list[dict[str, Any]] | None = agent_usage
        self.token_data: list[Any] | None = token_data


class AbstractAgentTarget(ABC):
    """Runs a sample."""

    @abstractmethod
    async def run(self, sample: Sample, progress_callback: Any = None, **more: Any) -> TargetResult: ...


class _ServerTarget(AbstractAgentTarget):
    def __init__(self, *_settings: Any, **settings: Any) -> None:
        self.settings: dict[str, Any] = settings

    async def run(self, sample: Sample, progress_callback: Any = None, **more: Any) -> TargetResult:
        """Raises TargetError: there is no server that the agent could run on."""
        raise TargetError(
            f"{type(self).__name__} needs a Letta server, which evalwright does not talk to: run the suite with "
            "--target file.py:function, http://..., openai:MODEL, or --cached DIR"
        )


class LettaAgentTarget(_ServerTarget):
    """An agent on a Letta server."""


class LettaCodeTarget(_ServerTarget):
    """An agent that Letta Code runs."""
