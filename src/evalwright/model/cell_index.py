"""The cells of a stored run as a searchable table, which the reading commands and the viewer query.

`RunReader` gives records in the order in which they were written; a `CellIndex` gives each cell once: by case, by
outcome, sorted and in pages. Its cost depends on what is asked for, not on the size of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from functools import wraps
from typing import Literal, NamedTuple, ParamSpec, Protocol, TypeVar, cast

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
    "DamagedIndex",
    "IndexCreation",
    "OutcomeStatus",
    "StaleIndex",
    "index_of",
    "rereading",
]

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V", bound=OfCase)

CellOrder = Literal["stored", "dataset", "latency_ms", "cost_usd", "score", "tokens_in", "tokens_out"]
"""`stored`: the order in which the newest traces were stored; `dataset`: by case, then variant of the suite, then
trial."""

CellMeasure = Literal["latency_ms", "cost_usd"]

OutcomeStatus = Literal["pass", "fail", "skip", "error"]


class StaleIndex(Exception):
    """The records at a place are not those that were indexed: the run has changed since."""


class DamagedIndex(StaleIndex):
    """The index itself has become unreadable, and was removed; the records are unchanged."""


def rereading(read: Callable[P, R]) -> Callable[P, R]:
    """A function that only reads stored runs, called once more if an index fails it.

    A damaged index has been removed by then, so the second call builds another one or scans the records. Never for a
    function that calls a system or a model: that would be called again, too.
    """

    @wraps(read)
    def reading(*given: P.args, **named: P.kwargs) -> R:
        try:
            return read(*given, **named)
        except StaleIndex:
            return read(*given, **named)

    return reading


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
    """One cell: its attempt with the highest number, and the last one of those with the same number."""

    number: int
    """Its position in the order `dataset`, from 0; unique in the run."""
    case_id: str
    occurrence: int | msgspec.UnsetType
    variant: str
    trial: int
    attempt: int
    case_index: int | None
    status: Status | None
    """The stored verdict's status; None for a cell without a verdict yet, or in a folder without verdicts."""
    error: str | None
    """The type of the system's error."""
    outcomes: Sequence[CellOutcome]
    """The last one of each evaluator, in the order of the results."""
    score: float | None
    latency_ms: int | None
    cost_usd: float | None
    tokens_in: int | None
    tokens_out: int | None
    group: str | None
    finished_at: datetime | None
    """When the last of its records was finished."""
    alike: int | None
    """Cells of one index with the same number share variant, status, error and outcomes. None: not compared."""

    @property
    def kind(self) -> int:
        """`alike`, or a negative number that no other cell has."""
        return -1 - self.number if self.alike is None else self.alike

    @property
    def case_key(self) -> str:
        """The name under which the case is shown: the id, followed by `#2` and so on if the id is not enough."""
        return case_key(self.case_id, self.occurrence)

    @property
    def failed(self) -> bool:
        """As for `inspect --failed`: the system errored, or a result neither passed nor was skipped."""
        return self.error is not None or any(not outcome.passed and not outcome.skipped for outcome in self.outcomes)


class CellSelection(NamedTuple):
    """Which cells are wanted: those that match every field. A field that is None does not restrict."""

    case: str | None = None
    """The id of a case, or the name under which it is shown."""
    variant: str | None = None
    trial: int | None = None
    failed: bool = False
    """Only cells whose `CellEntry.failed` is true."""
    statuses: Collection[Status | None] | None = None
    """Statuses of verdicts; None among them stands for cells without a verdict."""
    evaluator: str | None = None
    """Cells with a result of this evaluator; with `outcome`, only if that result has this status."""
    outcome: OutcomeStatus | None = None
    """Without `evaluator`: cells in which any evaluator's result has this status."""
    error: str | None = None
    """The type of the system's error."""
    singular: bool = False
    """Only cells with a result that has a cost, or a score other than 0 and 1: no other cell is counted with them."""
    case_contains: str | None = None
    """A part of the case's name, ignoring the case of ASCII letters. Looks at every cell."""


class CellCount(NamedTuple):
    """The number of cells that look alike: with the same variant, status, error type and outcomes.

    Counts by status, evaluator or error type are sums over these, and a run has only a handful of them.
    """

    n: int
    variant: str
    status: Status | None
    error: str | None
    outcomes: Sequence[CellOutcome]
    """In the order of the results; without costs and scores other than 0 and 1, which belong to single cells."""
    alike: int
    """As `CellEntry.alike`."""
    singular: int
    """How many of them have a result with a cost or such a score; each of these has a kind of its own."""


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
    """Cells with a result that has a cost, or a score other than 0 and 1, which `counts` leaves out."""
    spent_usd: float
    """By all attempts, including superseded ones."""


class CellMeasures(NamedTuple):
    """What some cells took, column by column; everything else follows from their kinds."""

    case_keys: Sequence[str]
    groups: Sequence[str | None]
    latency_ms: Sequence[int | None]
    cost_usd: Sequence[float | None]
    tokens_in: Sequence[int | None]
    tokens_out: Sequence[int | None]
    kinds: Sequence[int]
    """As `CellEntry.kind`."""


class CellAttempts(NamedTuple):
    """How far the cells are, by their numbers."""

    usual: int
    """Every cell with a lower number passed or was skipped at its first attempt, except the `others`."""
    others: Iterator[tuple[int, int, bool, Status | None]]
    """Number, attempt, whether the system errored, status of the verdict."""


class CellPlaces(NamedTuple):
    """Which cells belong to a variant with one trial: those with the numbers `first`, `first + every`, …"""

    first: int
    every: int


class CellPairs(Protocol):
    """The cells of two indexed runs, paired by case, as long as the index that it is from is open."""

    counts: Sequence[tuple[int, int, int]]
    """For each pair of kinds: the two kinds, and the number of pairs."""

    def cases(self, kinds: Collection[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
        """The cases whose pair has one of these kinds: name, kind, kind. In no particular order."""


class CellRecords(NamedTuple):
    """The records of a cell: the newest trace, each evaluator's last result on it, and its verdict."""

    trace: Trace
    results: list[EvaluationResult]
    verdict: CaseVerdict | None


class CellIndex(Protocol):
    """The cells of one stored run: see `index_of`. The caller has to close it.

    It answers as a scan of the records would have at the moment when it was opened; a run that is being written may be
    slightly ahead of it. Only one thread may use it at a time.
    """

    def __len__(self) -> int:
        """The number of cells with a trace."""

    def counts(self) -> list[CellCount]:
        """All cells, counted by what they have in common. The cost does not grow with the run."""

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
        """The chosen cells, sorted; ties in the order of the dataset, cells without the measure last. Streams."""

    def measured(self, variant: str) -> Iterator[CellMeasures]:
        """What the cells of a variant took, in blocks, in the order `dataset`. Streams."""

    def cell(self, case: str, variant: str, trial: int = 0) -> CellEntry | None:
        """One cell, by the name under which its case is shown, its variant and its trial."""

    def records(self, entry: CellEntry) -> CellRecords:
        """Read the records of a cell at their places.

        Raises StaleIndex if other records are there now: ask the reader for another index then, or scan.
        """

    def chosen_records(self, chosen: CellSelection = ..., order: CellOrder = "dataset") -> Iterator[CellRecords]:
        """The records of the chosen cells, sorted as by `cells`. Raises as `records` does. Streams."""

    def total(self, measure: CellMeasure, alike: Collection[int]) -> CellSum:
        """The sum of a measure over the cells of some `counts`."""

    def spread(self, measure: CellMeasure, alike: Collection[int]) -> list[tuple[float, int]]:
        """The values that a measure has in the cells of some `counts`, in ascending order, each with its number of
        cells."""

    def pairs(self, other: CellIndex, mine: CellPlaces, theirs: CellPlaces) -> CellPairs | None:
        """The cells of this run and another, paired by case; None if they cannot be joined."""

    def sums(self) -> CellSums:
        """What all cells together took and cost."""

    def superseded(self) -> int:
        """The number of traces that do not count because their cell has a later one."""

    def attempts(self) -> CellAttempts:
        """How far each cell is. The cost depends on the number of unusual cells only."""

    def verdict(self, entry: CellEntry) -> CaseVerdict | None:
        """The record of the verdict alone. Raises as `records` does."""

    def verdicts(self, kind: type[V], chosen: CellSelection) -> Iterator[V]:
        """The verdicts of the chosen cells that have one, as `kind`, in the order written. Raises as `records`.
        Streams."""

    def close(self) -> None: ...


IndexCreation = Literal["never", "if_large", "always", "to_keep"]
"""Which runs get an index if they have none: none of them, large ones, or any; that of a small run is in memory only,
unless it is wanted `to_keep`."""


class _Indexed(Protocol):
    def index(self, create: IndexCreation, least: int | None) -> CellIndex | None: ...


def index_of(reader: object, create: IndexCreation = "if_large", least: int | None = None) -> CellIndex | None:
    """The index of a run, created or brought up to date; None if the caller has to scan the records.

    That is the case if the store keeps no index, `create` gives this run none, lines cannot be read, or another process
    is creating the index. "never" is for a caller that reads a few fields once and then replaces the records: creating
    an index costs more than it saves. A run is large from 20,000 cells on, or from `least`, if that is fewer: for a
    caller to whom a scan costs more than creating it.
    """
    indexed = cast(_Indexed, reader) if hasattr(reader, "index") else None
    return None if indexed is None else indexed.index(create, least)
