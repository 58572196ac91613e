"""Judge traces by checks that only look at them, and write the results without a record in between.

A run has many cells and few outcomes: most results of a check are ones that it gave before. So the part of a line with
the result is encoded once, and ids and dates are put around it; the verdict, and how the cell is counted, are
determined once for all cells with the same outcomes. The lines equal, byte for byte, those of the records that `Judge`
makes.

Anything unusual is left to `Judge`: an error, a check that takes a millisecond, a score between 0 and 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from evalwright.errors import Interrupted
from evalwright.evaluators.onlooker import Look
from evalwright.model.facts import RejudgedCell, Rejudgement
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.protocols import JudgedBlocks
from evalwright.model.result import CaseVerdict, Evaluation, Status
from evalwright.model.snapshot import Case
from evalwright.model.trace import SCHEMA_VERSION, Trace, TraceError
from evalwright.run.judge import Judge
from evalwright.run.records import Clock, reason_text
from evalwright.scoring.counts import Measures
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import failure_reason

__all__ = ["JudgedLines", "lines_by"]

_TOGETHER = 200
"""Cells that are written together, and whose measures are counted together."""
_SHORT = 0.001
"""If all checks of a cell take less than this, in seconds, their results say 0 milliseconds."""
_SAME = 0.01
"""Seconds after which a date is not reused for further cells."""
_MOST_LEFT, _AT_FIRST = 8, 100
"""Once one cell in eight was left to `Judge`, all others are, too, so that few are judged twice."""
_MOST_KINDS = 10_000
_MOST_EQUAL = 1000
"""Results of a check on the first trial that are kept in case it gives an equal one; about a kilobyte each."""
_MOST_ATTEMPTS = 100
"""Pairs of trial and attempt whose results are kept at once."""

_encode = msgspec.json.Encoder().encode


def _fields(**values: object) -> bytes:
    """Fields as they are written in a record after others."""
    return b"," + _encode(values)[1:-1]


_CASE = b'{"case_id":'
_INDEX = b"]" + _fields(error=None, case_index=None).removesuffix(b"null")
"""What stands between the reasons and the index of the case."""
_END = _fields(schema_version=SCHEMA_VERSION) + b"}\n"
_DETAIL = b',"detail":'
_LAST = _fields(cost_usd=None, hits=[], misses=[])
_SCORES = {score: _fields(score=score, reason="").removesuffix(b'""') for score in (None, 0.0, 1.0)}
"""Scores for which cells are counted together, as they are written before a reason."""

_GAP = b"\1"
"""Stands for dates in the line of a result; it does not occur in JSON."""


class _Line(msgspec.Struct, gc=False):
    """A check's result without a cell, and its line except for the case, the variant and the dates."""

    given: Evaluation
    """Kept, so that no other object gets its identity."""
    evaluator: str
    passed: bool
    skipped: bool
    score: float | None
    misses: list[str]
    reason: str
    kind: int
    line: bytes
    why_not: bytes = b""
    """What the verdict says of it, in JSON; nothing if it keeps no cell from passing."""
    cost_usd: float | None = None
    error: TraceError | None = None
    finished_at: datetime | None = None


_kind_of, _line_of = attrgetter("kind"), attrgetter("line")


class _EarlierLines:
    """One evaluator's earlier results on cells with the same trial and attempt."""

    def __init__(self, spec: EvaluatorSpec, whose: bytes, most: int) -> None:
        """`whose` are the fields of the trial and the attempt; `most` results are kept in case an equal one comes."""
        called = spec.type if spec.called is UNSET else spec.called
        either = (False, True)
        self._name, self._most = spec.name, most
        self._begins = [_fields(evaluator=spec.name, evaluator_type=called, passed=passed) + _GAP for passed in either]
        self._ends = [_fields(latency_ms=0, error=None, skipped=skipped) + whose for skipped in either]
        self.known: dict[int, _Line] = {}
        """By the identity of what the check returned."""
        self._equal: dict[bytes, _Line] | None = {}
        """By the content of what it returned; None once too many had a content of their own."""

    def new(self, evaluation: Evaluation) -> _Line | None:
        """A result whose object is not known yet; None if it is unlike what most checks return."""
        if self._equal is None:
            return self._new_line(evaluation)
        content = _encode(evaluation)
        if (line := self._equal.get(content)) is not None:
            if line.given is evaluation:  # an evaluator that returns the same object twice will return it again
                self.known[id(evaluation)] = line
        elif (line := self._new_line(evaluation)) is not None:
            self._equal[content] = line
            if len(self._equal) > self._most:
                self._equal = None
        return line

    def _new_line(self, evaluation: Evaluation) -> _Line | None:
        score, reason = evaluation.score, reason_text(evaluation)
        usual = (score is None or score.__class__ is float) and score in _SCORES and reason.__class__ is str
        if evaluation.cost_usd is not None or not usual:
            return None
        why = _encode(reason)
        line = b"".join(
            (
                self._begins[evaluation.passed],
                _SCORES[score],
                why,
                _DETAIL,
                _encode(evaluation.detail),
                self._ends[evaluation.skipped],
                _fields(cost_usd=None, hits=evaluation.hits, misses=evaluation.misses)
                if evaluation.hits or evaluation.misses
                else _LAST,
                _END,
            )
        )
        kind = evaluation.passed + 2 * evaluation.skipped + 4 * (2 if score is None else int(score))
        result = _Line(
            evaluation, self._name, evaluation.passed, evaluation.skipped, score, evaluation.misses, reason, kind, line
        )
        if (why_not := failure_reason(result)) is not None:
            result.why_not = _encode(why_not)
        return result


class _Kind:
    """Cells of a variant for which all checks had the same results, except reasons and details."""

    def __init__(self, trace: Trace, rows: Sequence[_Line], verdict: CaseVerdict, measures: Measures) -> None:
        self.trace, self.rows, self.measures = trace, rows, measures
        self.status, self.score = verdict.status, verdict.score
        self.alike = Rejudgement(trace.variant_name, self.status, None, self.score, rows)
        self.n = 0
        self.variant = _fields(variant_name=trace.variant_name)
        self.begin = _fields(status=verdict.status) + _GAP
        self.gives_reasons: bool = verdict.status != "pass" and any(row.why_not for row in rows)
        """Whether the verdict says for each cell why it did not pass."""
        reasons = [] if self.gives_reasons else verdict.reasons
        self.judged: bytes = _fields(score=verdict.score, reasons=reasons).removesuffix(b"]")


class _Attempt(NamedTuple):
    """What cells with the same trial and attempt share."""

    whose: bytes
    """Their trial and attempt, as fields."""
    checks: Sequence[tuple[Look, Callable[[int], _Line | None], Callable[[Evaluation], _Line | None]]]
    """Each evaluator's function, how to find a result of it that is known, and how to make one that is not."""


def lines_by(judge: Judge, clock: Clock, store: object, tally: Tally, *, stored: bool = False) -> JudgedLines | None:
    """Judges most cells of a run whose evaluators only look at traces; None for other runs, and for what takes no
    `JudgedBlocks`. `stored` traces are from an earlier session."""
    if not isinstance(store, JudgedBlocks) or tally.needs_records or (lookers := judge.lookers) is None:
        return None
    return JudgedLines(lookers, judge, clock, store, tally, stored=stored)


class JudgedLines:
    """Results and verdicts of a part of a run, written in the order of its traces.

    They have the date of their block: of its start for stored traces, and else of its end, because none may be older
    than the trace that has just been made.
    """

    def __init__(
        self,
        lookers: Sequence[tuple[EvaluatorSpec, Look]],
        judge: Judge,
        clock: Clock,
        blocks: JudgedBlocks,
        tally: Tally,
        *,
        stored: bool,
    ) -> None:
        self._lookers = lookers
        self._verdict, self._append, self._tally = judge.verdict, blocks.append_lines, tally
        self._note, self._stored = blocks.noting(), stored
        self._watchdog, self._clock, self._limit = judge.watchdog, clock, judge.limit
        self._counts_alike: bool = tally.counts_alike
        self._kinds: dict[tuple[Any, ...], _Kind] = {}
        self._measures: dict[str, Measures] = {}
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        self._results: list[bytes] = []
        self._verdicts: list[bytes] = []
        self._cells: list[RejudgedCell] = []
        self._waiting = self._judged = self._counted = self._left = 0
        self._gives_up = False
        self._run_id, self._run = "", b""
        self._start, self._date = 0.0, clock.now()

    def judge(self, case: Case, trace: Trace) -> Status | None:
        """Judge a cell. Returns the status of its verdict, None if `Judge` has to judge it."""
        if self._gives_up or trace.error is not None or trace.occurrence is not UNSET:
            return None
        attempt = self._attempts.get((trace.trial, trace.attempt)) or self._added_attempt(trace.trial, trace.attempt)
        start = time.monotonic()
        rows: list[Any] = [None]
        try:
            self._watchdog.until = start + self._limit
            checks = []
            for look, known, new in attempt.checks:
                returned = look(case, trace)
                checks.append(known(id(returned)) or new(returned))
            self._watchdog.until = None
            if time.monotonic() - start < _SHORT:
                rows = checks
        except Interrupted:
            raise
        except BaseException as error:  # of a check, or for what JSON cannot express: `Judge` reports it
            self._watchdog.until = None
            if isinstance(error, KeyboardInterrupt) and not self._watchdog.watches:
                raise  # Ctrl-C, in a process that is not ours
        if not all(rows):
            self._left += 1
            self._gives_up = self._left * _MOST_LEFT > self._judged + _AT_FIRST
            return None
        self._judged += 1
        return self._add(trace, attempt.whose, rows, start)

    def _add(self, trace: Trace, whose: bytes, rows: list[_Line], start: float) -> Status:
        if self._waiting >= _TOGETHER or start - self._start > _SAME or trace.run_id != self._run_id:
            self.flush()
        if not self._waiting:
            self._begin(trace.run_id, start)
        self._waiting += 1
        key = (trace.variant_name, *map(_kind_of, rows))
        kind = self._kinds.get(key) or self._added_kind(key, trace, rows)
        head = _CASE + _encode(trace.case_id) + kind.variant
        self._results += (head, head.join(map(_line_of, rows)))
        index = trace.case_index
        reasons = b",".join([row.why_not for row in rows if row.why_not]) if kind.gives_reasons else b""
        self._verdicts += (head, kind.begin, whose, kind.judged, reasons, _INDEX, _encode(index), _END)
        if self._note is not None:
            self._cells.append((index, trace.trial, trace.attempt, trace.finished_at, kind.alike))
        if self._counts_alike and trace.group is UNSET:
            kind.n += 1
            kind.measures.add(trace)
        else:
            self._tally.count(trace, rows, kind.status, kind.score)
        return kind.status

    def _added_kind(self, key: tuple[Any, ...], trace: Trace, rows: Sequence[_Line]) -> _Kind:
        measures = self._measures.setdefault(trace.variant_name, Measures())
        kind = self._kinds[key] = _Kind(trace, rows, self._verdict(trace, rows), measures)
        if len(self._kinds) > _MOST_KINDS:
            self._gives_up = True
        return kind

    def _added_attempt(self, trial: int, attempt: int) -> _Attempt:
        if len(self._attempts) >= _MOST_ATTEMPTS:
            self._attempts.clear()
        whose = _fields(trial=trial, attempt=attempt)
        most = _MOST_EQUAL // (len(self._attempts) + 1)  # so that many trials keep five times as many together as one
        checks = []
        for spec, look in self._lookers:
            says = _EarlierLines(spec, whose, most)
            checks.append((look, says.known.get, says.new))
        made_attempt = self._attempts[trial, attempt] = _Attempt(whose, checks)
        return made_attempt

    def _begin(self, run_id: str, start: float) -> None:
        """Begin a new block of cells, which share the run and a date."""
        self._start, self._date, self._run_id = start, self._clock.date(start), run_id
        self._run = _fields(run_id=run_id)

    def flush(self) -> None:
        """Write what has been judged so far, before anything else is written."""
        if not self._waiting:
            return
        if not self._stored:
            self._date = self._clock.now()
        if self._note is not None:
            self._note(self._cells, self._date)
            self._cells = []
        dates = _fields(started_at=self._date, finished_at=self._date)
        self._append(
            b"".join(self._results).replace(_GAP, dates + self._run), b"".join(self._verdicts).replace(_GAP, self._run)
        )
        self._results.clear()
        self._verdicts.clear()
        self._waiting = 0
        self._tally.reached(self._date)
        if self._judged - self._counted >= _TOGETHER:
            self._count()

    def _count(self) -> None:
        """Count what the calls of the cells took and cost."""
        self._counted = self._judged
        for variant, measures in self._measures.items():
            self._tally.count_measures(variant, measures)
            measures.clear()

    def close(self) -> None:
        """Write and count everything that is left."""
        self.flush()
        self._count()
        for kind in self._kinds.values():
            if kind.n:
                self._tally.count_alike(kind.trace, kind.rows, kind.status, kind.n)
        self._kinds.clear()
