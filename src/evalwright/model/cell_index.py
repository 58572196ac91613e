"""The cells of a stored run as a table that can be searched: what reading commands and the viewer ask a run index.

`RunReader` gives records in the order in which they were written; a `CellIndex` gives cells, each once, by case, by
outcome, sorted and in pages, at the cost of what is asked for and not of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeVar, cast

import msgspec

from evalwright.model.cell import OfCase, case_key
from evalwright.model.result import CaseVerdict, EvaluationResult, Status
from evalwright.model.trace import Trace

__all__ = [
    "CellAttempts",
    "CellCount",
    "CellEntry",
    "CellIndex",
    "CellMeasure",
    "CellMeasures",
    "CellOrder",
    "CellOutcome",
    "CellPairs",
    "CellPlaces",
    "CellRecords",
    "CellSelection",
    "CellSum",
    "CellSums",
    "StaleIndex",
    "index_of",
]

V = TypeVar("V", bound=OfCase)

CellOrder = Literal["stored", "dataset", "latency_ms", "cost_usd", "score", "tokens_in", "tokens_out"]
"""`stored` is the order of the newest traces; `dataset` that of cases, then variants of the suite, then trials."""

CellMeasure = Literal["latency_ms", "cost_usd"]

OutcomeStatus = Literal["pass", "fail", "skip", "error"]


class StaleIndex(Exception):
    """The records at a place are not those that the index has noted: the run was changed behind its back."""


class CellOutcome(msgspec.Struct, frozen=True, gc=False):
    """One evaluator's result for a cell, without reason and detail."""

    evaluator: str
    status: OutcomeStatus
    passed: bool
    """As recorded: a skipped result may have passed."""
    skipped: bool
    score: float | None
    cost_usd: float | None


class CellEntry(msgspec.Struct, gc=False):
    """One cell: its newest attempt, which is the highest one, and of equal ones the last."""

    number: int
    """Its place in the order `dataset`, from 0; unique in the run."""
    case_id: str
    occurrence: int | msgspec.UnsetType
    variant: str
    trial: int
    attempt: int
    case_index: int | None
    status: Status | None
    """Of the stored verdict; None for a cell that has none yet, or in a folder without verdicts."""
    error: str | None
    """The type of the error of the system."""
    outcomes: Sequence[CellOutcome]
    """In the order of the results; the last one of each evaluator."""
    score: float | None
    latency_ms: int | None
    cost_usd: float | None
    tokens_in: int | None
    tokens_out: int | None
    group: str | None
    finished_at: datetime | None
    """When the last of its records was finished."""
    alike: int | None
    """Cells of one index with the same number have variant, status, error and outcomes in common; None says nothing."""

    @property
    def kind(self) -> int:
        """`alike`, or a negative number that no other cell has."""
        return -1 - self.number if self.alike is None else self.alike

    @property
    def case_key(self) -> str:
        """The name of the case as it is shown: the id, and `#2` and so on where the id is not enough."""
        return case_key(self.case_id, self.occurrence)

    @property
    def failed(self) -> bool:
        """As `inspect --failed` means it: an error of the system, or a result that neither passed nor was skipped."""
        return self.error is not None or any(not one.passed and not one.skipped for one in self.outcomes)


class CellSelection(NamedTuple):
    """Which cells are wanted: those that match everything given here. None does not restrict."""

    case: str | None = None
    """The id of a case, or its name as it is shown."""
    variant: str | None = None
    trial: int | None = None
    failed: bool = False
    """Only cells of which `CellEntry.failed` is true."""
    statuses: Collection[Status | None] | None = None
    """Statuses of verdicts; None among them stands for cells without one."""
    evaluator: str | None = None
    """Cells with a result of this evaluator; with `outcome`, only where it has that status."""
    outcome: OutcomeStatus | None = None
    """Without `evaluator`: cells with a result of any evaluator that has this status."""
    error: str | None = None
    """The type of the error of the system."""
    singular: bool = False
    """Only cells with a result that has a cost, or a score other than 0 and 1: they are like no other."""
    case_contains: str | None = None
    """A part of the name of the case, upper and lower case of ASCII letters alike. Looks at every cell."""


class CellCount(NamedTuple):
    """How many cells look alike: the same variant, status, error type and outcomes.

    Counts by status, by evaluator, by error type are sums over these; a run has a handful of them.
    """

    n: int
    variant: str
    status: Status | None
    error: str | None
    outcomes: Sequence[CellOutcome]
    """In the order of the results; a score other than 0 and 1, and a cost, are those of a cell and not said here."""
    alike: int
    """As `CellEntry.alike`."""
    singular: int
    """How many of them are like no other, for a score or a cost of a result: each is of a kind of its own."""


class CellSum(NamedTuple):
    """The sum of a measure over the cells that have it, rounded once, and their number."""

    n: int
    total: float


class CellSums(NamedTuple):
    """What the newest attempts took and cost."""

    latency_ms: CellSum
    cost_usd: CellSum
    tokens_in: CellSum
    tokens_out: CellSum
    finished_at: datetime | None
    """When the last of their records was finished."""
    grouped: int
    """Cells whose case is in a group."""
    measured: int
    """Cells with a result that has a cost, or a score other than 0 and 1: `counts` does not say all of them."""
    spent_usd: float
    """By all attempts, superseded ones included."""


class CellMeasures(NamedTuple):
    """What some cells took, column by column; all else is known of their kinds."""

    case_keys: Sequence[str]
    groups: Sequence[str | None]
    latency_ms: Sequence[int | None]
    cost_usd: Sequence[float | None]
    tokens_in: Sequence[int | None]
    tokens_out: Sequence[int | None]
    kinds: Sequence[int]
    """As `CellEntry.kind`."""


class CellAttempts(NamedTuple):
    """How far cells are, by their numbers."""

    usual: int
    """Every cell with a number below it passed, or was skipped, at its first attempt, but for the others."""
    others: Iterator[tuple[int, int, bool, Status | None]]
    """Number, attempt, whether the system errored, status of the verdict."""


class CellPlaces(NamedTuple):
    """Which cells of a run are of one variant and its only trial: those with the numbers `first`, `first + every`, …"""

    first: int
    every: int


class CellPairs(Protocol):
    """The cells of two indexed runs that are of the same cases. To be closed by who asked for it."""

    counts: Sequence[tuple[int, int, int]]
    """The kinds of both cells, and how many pairs are of these."""

    def cases(self, kinds: Collection[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
        """The names of the cases of these pairs of kinds, each with its pair. In no order."""

    def close(self) -> None: ...


class CellRecords(NamedTuple):
    """The records of a cell: the newest trace, the last result of each evaluator on it, the verdict on it."""

    trace: Trace
    results: list[EvaluationResult]
    verdict: CaseVerdict | None


class CellIndex(Protocol):
    """The cells of one stored run: see `index_of`. To be closed by who asked for it.

    It answers as a scan of the records would have at one moment: when it was opened. A run that is being written may be
    ahead of it by a moment. One thread uses it at a time.
    """

    def __len__(self) -> int:
        """The number of cells with a trace."""

    def counts(self) -> list[CellCount]:
        """All cells, counted by what they look alike in. Costs nothing that grows with the run."""

    def count(self, chosen: CellSelection = ...) -> int:
        """How many cells are chosen. By status, evaluator, error or variant alone it costs as little as `counts`."""

    def cells(
        self,
        chosen: CellSelection = ...,
        order: CellOrder = "dataset",
        *,
        descending: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> Iterator[CellEntry]:
        """The chosen cells, sorted; ties in the order of the dataset, what is not measured last. Streams."""

    def measured(self, variant: str) -> Iterator[CellMeasures]:
        """What the cells of a variant took, in blocks, in the order `dataset`. Streams."""

    def cell(self, case: str, variant: str, trial: int = 0) -> CellEntry | None:
        """One cell by the name of its case as it is shown, its variant and its trial."""

    def records(self, entry: CellEntry) -> CellRecords:
        """Read the records of a cell at their places.

        Raises StaleIndex if other records are there now: ask the reader for another index then, or scan.
        """

    def total(self, measure: CellMeasure, alike: Collection[int]) -> CellSum:
        """The sum of a measure over the cells of some `counts`."""

    def spread(self, measure: CellMeasure, alike: Collection[int]) -> list[tuple[float, int]]:
        """The values of a measure that cells of some `counts` have, the least first, and how many have each."""

    def pairs(self, other: CellIndex, mine: CellPlaces, theirs: CellPlaces) -> CellPairs | None:
        """The cells of this run and of another one of the same cases; None where they cannot be joined."""

    def sums(self) -> CellSums:
        """What all cells together took and cost."""

    def superseded(self) -> int:
        """The number of traces that do not count, because a later one of their cell does."""

    def attempts(self) -> CellAttempts:
        """How far each cell is, at the cost of those that are not as most are."""

    def verdict(self, entry: CellEntry) -> CaseVerdict | None:
        """The record of the verdict alone; as `records`."""

    def verdicts(self, kind: type[V], chosen: CellSelection) -> Iterator[V]:
        """The verdicts of the chosen cells that have one, as `kind`, as they were written; as `records`. Streams."""

    def close(self) -> None: ...


class _Indexed(Protocol):
    def index(self, *, small: bool, make: bool) -> CellIndex | None: ...


def index_of(reader: object, *, small: bool = False, make: bool = True) -> CellIndex | None:
    """The index of a run, brought up to date or made; None where a reader must scan.

    That is: a store that keeps none, a run of fewer than 20,000 cells (with `small` those have one too, in memory), one
    with lines that cannot be read, and one that another process is busy to make the index of. Without `make`, one that
    has none yet, too: for who reads a few fields once, and then replaces records, making it costs more than it saves.
    """
    indexed = cast(_Indexed, reader) if hasattr(reader, "index") else None
    return None if indexed is None else indexed.index(small=small, make=make)
