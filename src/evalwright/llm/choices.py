"""What a user may say about the model calls of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ModelChoices"]


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """What a user may say about model calls of one run."""

    budget_usd: float | None = None
    """A hard cap for all model calls of the run, judges included."""
    allow_unpriced: bool = False
    """Ask models without a price although money is capped."""
    requests_per_minute: float | None = None
    cache: Path | None = None
    """The file of the cache, by default one in the user's cache folder."""
    no_cache: bool = False
    record: Path | None = None
    replay: Path | None = None
    no_network: bool = False
    """Refuse every call that leaves this machine."""
    mask: Callable[[str], str] | None = None
    """Takes secrets out of what is written; None: those of the environment."""

    def check(self) -> None:
        """Open the files that are named, so that a mistake shows before a run. Raises InputError."""
        if self.replay is not None or self.record is not None:
            from evalwright.llm.recorded_calls import Recorder, Recording

            if self.replay is not None:
                Recording(self.replay)
            if self.record is not None:
                Recorder(self.record, str).close()
        if self.cache is not None and not self.no_cache:
            from evalwright.llm.cache import Cache

            Cache(self.cache).close()
