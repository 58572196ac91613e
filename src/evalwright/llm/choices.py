"""The options of a run's model calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evalwright.errors import InputError, Problem

__all__ = ["ModelChoices"]


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The options of the model calls of one run."""

    budget_usd: float | None = None
    """A hard limit for the cost of all model calls of the run, judges included; None if there is none."""
    allow_unpriced: bool = False
    """Call models without a price even though there is a budget."""
    requests_per_minute: float | None = None
    cache: Path | None = None
    """The file of the cache; None for the one in the user's cache folder."""
    no_cache: bool = False
    record: Path | None = None
    replay: Path | None = None
    batch: Path | None = None
    """Where batches are noted in which judges are to be asked; None to ask them one by one."""
    batch_failed: Callable[[str], None] | None = None
    """Hears why a batch as a whole was refused, or gave no answers."""
    no_network: bool = False
    """Reject calls to other hosts."""
    mask: Callable[[str], str] | None = None
    """Masks secrets in what is written; None to mask those of the environment."""
    tell: Callable[[str], None] = lambda _: None
    """Hears what the summary of the run should say of its calls."""
    waiting: Callable[[int], None] = lambda _: None
    """Hears how many calls wait for others, as the budget does not suffice for all at a time."""
    ends: Callable[[], bool] = lambda: False
    """Whether the run is to end: a call that waits for money is not made then."""

    def check(self) -> None:
        """Open the named files once, so that a mistake shows before the run, not in each result. Raises InputError."""
        problems = []
        if self.cache is not None and self.no_cache:
            problems.append(Problem("--no-cache", f"--cache {self.cache} has no effect with it: leave one of them out"))
        if self.record is not None and self.record == self.replay:
            problems.append(Problem("--record", f"{self.record} is the file to replay from: choose another file"))
        if problems:
            raise InputError(problems)
        if self.replay is not None or self.record is not None:
            from evalwright.llm.recorded_calls import CallRecorder, RecordedCalls

            if self.replay is not None:
                RecordedCalls(self.replay)
            if self.record is not None:
                CallRecorder(self.record, str).close()
        if self.cache is not None:
            from evalwright.llm.cache import Cache

            Cache(self.cache).close()
