"""One cell of a run index: assembled from its records, written as a row, and read back from it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Protocol

from msgspec import UNSET, UnsetType

from evalwright.model.cell import case_key
from evalwright.model.cell_index import CellEntry, CellOutcome
from evalwright.stores.index.codes import Profile, code_of, outcomes_of, own_numbers
from evalwright.stores.index.schema import case_hash

__all__ = ["CellState", "Odd", "cell_entry", "id_of_row", "moment_of", "moved_row", "places_of", "results_block"]

_EPOCH = datetime(2028, 1, 1, tzinfo=UTC)
"""SQLite stores microseconds within four years of this date in six bytes, and all others in eight."""
_MICROSECOND = timedelta(microseconds=1)
_LONGEST = 0xFFFF


class Odd(Exception):
    """Something that an index cannot report as a scan would: such a run has no index and is scanned."""


class _Of(Protocol):
    case_id: str
    occurrence: int | UnsetType
    variant_name: str
    trial: int
    attempt: int


def microseconds(moment: datetime | None) -> int | None:
    """A time as a whole number. Raises Odd for a time in another zone, which would be read back as another text."""
    if moment is None:
        return None
    if moment.tzinfo is not UTC:
        raise Odd("a time is not in UTC")
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(finished: int | None) -> datetime | None:
    """The time for a number of microseconds."""
    return None if finished is None else _EPOCH + finished * _MICROSECOND


_Result = tuple[int, Sequence[float], int, int]
"""The code of a result, the numbers that it leaves out, where the record is, and its length."""


class CellState:
    """A cell as far as its records have been read. Records of a future attempt wait for its trace."""

    __slots__ = (
        "attempt", "case_id", "case_index", "cost", "early", "error", "finished", "group", "latency", "number",
        "occurrence", "old_row", "results", "score", "slot", "status", "tokens", "trace", "trial", "variant",
        "verdict",
    )  # fmt: skip

    def __init__(self, record: _Of) -> None:
        self.case_id: str = record.case_id
        self.occurrence: int | UnsetType = record.occurrence
        self.variant: str = record.variant_name
        self.trial: int = record.trial
        self.number: int | None = None
        self.slot: int = 0
        self.old_row: tuple[Any, ...] | None = None
        self.attempt: int = 0
        self.early: list[tuple[bool, Any, int, int]] | None = None
        self.results: dict[str, _Result] = {}
        self.trace: tuple[int, int] = (0, 0)
        self.verdict: tuple[int, int] = (0, 0)
        self.status: str | None = None
        self.error: str | None = None
        self.score: float | None = None
        self.cost: float | None = None
        self.latency: int | None = None
        self.tokens: tuple[int | None, int | None] = (None, None)
        self.case_index: int | None = None
        self.group: str | None = None
        self.finished: datetime | None = None

    @property
    def key(self) -> str:
        return case_key(self.case_id, self.occurrence)

    def add_trace(self, trace: Any, at: int, length: int) -> float | None:
        """Note a trace. Returns the cost of the one that no longer counts: this one or the one before."""
        cost = trace.metrics.cost_usd
        if trace.attempt < self.attempt:
            return cost  # type: ignore[no-any-return]
        replaced = self.cost
        if trace.attempt > self.attempt:
            self.attempt = trace.attempt
            self.results, self.status, self.score, self.verdict = {}, None, None, (0, 0)
        # Of equal attempts, the last trace counts, with the results that are there.
        self.trace, self.case_index = (at, length), trace.case_index
        self.error = None if trace.error is None else trace.error.type
        self.cost, self.latency = cost, trace.latency_ms
        self.tokens = trace.metrics.token_input, trace.metrics.token_output
        self.group = None if trace.group is UNSET else trace.group
        self.finished = trace.finished_at
        if self.early is not None:
            waiting, self.early = self.early, None
            for is_result, record, place, size in waiting:
                (self.add_result if is_result else self.add_verdict)(record, place, size)
        return replaced

    def add_result(self, result: Any, at: int, length: int) -> None:
        if result.attempt != self.attempt:
            self._wait(True, result, at, length)
            return
        code, numbers = code_of(result)
        self.results[result.evaluator] = (code, numbers, at, length)
        finished, last = result.finished_at, self.finished
        if last is None or (finished is not None and finished > last):
            self.finished = finished

    def add_verdict(self, verdict: Any, at: int, length: int) -> None:
        if verdict.attempt != self.attempt:
            self._wait(False, verdict, at, length)
            return
        if self.status is not None:
            raise Odd("a cell has two verdicts on one attempt")
        if verdict.case_index != self.case_index:
            raise Odd("a verdict is of another case than its trace")
        self.status, self.score, self.verdict = verdict.status, verdict.score, (at, length)

    def _wait(self, is_result: bool, record: Any, at: int, length: int) -> None:
        if record.attempt < self.attempt:
            return
        if self.early is None:
            self.early = []
        self.early.append((is_result, record, at, length))

    @property
    def profile(self) -> Profile:
        outcomes = tuple([(name, result[0]) for name, result in self.results.items()])
        return self.variant, self.status, self.error, outcomes

    def row(self, profile: int, clean: bool) -> tuple[Any, ...]:
        """The row of `cells`."""
        places = [result[2:] for result in self.results.values()]
        numbers = [number for result in self.results.values() if result[1] for number in result[1]]
        renamed = self.occurrence is not UNSET
        return (
            self.number,
            self.key,
            self.group,
            self.slot,
            case_hash(self.case_id) if renamed else None,
            self.occurrence if renamed else None,
            self.case_index,
            profile,
            int(clean and self.attempt == 1),
            self.trial,
            self.attempt,
            *self.trace,
            *_packed(places),
            microseconds(self.finished),
            *self.verdict,
            array("d", numbers).tobytes() if numbers else None,
            self.score,
            self.latency,
            self.cost,
            *self.tokens,
        )

    @classmethod
    def of_row(cls, row: tuple[Any, ...], profile: Profile) -> CellState:
        """The state of a cell from its row, to continue with."""
        entry = cell_entry(row, profile)
        state = cls.__new__(cls)
        state.case_id, state.occurrence, state.variant = entry.case_id, entry.occurrence, entry.variant
        state.trial, state.number, state.slot, state.old_row = entry.trial, entry.number, row[3], row
        state.attempt, state.early, state.status, state.error = entry.attempt, None, entry.status, entry.error
        state.trace, state.verdict, state.score = (row[11], row[12]), (row[16], row[17]), entry.score
        state.cost, state.latency = entry.cost_usd, entry.latency_ms
        state.tokens, state.case_index = (entry.tokens_in, entry.tokens_out), entry.case_index
        state.group, state.finished = entry.group, entry.finished_at
        numbers = iter(array("d", row[18] or b""))
        state.results = {}
        for (name, code), (at, length) in zip(profile[3], places_of(row), strict=True):
            own = [next(numbers) for _ in range(own_numbers(code))]
            state.results[name] = (code, own, at, length)
        return state


def _packed(places: Sequence[tuple[int, int]]) -> tuple[int | None, bytes | None]:
    """Where results are: the first place and the lengths if they are adjacent, as they are except after retries."""
    if not places:
        return None, None
    at = start = places[0][0]
    for place, length in places:
        if place != at or length > _LONGEST:
            return None, array("q", chain.from_iterable(places)).tobytes()
        at += length
    return start, array("H", [length for _, length in places]).tobytes()


def places_of(row: Sequence[Any]) -> list[tuple[int, int]]:
    """Where a row's results are, each as position and length."""
    at, packed = row[13], row[14]
    if at is None:
        numbers = array("q", packed or b"")
        return list(zip(numbers[::2], numbers[1::2], strict=True))
    places = []
    for length in array("H", packed):
        places.append((at, length))
        at += length
    return places


def results_block(row: Sequence[Any]) -> tuple[int, int]:
    """Where a row's results are if they are adjacent; nothing if they are not."""
    return (0, 0) if row[13] is None else (row[13], sum(array("H", row[14])))


def moved_row(
    row: Sequence[Any],
    profile: int,
    numbers: bytes | None,
    trace: tuple[int, int],
    results: tuple[int, Sequence[int]],
    verdict: tuple[int, int],
) -> tuple[Any, ...]:
    """The row of a cell whose records have moved to other places, and whose results may be in another order.

    A place is start and length; results are adjacent, and have one length each.
    """
    return *row[:7], profile, *row[8:11], *trace, *_side_by_side(*results), row[15], *verdict, numbers, *row[19:]


def _side_by_side(at: int, lengths: Sequence[int]) -> tuple[int | None, bytes | None]:
    if lengths and max(lengths) <= _LONGEST:
        return at, array("H", lengths).tobytes()
    return _packed([(at + sum(lengths[:place]), length) for place, length in enumerate(lengths)])


def id_of_row(row: Sequence[Any]) -> str:
    """The id of a row's case."""
    name: str = row[1]
    return name if row[5] is None else name.removesuffix(f"#{row[5]}")


def cell_entry(row: Sequence[Any], profile: Profile, outcomes: Sequence[CellOutcome] | None = None) -> CellEntry:
    """The cell of a row."""
    variant, status, error, _ = profile
    return CellEntry(
        row[0],
        id_of_row(row),
        UNSET if row[5] is None else row[5],
        variant,
        row[9],
        row[10],
        row[6],
        status,  # type: ignore[arg-type]
        error,
        outcomes_of(profile, row[18]) if outcomes is None else outcomes,
        row[19],
        row[20],
        row[21],
        row[22],
        row[23],
        row[2],
        moment_of(row[15]),
        row[7] if row[18] is None else None,
    )
