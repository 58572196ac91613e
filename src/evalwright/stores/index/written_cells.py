"""Cells whose records this process has just appended, as far as an index needs them: reading the records back takes
several times as long.

Promise. A stretch says of its records what reading them would have said, and its cells have no other records.

Steps. A stretch ends when all that was appended has been written and no trace waits for its verdict. Anything unusual
breaks the present one: an attempt after the first, a record of a trace that was appended before, a secret that was
masked, a value that JSON changes. What no stretch covers has to be read.

Limits. A stretch may take long to end where some trace always waits for its verdict: that is why only runs are noted
whose evaluators wait for nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from math import isfinite
from typing import Any, NamedTuple

from msgspec import UNSET

from evalwright.model.cell import case_key
from evalwright.model.facts import RejudgedCell, Rejudgement
from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.stores.index.codes import Profile, Unindexable, profile_of
from evalwright.stores.index.numbering import PlanNumbering
from evalwright.stores.index.rows import adjacent, microseconds
from evalwright.stores.index.schema import AT, RESULTS_PLACE, VERDICT_PLACE

__all__ = ["Stretch", "WrittenCells"]

_MOST_CELLS = 10_000
"""Cells of a stretch that are held."""
_MANY = 1000
"""Cells of ended stretches from which they are to be taken: a system that answers at once finishes many times as many
between two syncs."""
_MOST_ALIKE = 10_000

_WHOLE = (int, type(None))

_Cell = tuple[int | None, str, int]
"""Index of the case, variant, trial."""


class _Judged(NamedTuple):
    """What cells have in common that were judged alike."""

    alike: Rejudgement
    profile: Profile
    numbers: bytes | None


class Stretch(NamedTuple):
    """Cells at their first attempt, and the parts of the three files that have their records and no others."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    rows: Sequence[list[Any]]
    """Those of the cells, each with its profile in place of the profile's number."""


class WrittenCells:
    """Notes what is appended to the files of a run. All but `taken` belongs to the thread that appends."""

    def __init__(self, plan: Plan, ends: Sequence[int]) -> None:
        """The files of traces, results and verdicts end at `ends`."""
        self._place = PlanNumbering(plan).place
        self._stretches = deque[Stretch]()
        self._ended = 0
        self._open: dict[_Cell, list[Any] | None] = {}
        """The rows of traces without their verdict; None for an unusual one."""
        self._noted: Sequence[RejudgedCell] = ()
        self._date: int | None = None
        self._known: dict[int, _Judged] = {}
        self._begin(ends)

    def _begin(self, ends: Sequence[int]) -> None:
        self._starts, self._at = tuple(ends), [*ends]
        self._rows: list[list[Any]] = []
        self._results: list[EvaluationResult] = []
        """Those whose verdict has not come yet."""
        self._lengths: list[int] = []
        self._broken = False

    def add_trace(self, trace: Trace, line: bytes) -> None:
        """Note a trace that is being appended."""
        cell, length = (trace.case_index, trace.variant_name, trace.trial), len(line)
        # At once: evaluators may change the trace.
        row = None if cell in self._open else self._row(trace, length)
        if row is None:
            self._broken = True
        self._open[cell] = row
        self._at[0] += length

    def _row(self, trace: Trace, length: int) -> list[Any] | None:
        """The row of a cell that is not judged yet; None for values that are others once they were written and read."""
        index, metrics, group, occurrence = trace.case_index, trace.metrics, trace.group, trace.occurrence
        latency, cost, finished = trace.latency_ms, metrics.cost_usd, _time(trace.finished_at)
        tokens_in, tokens_out = metrics.token_input, metrics.token_output
        place = self._place(index, trace.variant_name, trace.trial)
        if (
            place is None
            or finished is None
            or trace.attempt != 1
            or not (cost is None or (cost.__class__ is float and isfinite(cost)))
            or latency.__class__ not in _WHOLE
            or tokens_in.__class__ not in _WHOLE
            or tokens_out.__class__ not in _WHOLE
        ):
            return None
        number, slot = place
        error = trace.error
        return [
            number,
            case_key(trace.case_id, occurrence),
            None if group is UNSET else group,
            slot,
            None if occurrence is UNSET else occurrence,
            index - number,  # type: ignore[operator]
            None if error is None else error.type,  # in place of the profile
            None,
            trace.trial,
            1,
            self._at[0],
            length,
            None,
            None,
            finished,
            None,
            None,
            None,
            None,
            latency,
            cost,
            tokens_in,
            tokens_out,
        ]

    def add_results(self, results: Sequence[EvaluationResult], lines: bytes) -> None:
        """Note results of one cell that are being appended."""
        self._results += results
        self._lengths += _lengths(lines)

    def add_verdict(self, verdict: CaseVerdict, line: bytes) -> None:
        """Note the verdict on the cell of the last results, which is being appended."""
        cell, rows = (verdict.case_index, verdict.variant_name, verdict.trial), self._results
        begun, judged, date = self._open.get(cell), None, None
        times = [time for row in rows if (time := _time(row.finished_at)) is not None]
        if begun is not None and len(times) == len(rows) and all(_is_of(verdict, row) for row in rows):
            judged = _judged_alike(Rejudgement(cell[1], verdict.status, begun[AT.profile], verdict.score, rows))
            date = max([begun[AT.finished], *times])
        self._add(cell, verdict.attempt, judged, date, self._lengths, len(line))
        self._results, self._lengths = [], []

    def note(self, cells: Sequence[RejudgedCell], date: datetime) -> None:
        """Note which cells the next lines belong to, in their order, and their date."""
        self._noted, self._date = cells, _time(date)

    def add_lines(self, results: bytes, verdicts: bytes) -> None:
        """Note results and verdicts of the noted cells that are being appended."""
        cells, self._noted = self._noted, ()
        lengths, begun = _lengths(results), 0
        for (case_index, trial, attempt, _, alike), size in zip(cells, _lengths(verdicts), strict=False):
            judged = self._known.get(id(alike)) or self._added_alike(alike)
            end = begun + len(alike.results)
            self._add((case_index, alike.variant, trial), attempt, judged, self._date, lengths[begun:end], size)
            begun = end

    def _added_alike(self, alike: Rejudgement) -> _Judged | None:
        judged = _judged_alike(alike)
        if judged is not None:
            if len(self._known) == _MOST_ALIKE:
                self._known.clear()
            self._known[id(alike)] = judged  # it holds the object, so that no other gets its identity
        return judged

    def _add(
        self,
        cell: _Cell,
        attempt: int,
        judged: _Judged | None,
        date: int | None,
        lengths: Sequence[int],
        size: int,
    ) -> None:
        row = self._open.pop(cell, None)
        _, results_at, verdict_at = at = self._at
        at[1] += sum(lengths)
        at[2] += size
        if row is None or judged is None or date is None or attempt != 1:
            self._broken = True
            return
        alike, row[AT.profile], row[AT.numbers] = judged
        row[RESULTS_PLACE], row[VERDICT_PLACE] = adjacent(results_at, lengths), (verdict_at, size)
        row[AT.score] = alike.score
        if date > row[AT.finished]:
            row[AT.finished] = date
        self._rows.append(row)

    def written(self, ends: Sequence[int], *, changed: bool) -> None:
        """What came so far has been written, up to these ends; `changed` if the lines are not those that came."""
        if changed or len(self._rows) > _MOST_CELLS:
            self._broken = True
            self._rows.clear()
        if self._open:
            return
        # Other ends: other processes, which write in their turns, have appended something.
        if self._rows and not (self._broken or self._results) and self._at == [*ends]:
            self._stretches.append(Stretch(self._starts, tuple(ends), self._rows))
            self._ended += len(self._rows)
        self._begin(ends)

    @property
    def are_many(self) -> bool:
        """Whether so many cells of stretches are held that they should not wait for the next sync."""
        return self._ended >= _MANY

    def replaced(self, ends: Sequence[int]) -> None:
        """Other files have taken the place of some, up to these ends."""
        self._stretches.clear()
        self._open.clear()
        self._begin(ends)

    def taken(self) -> list[Stretch]:
        """The stretches that have ended since the last call. For another thread, too."""
        stretches: list[Stretch] = []
        self._ended = 0
        try:
            while True:
                stretches.append(self._stretches.popleft())
        except IndexError:
            return stretches


def _judged_alike(alike: Rejudgement) -> _Judged | None:
    """What an index notes of a judgement; None for values that are others once they were written and read, and if an
    evaluator has two results."""
    numbers = [alike.score, *[row.score for row in alike.results], *[row.cost_usd for row in alike.results]]
    if not all(number is None or isfinite(number) for number in numbers):
        return None
    try:
        return _Judged(alike, *profile_of(alike))
    except Unindexable:
        return None


def _is_of(verdict: CaseVerdict, row: EvaluationResult) -> bool:
    """Whether a result is of the cell and the attempt of a verdict."""
    attempt = (row.case_id, row.occurrence, row.variant_name, row.trial, row.attempt)
    return attempt == (verdict.case_id, verdict.occurrence, verdict.variant_name, verdict.trial, verdict.attempt)


def _time(moment: datetime) -> int | None:
    """A time in microseconds; None if it would be read back as another text."""
    try:
        return microseconds(moment)
    except Unindexable:
        return None


def _lengths(lines: bytes) -> list[int]:
    return [*map(len, BytesIO(lines).readlines())]
