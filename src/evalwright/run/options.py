"""What a user may say about one run beside its suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Plan
from evalwright.model.protocols import Store
from evalwright.model.summary import RunSummary
from evalwright.run.locations import Place

__all__ = ["Outcome", "RunOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Choices for one run; None leaves what the suite says."""

    out: Path | None = None
    """The folder that gets the run folder."""
    cases: Sequence[str] = ()
    """Globs of case ids; a case that matches one is run."""
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
    """A system is called on even if it gives nothing but one and the same error."""
    allow_empty: bool = False
    """A suite without cases to run is no mistake."""

    until_decided: bool = False
    """The run ends as soon as it is decided `against` a run or another of its variants."""
    against: str | None = None
    margin: str | None = None
    max_cases: int | None = None
    max_cost: float | None = None
    """US dollars for all calls of the systems, after which no further unit is begun."""
    seed: int | None = None

    @property
    def narrowed(self) -> str:
        """How cases are selected, in words; empty if all are. An option that selects cases belongs in here, too."""
        limit = [] if self.limit is None else [f"limit {self.limit}"]
        return ", ".join([*self.cases, *(f"tag {tag}" for tag in self.tags)] or limit)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a session left behind."""

    run_dir: Path
    plan: Plan
    summary: RunSummary
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)
    """What the user should know beside the numbers, such as a torn tail that was cut."""
    place: Place | None = None
    """Where the run is, for those who read it at once: its path alone need not lead there."""

    @property
    def address(self) -> Path | Place:
        return self.place or self.run_dir

    unreadable: int = 0
    """Cells whose traces cannot be read, so that they could not be re-evaluated."""

    of_original: bool = False
    """Whether the original program wrote the run, whose re-evaluation ends with 0 whatever the verdicts."""

    @property
    def exit_code(self) -> int:
        """0 passed, 1 did not pass, 3 some cells have no verdict, 130 interrupted.

        A gate decides instead of the cells whether the run passed; without one it passes when every cell passed or was
        skipped. Either way it has not passed while a cell has no verdict.
        """
        if self.interrupted:
            return 130
        gate = self.summary.gate
        if self.plan.until_decided is not None and gate is not None:
            # errors are in the decision as the worst that they could have been, and the rest was not needed
            return 0 if gate.passed else 3 if gate.undecided else 1
        if gate is not None and not gate.passed and not gate.undecided:
            return 1
        undecided = gate is not None and gate.undecided and not gate.tolerated
        counts: dict[str, int] = {}
        for variant in self.summary.variants:
            for status, number in variant.cells.items():
                counts[status] = counts.get(status, 0) + number
        if counts.get("error") or self.summary.cells_missing or undecided:
            return 3
        return 1 if gate is None and (counts.get("fail") or counts.get("borderline")) else 0
