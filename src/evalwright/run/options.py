"""What a user may choose for one run, besides its suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Shard
from evalwright.model.protocols import Store

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Choices for one run; None leaves what the suite says."""

    out: Path | None = None
    """Folder in which the run folder is created."""
    cases: Sequence[str] = ()
    """Globs of case ids, one of which a case that is run matches; and conditions, `PATH=VALUE` with a dotted path into
    the case, such as `metadata.tier=gold`, one of which it fulfils for each path."""
    tags: Sequence[str] = ()
    """A case with one of them is run."""
    limit: int | None = None
    trials: int | None = None
    concurrency: int | None = None
    target: str | None = None
    """A Python target, `module:callable`, instead of the suite's own."""
    models: ModelChoices | None = None
    store: Store | None = None
    """Where the run is kept, instead of the suite's own store."""
    keep_going: bool = False
    """A system is still called even if it only returns the same error."""
    executor: str | None = None
    """`local` or `ray`, instead of the suite's own."""
    no_index: bool = False
    """No index is kept of the run."""
    allow_empty: bool | None = False
    """A suite without cases to run is accepted; None: it is not, and the user has no option that says so."""
    shard: Shard | None = None
    """Only the cells of these cases are run. If the folder `out` already has this shard, it is resumed."""
    lease: str | None = None
    """The ledger from which the shard takes its part of the limits: a folder, or `postgres:SCHEMA`."""

    until_decided: bool = False
    """The run ends as soon as it is decided `against` a run or another of its variants."""
    against: str | None = None
    margin: str | None = None
    max_cases: int | None = None
    max_cost: float | None = None
    """US dollars for all calls of the systems, after which no further unit is started."""
    seed: int | None = None

    @property
    def narrowed(self) -> str:
        """How cases are selected, in words; empty if all are. Every option that selects cases has to be included."""
        limit = [] if self.limit is None else [f"limit {self.limit}"]
        # an empty text, made by a shell from an unset variable, must be visible, and selects no case
        named = [*(case or "''" for case in self.cases), *(f"tag {tag or repr(tag)}" for tag in self.tags)]
        return ", ".join(named or limit)
