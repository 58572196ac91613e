"""One cell of a run index, assembled from its records."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from evalwright.model.cell import case_key
from evalwright.stores.index.codes import Profile, Unindexable, code_of, own_numbers
from evalwright.stores.index.rows import adjacent, cell_entry, microseconds, packed, unpacked
from evalwright.stores.index.schema import AT, RESULTS_PLACE, TRACE_PLACE, VERDICT_PLACE

__all__ = [
    "CellResults",
    "CellState",
    "results_in_cells",
]


class _CellRecord(Protocol):
    case_id: str
    occurrence: int | UnsetType
    variant_name: str
    trial: int
    attempt: int


class CellResults(msgspec.Struct, gc=False):
    """Results of one cell that are next to each other, in the form in which its row has them."""

    case_id: str
    occurrence: int | UnsetType
    variant_name: str
    trial: int
    attempt: int
    outcomes: tuple[tuple[str, int], ...]
    """Evaluator and code of each."""
    numbers: tuple[float, ...]
    """Those that the codes leave out."""
    finished_at: datetime | None
    """When the last of them was finished."""


def results_in_cells(records: Iterable[tuple[Any, int, int]]) -> Iterator[tuple[CellResults, int, list[int]]]:
    """Adjacent results of one cell together, where the first of them is, and how long each is.

    Takes results with their positions and lengths.
    """
    first, start, end = None, 0, 0
    codes: list[tuple[str, int]] = []
    lengths: list[int] = []
    numbers: tuple[float, ...] = ()
    finished: datetime | None = None
    for result, at, length in records:
        if (
            first is None
            or at != end
            or result.case_id != first.case_id
            or result.trial != first.trial
            or result.variant_name != first.variant_name
            or result.attempt != first.attempt
            or result.occurrence != first.occurrence
        ):
            if first is not None:
                yield _row_of_cell(first, codes, numbers, finished), start, lengths
            first, start, end = result, at, at
            codes, lengths, numbers, finished = [], [], (), None
        code, own = code_of(result)
        codes.append((result.evaluator, code))
        lengths.append(length)
        if own:
            numbers += own
        end += length
        ended = result.finished_at
        if finished is None or (ended is not None and ended > finished):
            finished = ended
    if first is not None:
        yield _row_of_cell(first, codes, numbers, finished), start, lengths


def _row_of_cell(
    of: Any, codes: Iterable[tuple[str, int]], numbers: tuple[float, ...], finished: datetime | None
) -> CellResults:
    outcomes = tuple(codes)
    return CellResults(of.case_id, of.occurrence, of.variant_name, of.trial, of.attempt, outcomes, numbers, finished)


class CellState(msgspec.Struct, gc=False):
    """A cell as far as its records have been read. Records of a future attempt wait for its trace."""

    case_id: str
    occurrence: int | UnsetType
    variant: str
    trial: int
    number: int | None = None
    slot: int = 0
    old_row: tuple[Any, ...] | None = None
    attempt: int = 0
    early: list[tuple[Any, int, Any]] | None = None
    outcomes: tuple[tuple[str, int], ...] = ()
    numbers: tuple[float, ...] = ()
    results: tuple[int | None, bytes | None] = (None, None)
    """Their places, as in the row."""
    trace: tuple[int, int] = (0, 0)
    verdict: tuple[int, int] = (0, 0)
    status: str | None = None
    error: str | None = None
    score: float | None = None
    cost: float | None = None
    latency: int | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    case_index: int | None = None
    group: str | None = None
    finished: datetime | None = None

    @classmethod
    def of(cls, record: _CellRecord) -> CellState:
        """The cell of a record, without any record yet."""
        return cls(record.case_id, record.occurrence, record.variant_name, record.trial)

    def add_trace(self, trace: Any, at: int, length: int) -> float | None:
        """Note a trace. Returns the cost of the one that no longer counts: this one or the one before."""
        cost = trace.metrics.cost_usd
        if trace.attempt < self.attempt:
            return cost  # type: ignore[no-any-return]
        replaced = self.cost
        if trace.attempt > self.attempt:
            if self.attempt:
                self.outcomes, self.numbers, self.results = (), (), (None, None)
                self.status, self.score, self.verdict = None, None, (0, 0)
            self.attempt = trace.attempt
        # Of equal attempts, the last trace counts, with the results that are there.
        self.trace, self.case_index = (at, length), trace.case_index
        self.error = None if trace.error is None else trace.error.type
        self.cost, self.latency = cost, trace.latency_ms
        self.tokens = trace.metrics.token_input, trace.metrics.token_output
        self.group = None if trace.group is UNSET else trace.group
        self.finished = trace.finished_at
        if self.early is not None:
            waiting, self.early = self.early, None
            for record, place, size in waiting:
                (self.add_results if isinstance(record, CellResults) else self.add_verdict)(record, place, size)
        return replaced

    def add_results(self, results: CellResults, at: int, lengths: Sequence[int]) -> None:
        if results.attempt != self.attempt:
            self._wait(results, at, lengths)
            return
        if self.outcomes or len(dict(results.outcomes)) < len(results.outcomes):
            self._join(results, at, lengths)
        else:
            self.outcomes, self.numbers, self.results = results.outcomes, results.numbers, adjacent(at, lengths)
        ended = results.finished_at
        if self.finished is None or (ended is not None and ended > self.finished):
            self.finished = ended

    def _join(self, results: CellResults, at: int, lengths: Sequence[int]) -> None:
        """Add results to others. The last one of each evaluator counts, in the place of the first."""
        parts: dict[str, tuple[int, list[float], tuple[int, int]]] = {}
        starts = accumulate(lengths, initial=at)
        for outcomes, numbers, places in (
            (self.outcomes, self.numbers, unpacked(*self.results)),
            (results.outcomes, results.numbers, list(zip(starts, lengths))),  # noqa: B905 - an end is left over
        ):
            own = iter(numbers)
            for (name, code), place in zip(outcomes, places, strict=True):
                parts[name] = (code, [next(own) for _ in range(own_numbers(code))], place)
        self.outcomes = tuple([(name, code) for name, (code, _, _) in parts.items()])
        self.numbers = tuple([number for _, own, _ in parts.values() for number in own])
        self.results = packed([place for _, _, place in parts.values()])

    def add_verdict(self, verdict: Any, at: int, length: int) -> None:
        if verdict.attempt != self.attempt:
            self._wait(verdict, at, length)
            return
        if self.status is not None:
            raise Unindexable("a cell has two verdicts on one attempt")
        if verdict.case_index != self.case_index:
            raise Unindexable("a verdict is of another case than its trace")
        self.status, self.score, self.verdict = verdict.status, verdict.score, (at, length)

    def _wait(self, record: Any, at: int, size: Any) -> None:
        if record.attempt < self.attempt:
            return
        if self.early is None:
            self.early = []
        self.early.append((record, at, size))

    @property
    def profile(self) -> Profile:
        return self.variant, self.status, self.error, self.outcomes

    def row(self, profile: int, clean: bool) -> tuple[Any, ...]:
        """The row of `cells`."""
        return (
            self.number,
            case_key(self.case_id, self.occurrence),
            self.group,
            self.slot,
            None if self.occurrence is UNSET else self.occurrence,
            None if self.case_index is None else self.case_index - self.number,  # type: ignore[operator]
            profile,
            int(clean and self.attempt == 1),
            self.trial,
            self.attempt,
            *self.trace,
            *self.results,
            microseconds(self.finished),
            *self.verdict,
            array("d", self.numbers).tobytes() if self.numbers else None,
            self.score,
            self.latency,
            self.cost,
            *self.tokens,
        )

    @classmethod
    def of_row(cls, row: tuple[Any, ...], profile: Profile) -> CellState:
        """The state of a cell from its row, to continue with."""
        entry = cell_entry(row, profile, ())
        return cls(
            entry.case_id,
            entry.occurrence,
            entry.variant,
            entry.trial,
            entry.number,
            row[AT.slot],
            row,
            entry.attempt,
            outcomes=profile[3],
            numbers=tuple(array("d", row[AT.numbers] or b"")),
            results=row[RESULTS_PLACE],
            trace=row[TRACE_PLACE],
            verdict=row[VERDICT_PLACE],
            status=entry.status,
            error=entry.error,
            score=entry.score,
            cost=entry.cost_usd,
            latency=entry.latency_ms,
            tokens=(entry.tokens_in, entry.tokens_out),
            case_index=entry.case_index,
            group=entry.group,
            finished=entry.finished_at,
        )
