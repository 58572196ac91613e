"""The cells of a run: every case with every variant, in each of its trials.

Also how many of them run at once, and what they are doing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from evalwright.errors import StorageError, counted
from evalwright.model.plan import Plan, Variant
from evalwright.model.protocols import RunReader
from evalwright.model.result import FAILED, CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import Replies
from evalwright.model.trace import Trace
from evalwright.session import owns_process
from evalwright.session.open_files import limit_of_files, room_for

if TYPE_CHECKING:
    from evalwright.llm.choices import ModelClient
    from evalwright.llm.routes import Route
    from evalwright.run.leases.lease import Lease

__all__ = ["Cell", "Grid", "Group", "RunState", "fitted", "groups_of", "most_at_once"]

Group = tuple[list[Variant], int]
"""Variants with one queue of cells, and the number of workers on it."""

_FILES = 8
"""Files that a cell may have open while a command starts: its pipes, both ends of each, and a handle of the process."""


class Cell(msgspec.Struct, frozen=True, gc=False):
    """One cell to run: `number` is its place in the grid, `attempt` counts attempts from 1."""

    number: int
    case_index: int
    case: Case
    variant: Variant
    trial: int
    attempt: int


class Grid:
    """The numbering of a plan's cells: cases in file order (in a shard only its own), then variants, then trials."""

    def __init__(self, plan: Plan) -> None:
        self.variants: list[Variant] = plan.variants
        self.trials: list[int] = [*map(plan.trials_of, plan.variants)]
        self.cases: int = plan.cases_total
        self._offsets = [sum(self.trials[:i]) for i in range(len(self.trials))]
        self._places = {variant.name: i for i, variant in enumerate(plan.variants)}
        self._alternates = plan.run.alternate is True
        self.per_case: int = sum(self.trials)
        shard = plan.shard
        self.total: int = self.per_case * (plan.cases_total if shard is None else shard.cases(plan.cases_total))
        self._first, self._step = (0, 1) if shard is None else (shard.index - 1, shard.of)

    def number(self, case_index: int | None, variant_name: str, trial: int) -> int | None:
        """The number of the cell to which a record belongs; None if it is not a cell of this plan."""
        place = self._places.get(variant_name)
        if place is None or case_index is None or not 0 <= case_index < self.cases:
            return None
        if not 0 <= trial < self.trials[place]:
            return None
        nth, beside = divmod(case_index - self._first, self._step)
        return None if beside else nth * self.per_case + self._offsets[place] + trial

    def numbers_of(self, variant_name: str) -> Iterator[int]:
        """The numbers of all cells of a variant."""
        place = self._places[variant_name]
        first = self._offsets[place]
        for start in range(first, self.total, self.per_case):
            yield from range(start, start + self.trials[place])

    def number_in_run(self, number: int) -> int:
        """The number of a cell in the grid of the whole run, if this grid is a shard's."""
        return self.case_index(number) * self.per_case + number % self.per_case

    def number_here(self, number_in_run: int) -> int | None:
        """The number in this grid of the cell with this number in the whole run, as an index has it; None for a cell of
        another shard."""
        if self._step == 1 or not self.total:
            return number_in_run if number_in_run < self.total else None
        case_index, place = divmod(number_in_run, self.per_case)
        nth, beside = divmod(case_index - self._first, self._step)
        number = nth * self.per_case + place
        return None if beside or not 0 <= number < self.total else number

    def beside(self, number: int) -> list[int]:
        """The cells of the same case and trial, including this one, in the order of the variants."""
        first = number // self.per_case * self.per_case
        place = max(i for i, offset in enumerate(self._offsets) if offset <= number - first)
        trial = number - first - self._offsets[place]
        return [first + self._offsets[i] + trial for i, trials in enumerate(self.trials) if trial < trials]

    def case_index(self, number: int) -> int:
        """The position of a cell's case in the dataset."""
        return number // self.per_case * self._step + self._first

    def cells(
        self, reader: RunReader, variants: list[Variant], attempt_of: Callable[[int], int], start: int = 0
    ) -> Iterator[Cell]:
        """The cells of some variants from the case at `start` on; `attempt_of(number)` is 0 for cells not to be run.

        After the last one, raises InputError if the run has fewer cases than it had: its end would say nothing about
        them.
        """
        case_index = start - 1
        chosen = [(self._places[v.name], v) for v in variants]
        fixed = None if self._alternates else list(self._order(0, chosen))
        for case_index, case in enumerate(reader.cases(start), start):
            nth, beside = divmod(case_index - self._first, self._step)
            if beside:
                continue
            first = nth * self.per_case
            for place, variant, trial in fixed or self._order(case_index, chosen):
                number = first + self._offsets[place] + trial
                attempt = attempt_of(number)
                if attempt:
                    yield Cell(number, case_index, case, variant, trial, attempt)
        if case_index + 1 < self.cases:
            reader.case(case_index + 1)

    def _order(self, case_index: int, chosen: list[tuple[int, Variant]]) -> Iterator[tuple[int, Variant, int]]:
        """The cells of a case: all trials of each variant, or the variants in turn."""
        if not self._alternates:
            yield from ((place, variant, trial) for place, variant in chosen for trial in range(self.trials[place]))
            return
        for trial in range(max(self.trials[place] for place, _ in chosen)):
            turn = (case_index + trial) % len(chosen)
            for place, variant in chosen[turn:] + chosen[:turn]:
                if trial < self.trials[place]:
                    yield place, variant, trial


@dataclass(slots=True)
class RunState:
    """Counters of finished cells and the cells in flight. Displays poll it; they never slow a cell down."""

    total: int = 0
    done: int = 0
    address: str = ""
    """The path that commands take for the run; "" if none leads to it."""
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    cost_usd: float = 0.0
    stopping: bool = False
    """Nothing new is started, because the run is to end or a write failed; cells in flight are finished."""
    halted: str = ""
    """Why the run stopped by itself although cells are left, so that it was not interrupted."""
    lease: Lease | None = None
    """The shard's lease of its limits, if they are shared."""
    models_placed: Callable[[Route], Awaitable[ModelClient | None]] | None = None
    """`ModelChoices.placed` of this session's models."""
    answered: bool = False
    """The run stops because it is decided or has reached its cost limit: it was not interrupted."""
    listener: Callable[[Case, Trace, Sequence[EvaluationResult], CaseVerdict], None] | None = None
    """Called with the records of each cell that this session has finished, in the event loop of the run."""
    behind: Callable[[], bool] | None = None
    """Whether so many cells wait for whoever receives them from the listener that further ones have to wait, too."""
    stuck: dict[str, str] = field(default_factory=dict[str, str])
    """By variant, why its system is no longer called although cells are left."""
    answers: dict[str, int] = field(default_factory=dict[str, int])
    """How many answers this session has got, for each variant whose system it has called."""
    replies: dict[str, Replies] = field(default_factory=dict[str, Replies])
    """By variant, what was odd about these answers, after the last cell."""
    doubts: list[str] = field(default_factory=list[str])
    """What was odd about the answers of a system, after the last cell, and what went wrong when it was closed. Each
    begins with the name of the variant and a colon."""
    stop_now: Callable[[], None] | None = None
    """Cancels the cells in flight, from any thread; None if there can be none. A later session runs them."""
    already_done: int = 0
    """Cells that an earlier session of the same run finished; they are part of `done`."""
    at_once: int | None = None
    """The most cells that the limit of open files allows; None if it allows as many as requested."""
    warnings: Sequence[str] = ()
    """Warnings of the plan, to be shown before anything else."""
    about: Sequence[str] = ()
    """What a user should know before it begins."""
    waiting: int = 0
    """Model calls that wait for others because the budget does not suffice for all at once."""
    running: dict[int, tuple[Cell, float]] = field(default_factory=dict)
    """Each cell in flight by its number, with the monotonic time at which it started, in order of start."""

    @property
    def interrupted(self) -> bool:
        """Whether cells were left out although the run has no answer without them."""
        return self.stopping and not self.answered and not self.halted and self.done < self.total

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """A write that fails in this block names the run: its own message may only name a database."""
        try:
            yield
        except StorageError as error:
            error.run = self.address
            raise

    def count(self, status: str, cost_usd: float | None) -> None:
        """Count a cell that now has its verdict."""
        self.done += 1
        if status == "pass":
            self.passed += 1
        elif status in FAILED:
            self.failed += 1
        elif status == "error":
            self.errored += 1
        else:
            self.skipped += 1
        if cost_usd:
            self.cost_usd += cost_usd

    def advance(self, cells: int) -> None:
        """Count finished cells without counting their verdicts."""
        self.done += cells

    def oldest(self) -> tuple[str, float] | None:
        """The cell that has been running longest, in readable form, and for how many seconds."""
        try:
            cell, since = next(iter(self.running.values()))
        except (StopIteration, RuntimeError):  # RuntimeError: the run's thread changed the dict meanwhile
            return None
        trial = f" · trial {cell.trial + 1}" if cell.trial else ""
        return f"{cell.case.key} · {cell.variant.name}{trial}", time.monotonic() - since


def groups_of(plan: Plan) -> Iterator[Group]:
    """Variants whose cells share a limit on concurrent calls, and that limit."""
    run = plan.run
    for pool, width in run.pools.items():
        if pooled := [v for v in plan.variants if v.pool == pool]:
            yield pooled, width
    others = [v for v in plan.variants if v.pool not in run.pools]
    if run.per_variant_concurrency is None and all(v.concurrency is None for v in others):
        if others:
            yield others, run.max_concurrency
        return
    for variant in others:
        yield [variant], variant.concurrency or run.per_variant_concurrency or run.max_concurrency


def fitted(groups: Iterable[Group], total: int, most: int | None = None) -> list[Group]:
    """The groups for `total` cells, of which at most `most` run at once."""
    groups = [(variants, min(width, total)) for variants, width in groups]
    wanted = sum(width for _, width in groups)
    if most is None or most >= wanted:
        return groups
    return [(variants, max(1, width * most // wanted)) for variants, width in groups]


def most_at_once(plan: Plan, total: int) -> tuple[int | None, str]:
    """The most cells for which there can be open files, and a warning if that is fewer than requested.

    If the process is ours, its limit is raised as far as the system allows; otherwise it belongs to the caller.
    """
    elsewhere = plan.run.executor is not msgspec.UNSET  # files of calls are opened by the workers there
    if elsewhere or not owns_process() or all(variant.adapter == "replay" for variant in plan.variants):
        return None, ""
    wanted = sum(width for _, width in fitted(groups_of(plan), total))
    most = room_for(wanted, _FILES)
    if most >= wanted:
        return None, ""
    limit = limit_of_files()
    return most, f"{counted(most, 'cell')} at a time, not {wanted}: only {limit} files may be open (ulimit -n)"
