"""What is going on in a run right now: read by progress displays, written by the runner."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.run.grid import Cell

__all__ = ["RunState"]


@dataclass(slots=True)
class RunState:
    """Counters of finished cells and the cells in flight. Displays poll it; they never slow a cell down."""

    total: int = 0
    done: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    cost_usd: float = 0.0
    stopping: bool = False
    """Nothing new is started, as the run was told to end or a write failed; what runs is being finished."""
    listener: Callable[[Case, Trace, Sequence[EvaluationResult], CaseVerdict], None] | None = None
    """Called with the records of each cell that this session has finished, in the event loop of the run."""
    stop_now: Callable[[], None] | None = None
    """Cancels the cells in flight, from any thread; None while no cell can be. A later session runs them again."""
    already_done: int = 0
    """Cells that an earlier session of the same run had finished; they are part of `done`."""
    warnings: Sequence[str] = ()
    """Those of the plan, to be shown before anything else."""
    running: dict[int, tuple[Cell, float]] = field(default_factory=dict)
    """Each cell in flight by its number, and the monotonic second at which it started, in order of start."""

    def count(self, status: str, cost_usd: float | None) -> None:
        """One more cell has its verdict."""
        self.done += 1
        if status == "pass":
            self.passed += 1
        elif status in ("fail", "borderline"):
            self.failed += 1
        elif status == "error":
            self.errored += 1
        else:
            self.skipped += 1
        if cost_usd:
            self.cost_usd += cost_usd

    def advance(self, cells: int) -> None:
        """More cells are done whose verdicts are not counted here."""
        self.done += cells

    def oldest(self) -> tuple[str, float] | None:
        """The cell that has been running longest, as a person reads it, and for how many seconds."""
        try:
            cell, since = next(iter(self.running.values()))
        except (StopIteration, RuntimeError):  # RuntimeError: the run's thread changed the dict meanwhile
            return None
        trial = f" · trial {cell.trial}" if cell.trial else ""
        return f"{cell.case.key} · {cell.variant.name}{trial}", time.monotonic() - since
