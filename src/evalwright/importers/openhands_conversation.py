"""One conversation of OpenHands while its events are read: what all releases share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.agent_turns import AgentTurn
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_time, token_count
from evalwright.importers.transcript import Transcript
from evalwright.model.trace import TraceError

__all__ = ["OpenHandsConversation"]

_ITERATIONS = ("maxiterationsreached", "maximum iteration")
"""Parts of what is said when the agent came to its limit of iterations."""


class OpenHandsConversation(Transcript):
    """A conversation of OpenHands; each generation of its events has a subclass that reads them."""

    def __init__(self, notes: ImportNotes) -> None:
        super().__init__()
        self.notes = notes
        self.model: str | None = None
        """The agent's model, if it is named."""
        self._responses: dict[str, AgentTurn] = {}
        self._failure: tuple[str, str] | None = None

    def read(self, event: Mapping[str, Any]) -> None:
        """Take the next event."""
        raise NotImplementedError

    def read_state(self, state: Mapping[str, Any]) -> None:
        """Take what is kept beside the events: models, tokens and costs of the agent and its helpers."""
        stats = state.get("stats")
        usages = stats.get("usage_to_metrics", stats.get("service_to_metrics")) if isinstance(stats, dict) else None
        if isinstance(usages, dict):
            self.read_usage(*usages.values())
        agent = state.get("agent")
        self.name_model(mapping_or_empty(mapping_or_empty(agent).get("llm")).get("model"))

    def read_usage(self, *metrics: Any) -> None:
        """Take the totals of one or several models, instead of those that are known so far."""
        total = Tokens()
        for metric in map(mapping_or_empty, metrics):
            accumulated_token_usage = metric.get("accumulated_token_usage")
            counted = Tokens()
            for usage in (
                [accumulated_token_usage]
                if isinstance(accumulated_token_usage, dict)
                else dictionaries(metric.get("token_usages"))
            ):
                counted += self._tokens(usage)
            # 0 is also what is written for a model whose price is not known, and for one that was not called
            counted.cost = recorded_dollars(metric.get("accumulated_cost"), self.notes) or None
            total += counted
        if total != Tokens():
            self.tokens = total

    def _tokens(self, usage: Mapping[str, Any]) -> Tokens:
        sent, generated, read, written, thought = (
            token_count(usage.get(key), self.notes)
            for key in (
                "prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
            )
        )  # fmt: skip
        if not sent and not generated:
            return Tokens()  # counts are 0 until a model was called
        if sent is not None and read is not None and read > sent:
            sent += read  # agents behind the Agent Client Protocol count cached tokens apart
        return Tokens(sent, generated, thought, read, written)

    def name_model(self, model: Any) -> None:
        if self.model is None and isinstance(model, str) and model:
            self.model = model
            self.models.add(model)

    def response(self, id: Any, at: datetime | None) -> AgentTurn:
        """The turn of the agent that a response of its model is: several calls can be of one response."""
        known = self._responses.get(id) if isinstance(id, str) else None
        if known is not None:
            return known
        turn = self.turn(None, at)
        self._failure = None
        if isinstance(id, str):
            self._responses[id] = turn
        return turn

    def fails(self, type: str, message: Any) -> None:
        """Something went wrong: an error, unless the agent goes on."""
        self._failure = (type, str(message or type))

    def read_outcome(self, error: Any) -> None:
        """Take the error of a record, if it has one."""
        if error:
            self.fails("agent_error", error)
            self.finish()

    def finish(self) -> None:
        """Take how the conversation ended: a limit that the user set is no error."""
        if self._failure is None:
            return
        if any(part in " ".join(self._failure).lower() for part in _ITERATIONS):
            self.extra["stopped"] = "max_iterations"
        else:
            self.error: TraceError | None = TraceError(*self._failure)

    def time_of(self, event: Mapping[str, Any]) -> datetime | None:
        at = recorded_time(event.get("timestamp"), self.notes)
        self.at(at)
        return at
