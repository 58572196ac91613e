"""Judge the traces of one part of a run again: new results and verdicts, written in the order of the traces."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.model.cell import AttemptKey, attempt_key
from evalwright.model.facts import Rejudgement
from evalwright.model.plan import Plan
from evalwright.model.protocols import JudgedBlocks, JudgementShare, Part, RunWriter
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.run.judge import Judge
from evalwright.run.judged_lines import lines_by
from evalwright.run.limits import Watchdog, end_loose_tasks, new_loop, run_to_end
from evalwright.run.newest import NewestTraces
from evalwright.run.records import Clock, PendingResult
from evalwright.run.stored_run import CaseOf
from evalwright.scoring.tally import Tally
from evalwright.session import session

if TYPE_CHECKING:
    from evalwright.run.steps.compare import WaitingCells
    from evalwright.run.stored_artifacts import StoredArtifacts

__all__ = ["JudgingJob", "judge_part"]

_REPORT_EVERY = 500
_Cell = tuple[Case, Trace, list[EvaluationResult]]
_NO_CASE = Case("", None)
"""Given to evaluators that never look at the case."""


class JudgingJob(msgspec.Struct):
    """What each process needs; inherited by fork, so none of it has to be sent."""

    plan: Plan
    writer: Any
    case_of: CaseOf
    newest: NewestTraces
    needs_cases: bool
    """Whether evaluators may look at the cases of the traces."""
    kind: type[Trace]
    """The traces with what evaluators look at, and also which of them can be read."""
    only: str | None
    width: int
    """Cells that may wait for asynchronous evaluators at once."""


def judge_part(
    job: JudgingJob, part: Part, share: JudgementShare, tally: Tally, report: Callable[[int], object]
) -> None:
    """Judge a part in an event loop of its own.

    From time to time, `report` is called with the number of cells that were judged since its last call.
    """
    watchdog = Watchdog(session().owns_process)
    clock = Clock()
    judge = Judge(job.plan, watchdog, clock, job.only)
    again = _RejudgedPart(job, judge, clock, share, tally, report)
    with watchdog, closing(judge), closing(new_loop()) as loop:
        try:
            run_to_end(loop, again.judge(part))
        finally:
            end_loose_tasks(loop)  # before the models are closed: a waiting call is then not made any more
            with contextlib.suppress(Exception):
                loop.run_until_complete(session().aclose())


class _RejudgedPart:
    """New results and verdicts of a part of a run, written in the order of its traces."""

    def __init__(
        self,
        job: JudgingJob,
        judge: Judge,
        clock: Clock,
        share: JudgementShare,
        tally: Tally,
        report: Callable[[int], object],
    ) -> None:
        self._job, self._judge, self._share, self._tally, self._report = job, judge, share, tally, report
        self._clock = clock
        self._kept = _KeptRows(job.writer) if job.only else None
        self._artifacts = _artifacts(job) if judge.uses_artifact else None
        self._comparing: WaitingCells | None = None
        self._judged = 0
        self._lines = lines_by(judge, clock, share, tally, stored=True)
        self._note = share.noting() if isinstance(share, JudgedBlocks) else None

    async def judge(self, part: Part) -> None:
        job, judge = self._job, self._judge
        needs_case = job.needs_cases and (judge.uses_case or job.writer.plan is None)
        waiting: deque[asyncio.Task[Sequence[_Cell]]] = deque()
        for trace in job.writer.traces(job.kind, part):
            if job.newest.winners:
                key = (trace.case_key, trace.variant_name, trace.trial)
                if job.newest.superseded(key, trace.attempt, trace.started_at):
                    continue
            case = job.case_of(trace) if needs_case else _NO_CASE
            if self._lines is not None and self._lines.judge(case, trace) is not None:
                self._count()
                continue
            artifact = self._artifacts.of(trace) if self._artifacts is not None else None
            results, pending = judge.evaluate(case, trace, (), artifact)
            compared = bool(judge.comparisons(case))
            # Only while no earlier trace waits: rows are written in the order of the traces.
            if not (pending or waiting or compared):
                self._store(case, trace, self._beside(case, trace, results))
                continue
            judged = self._compared_cells if compared else self._finished_cell
            waiting.append(asyncio.create_task(judged(case, trace, results, pending)))
            if len(waiting) >= job.width:
                await self._settle(waiting.popleft())
        for task in waiting:
            await self._settle(task)
        if self._comparing is not None:
            for cells in self._comparing.rest():  # in runs that lack cells, the existing answers cannot be judged
                await self._comparing.compare(cells)
                for cell in cells:
                    self._store(cell.case, cell.trace, cell.results)
        if self._lines is not None:
            self._lines.close()
        self._report(self._judged % _REPORT_EVERY)

    async def _finished_cell(
        self, case: Case, trace: Trace, results: list[EvaluationResult], pending: Sequence[PendingResult]
    ) -> Sequence[_Cell]:
        return [(case, trace, await self._complete(case, trace, results, pending))]

    async def _compared_cells(
        self, case: Case, trace: Trace, results: list[EvaluationResult], pending: Sequence[PendingResult]
    ) -> Sequence[_Cell]:
        """All cells of the case and trial, once the last of them is there."""
        from evalwright.run.steps.compare import ComparedCell, WaitingCells

        rows = await self._complete(case, trace, results, pending)
        if self._comparing is None:
            self._comparing = WaitingCells(self._job.plan, self._judge, self._clock)
        if cells := self._comparing.join(ComparedCell(case, trace, rows)):
            await self._comparing.compare(cells)
        return [(cell.case, cell.trace, cell.results) for cell in cells]

    async def _complete(
        self, case: Case, trace: Trace, results: list[EvaluationResult], pending: Sequence[PendingResult]
    ) -> list[EvaluationResult]:
        """All rows of a trace: pending evaluators may use the kept ones."""
        rows = self._beside(case, trace, results)
        places = {id(row): i for i, row in enumerate(rows)}
        await self._judge.finish(
            rows, [evaluation._replace(position=places[id(results[evaluation.position])]) for evaluation in pending]
        )
        return rows

    async def _settle(self, judging: asyncio.Task[Sequence[_Cell]]) -> None:
        for case, trace, results in await judging:
            self._store(case, trace, results)

    def _beside(self, case: Case, trace: Trace, results: list[EvaluationResult]) -> list[EvaluationResult]:
        """The new results, and the kept ones if only some evaluators re-evaluate."""
        if self._kept is None or self._judge.passes_over(trace):
            return results
        return self._kept.beside(trace, self._judge.names(case), self._judge.standing(case), results)

    def _store(self, case: Case, trace: Trace, results: list[EvaluationResult]) -> None:
        if self._lines is not None:
            self._lines.flush()
        verdict = self._judge.conclude(case, trace, results, self._share.append_results)
        if self._note is not None:
            error = None if trace.error is None else trace.error.type
            alike = Rejudgement(trace.variant_name, verdict.status, error, verdict.score, results)
            finished = max([trace.finished_at, *(row.finished_at for row in results)])
            self._note([(trace.case_index, trace.trial, trace.attempt, trace.finished_at, alike)], finished)
        self._share.append_verdict(verdict)
        self._tally.add(trace, results, verdict)
        self._count()

    def _count(self) -> None:
        self._judged += 1
        if self._judged % _REPORT_EVERY == 0:
            self._report(_REPORT_EVERY)


def _artifacts(job: JudgingJob) -> StoredArtifacts:
    from evalwright.run.stored_artifacts import StoredArtifacts

    return StoredArtifacts(job.plan, job.writer)


class _KeptRows:
    """The other evaluators' stored rows, read along with the traces: both files have nearly the same order."""

    def __init__(self, writer: RunWriter) -> None:
        self._rows = writer.results(EvaluationResult)
        self._waiting: dict[AttemptKey, dict[str, EvaluationResult]] = {}

    def beside(
        self, trace: Trace, names: Sequence[str], others: Sequence[str], new: list[EvaluationResult]
    ) -> list[EvaluationResult]:
        """The kept rows of a trace and its new ones, in the order of `names`: its cell is judged by these."""
        key = attempt_key(trace)
        while any(name not in self._waiting.get(key, ()) for name in others):
            row = next(self._rows, None)
            if row is None:
                break
            self._waiting.setdefault(attempt_key(row), {})[row.evaluator] = row
        kept = self._waiting.pop(key, {})
        rows = [kept[name] for name in others if name in kept] + new
        return sorted(rows, key=lambda row: names.index(row.evaluator))
