"""The options of a run's model calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evalwright.errors import AllMistakes, InputError, Problem

if TYPE_CHECKING:
    from evalwright.llm.fitting import Fit
    from evalwright.llm.funds import Funds
    from evalwright.llm.retries import Pace
    from evalwright.llm.routes import Route
    from evalwright.model.chat import ChatReply, ChatRequest

__all__ = ["ModelChoices", "ModelClient", "SharedLimits"]


class ModelClient(Protocol):
    """Makes single calls of a model."""

    async def chat(self, model: str, request: ChatRequest, fit: Fit) -> ChatReply:
        """One attempt. Raises CallFailed."""

    async def close(self) -> None: ...


class SharedLimits(Protocol):
    """Limits on model calls that several processes share."""

    @property
    def budget(self) -> Funds | None: ...

    @property
    def pace(self) -> Pace | None: ...

    def shared(self, place: str, pause: Callable[[float], None]) -> Callable[[float], None]:
        """Make `pause` be called when another process is asked not to call a place for some seconds; returns the
        function that tells the others if this one is."""


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The options of a run's model calls."""

    budget_usd: float | None = None
    """A hard limit on the cost of all model calls of the run, including judges; None if there is none."""
    spent_usd: float = 0.0
    """How much of the budget earlier sessions of the same command have spent."""
    allow_unpriced: bool = False
    """Call models without a price even if there is a budget."""
    requests_per_minute: float | None = None
    shared: SharedLimits | None = None
    """Limits in the place of these three, if other processes share them."""
    cache: Path | None = None
    """The file of the cache; None: the one in the user's cache folder."""
    no_cache: bool = False
    record: Path | None = None
    replay: Path | None = None
    batch: Path | None = None
    """Where batches of judge calls are noted; None: these calls are made one by one."""
    batch_failed: Callable[[str], None] | None = None
    """Called with the reason why a whole batch was rejected or gave no answers."""
    placed: Callable[[Route], Awaitable[ModelClient | None]] | None = None
    """Gives the client of a model that other processes call; None, or for None, this process calls it."""
    no_network: bool = False
    """Reject calls to other hosts."""
    mask: Callable[[str], str] | None = None
    """Masks secrets in what is written; None: masks those of the environment."""
    warn: Callable[[str], None] = lambda _: None
    """Called with the warnings about calls for the run's summary."""
    waiting: Callable[[int], None] = lambda _: None
    """Called with the number of calls that wait because the budget does not suffice for all at once."""
    ends: Callable[[], bool] = lambda: False
    """Whether the run is about to end: a call that waits for money is then not made."""

    def check(self) -> None:
        """Open the named files once, so that a mistake is reported before the run, not in each result. Raises
        InputError."""
        mistakes = AllMistakes()
        if self.replay is not None:
            from evalwright.llm.recorded_calls import RecordedCalls

            with mistakes:
                RecordedCalls(self.replay)
        if self.record is not None:
            with mistakes:
                self._check_recorder(self.record)
        if self.cache is not None:
            with mistakes:
                self._check_cache(self.cache)
        mistakes.refuse()

    def _check_recorder(self, file: Path) -> None:
        if file == self.replay:
            raise InputError(Problem("--record", f"{file} is the file to replay from: choose another file"))
        from evalwright.llm.recorded_calls import CallRecorder

        CallRecorder(file, str).close()

    def _check_cache(self, file: Path) -> None:
        if self.no_cache:
            raise InputError(Problem("--no-cache", f"--cache {file} has no effect with it: leave one of them out"))
        from evalwright.llm.cache import Cache

        Cache(file).close()
