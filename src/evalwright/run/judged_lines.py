"""Judge stored and recorded traces by checks that only look at them, and write the results without a record in between.

A run has many cells and few outcomes: most results of a check are ones that it gave before. So the part of a line with
the result is encoded once, and ids and dates are put around it; the verdict, and how the cell is counted, are
determined once for all cells with the same outcomes. The lines equal, byte for byte, those of the records that `Judge`
makes.

Anything unusual is left to `Judge`: an error, a check that takes a millisecond, a score between 0 and 1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from evalwright.errors import Interrupted
from evalwright.evaluators.onlooker import Look
from evalwright.model.cell_index import RejudgedCell, Rejudgement
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.protocols import JudgedBlocks
from evalwright.model.result import CaseVerdict, Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import SCHEMA_VERSION, Trace, TraceError
from evalwright.run.judge import Judge
from evalwright.run.records import Clock, reason_given
from evalwright.scoring.counts import Measures
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import told_of

__all__ = ["JudgedLines", "lines_by"]

_TOGETHER = 200
"""Cells that are written and counted together."""
_SHORT = 0.001
"""If all checks of a cell take less than this, in seconds, their results say 0 milliseconds."""
_SAME = 0.01
"""Seconds after which a date is not reused for further cells."""
_MOST_LEFT, _AT_FIRST = 8, 100
"""Once one cell in eight was left to `Judge`, all others are, too, so that few are judged twice."""
_MOST_KINDS = 10_000
_MOST_EQUAL = 1000
"""Results of a check that are kept in case it gives an equal one; about a kilobyte each."""

_encode = msgspec.json.Encoder().encode


def _fields(**values: object) -> bytes:
    """Fields as they are written in a record after others."""
    return b"," + _encode(values)[1:-1]


_REASONS = b',"reasons":'
_CASE = b'{"case_id":'
_INDEX = _fields(error=None, case_index=None).removesuffix(b"null")
_END = _fields(schema_version=SCHEMA_VERSION) + b"}\n"


_GAP = b"\1"
"""Stands for dates in the line of a result; it does not occur in JSON."""


_WHOSE = b"\2"
"""Stands for the trial and attempt in that line."""


def _last(hits: Sequence[str], misses: Sequence[str]) -> bytes:
    """The end of the line of a result."""
    return _fields(cost_usd=None, hits=hits, misses=misses) + _END


_LAST = _last([], [])


class _After(msgspec.Struct, gc=False):
    """Fields of `EvaluationResult` that a check determines, after the dates."""

    score: float | None
    reason: str
    detail: dict[str, Any]
    latency_ms: int = 0
    error: None = None
    skipped: bool = False


class _Said:
    """A check's result without a cell: the result, and its line except for the cell's own parts."""

    __slots__ = ("evaluator", "given", "kind", "line", "misses", "passed", "reason", "score", "skipped", "told")

    cost_usd: float | None = None
    error: TraceError | None = None
    finished_at: datetime | None = None

    def __init__(self, evaluator: str, begin: bytes, given: Evaluation) -> None:
        self.given = given  # kept, so that no other object gets its identity
        self.evaluator, self.reason = evaluator, reason_given(given)
        self.passed, self.score, self.skipped, self.misses = given.passed, given.score, given.skipped, given.misses
        self.kind: int = self.passed + 2 * self.skipped + 4 * (2 if self.score is None else int(self.score))
        self.told = told_of(self)
        after = _encode(_After(self.score, self.reason, given.detail, skipped=self.skipped))
        usual = not (given.hits or given.misses)
        self.line = begin + _GAP + b"," + after[1:-1] + _WHOSE + (_LAST if usual else _last(given.hits, given.misses))


def _is_usual(score: Any) -> bool:
    """Whether a score is one of those for which cells are counted together."""
    return score is None or (score.__class__ is float and score in (0.0, 1.0))


class _Sayings:
    """One evaluator's earlier results."""

    def __init__(self, spec: EvaluatorSpec) -> None:
        called = spec.type if spec.called is UNSET else spec.called
        self._name = spec.name
        self._begins = [_fields(evaluator=spec.name, evaluator_type=called, passed=passed) for passed in (False, True)]
        self._last: object = None
        self.known: dict[int, _Said] = {}
        """By the identity of what the check returned."""
        self._equal: dict[bytes, _Said] = {}
        """By the content of what it returned."""

    def new(self, given: Evaluation) -> _Said | None:
        """A result whose object is not known yet; None if it is unlike what most checks return."""
        if given.cost_usd is not None or not _is_usual(given.score):
            return None
        if given is self._last:  # an evaluator that returns the same object twice keeps it, and will return it again
            self.known[id(given)] = _Said(self._name, self._begins[given.passed], given)
            return self.known[id(given)]
        self._last, content = given, _encode(given)
        said = self._equal.get(content)
        if said is None:
            said = _Said(self._name, self._begins[given.passed], given)
            if len(self._equal) < _MOST_EQUAL:
                self._equal[content] = said
        return said


class _Kind:
    """Cells of a variant for which all checks had the same results, except reasons and details."""

    def __init__(self, trace: Trace, rows: Sequence[_Said], verdict: CaseVerdict, measures: Measures) -> None:
        self.trace, self.rows, self.measures = trace, rows, measures
        self.status, self.score = verdict.status, verdict.score
        self.alike = Rejudgement(trace.variant_name, self.status, None, self.score, rows)
        self.n = 0
        self.variant = _fields(variant_name=trace.variant_name)
        self.begin, self.end = _fields(status=verdict.status) + _GAP, _fields(score=verdict.score)
        self.tells: bool = verdict.status != "pass" and any(row.told is not None for row in rows)
        """Whether the verdict says for each cell why it did not pass."""
        if not self.tells:
            self.end += _fields(reasons=verdict.reasons)


def lines_by(judge: Judge, clock: Clock, blocks: JudgedBlocks, tally: Tally) -> JudgedLines | None:
    """Judges most cells of a run whose evaluators only look at traces; None for other runs."""
    if tally.needs_records or (lookers := judge.lookers) is None:
        return None
    return JudgedLines(lookers, judge, clock, blocks, tally)


class JudgedLines:
    """Results and verdicts of a part of a run, written in the order of its traces."""

    def __init__(
        self,
        lookers: Sequence[tuple[EvaluatorSpec, Look]],
        judge: Judge,
        clock: Clock,
        blocks: JudgedBlocks,
        tally: Tally,
    ) -> None:
        self._looks = [look for _, look in lookers]
        sayings = [_Sayings(spec) for spec, _ in lookers]
        self._says = [(one.known.get, one.new) for one in sayings]
        self._verdict, self._blocks, self._tally = judge.verdict, blocks, tally
        self._watchdog, self._clock, self._limit = judge.watchdog, clock, judge.limit
        self._counts_alike: bool = tally.counts_alike
        self._kinds: dict[tuple[Any, ...], _Kind] = {}
        self._measures: dict[str, Measures] = {}
        self._attempts: dict[tuple[int, int], bytes] = {}
        self._results: list[bytes] = []
        self._verdicts: list[bytes] = []
        self._cells: list[RejudgedCell] = []
        self._judged = self._left = 0
        self._run_id, self._run = "", b""
        self._start, self._date = 0.0, clock.now()

    def judge(self, case: Case, trace: Trace) -> bool:
        """Judge a cell; False if `Judge` has to."""
        if trace.error is not None or trace.occurrence is not UNSET:
            return False
        if self._left * _MOST_LEFT > self._judged + _AT_FIRST or len(self._kinds) > _MOST_KINDS:
            return False
        start = time.monotonic()
        rows: list[Any] = [None]
        try:
            self._watchdog.until = start + self._limit
            given = [look(case, trace) for look in self._looks]
            self._watchdog.until = None
            if time.monotonic() - start < _SHORT:
                says = zip(self._says, given, strict=True)
                rows = [known(id(one)) or new(one) for (known, new), one in says]
        except Interrupted:
            raise
        except BaseException:  # an error of a check, or a value that JSON cannot express: `Judge` reports it
            self._watchdog.until = None
        if None in rows:
            self._left += 1
            return False
        self._judged += 1
        self._add(trace, rows, start)
        return True

    def _add(self, trace: Trace, rows: list[_Said], start: float) -> None:
        if len(self._cells) >= _TOGETHER or start - self._start > _SAME or trace.run_id != self._run_id:
            self.flush()
        if not self._cells:
            self._begin(trace.run_id, start)
        key = (trace.variant_name, *[row.kind for row in rows])
        kind = self._kinds.get(key) or self._added(key, trace, rows)
        attempt = (trace.trial, trace.attempt)
        whose = self._attempts.get(attempt) or self._whose(*attempt)
        head = _CASE + _encode(trace.case_id) + kind.variant
        self._results += (head, head.join([row.line for row in rows]).replace(_WHOSE, whose))
        index = trace.case_index
        self._verdicts += (
            head,
            kind.begin,
            whose,
            kind.end,
            _REASONS + _encode([row.told for row in rows if row.told is not None]) if kind.tells else b"",
            _INDEX,
            b"null" if index is None else b"%d" % index,
            _END,
        )
        self._cells.append((index, trace.trial, trace.attempt, max(self._date, trace.finished_at), kind.alike))
        if self._counts_alike and trace.group is UNSET:
            kind.n += 1
            kind.measures.add(trace)
        else:
            self._tally.count(trace, rows, kind.status, kind.score)

    def _added(self, key: tuple[Any, ...], trace: Trace, rows: Sequence[_Said]) -> _Kind:
        measures = self._measures.setdefault(trace.variant_name, Measures())
        kind = self._kinds[key] = _Kind(trace, rows, self._verdict(trace, rows), measures)
        return kind

    def _whose(self, trial: int, attempt: int) -> bytes:
        """The fields of a trial and an attempt."""
        found = self._attempts[trial, attempt] = _fields(trial=trial, attempt=attempt)
        return found

    def _begin(self, run_id: str, start: float) -> None:
        """Begin a new block of cells, which share the run and a date."""
        self._start, self._date, self._run_id = start, self._clock.date(start), run_id
        self._run = _fields(run_id=run_id)

    def flush(self) -> None:
        """Write and count what has been judged so far, before anything else is written."""
        if not self._cells:
            return
        dates = _fields(started_at=self._date, finished_at=self._date)
        self._blocks.note(self._cells)
        self._blocks.append_lines(
            b"".join(self._results).replace(_GAP, dates + self._run), b"".join(self._verdicts).replace(_GAP, self._run)
        )
        self._results.clear()
        self._verdicts.clear()
        for variant, measures in self._measures.items():
            self._tally.count_measures(variant, measures)
            measures.clear()
        self._tally.reached(self._date)
        self._cells = []

    def close(self) -> None:
        """Write and count everything that is left."""
        self.flush()
        for kind in self._kinds.values():
            if kind.n:
                self._tally.count_alike(kind.trace, kind.rows, kind.status, kind.n)
        self._kinds.clear()
