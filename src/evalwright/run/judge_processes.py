"""Re-evaluate stored traces: the system is not called, and its code not even imported.

Every trace is read once, in as many processes as there are processors, each with a part of the file. Nothing that grows
with the number of traces is held, except eight bytes each to find superseded ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evalwright.errors import EvalwrightError, InputError, Interrupted
from evalwright.evaluators.build import build, declared
from evalwright.files.bulk import collector_eased
from evalwright.model.cell_index import Rejudgement, index_of
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import JudgementShare, LineShare, Part, RunWriter, Traits
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.model.trace_parts import trace_with
from evalwright.registry import load
from evalwright.run.cells import RunState
from evalwright.run.comparisons import compares_cells
from evalwright.run.expectations import expects
from evalwright.run.judge import Judge, ask_models, by_common_rule
from evalwright.run.judged_lines import lines_by
from evalwright.run.limits import Watchdog, end_loose_tasks, run_to_end
from evalwright.run.newest import Newest, newest_of
from evalwright.run.origin import acts
from evalwright.run.records import Clock, Pending
from evalwright.run.stored_run import CaseOf
from evalwright.run.unreadable import judged_before, keep_judgements, lost_traces
from evalwright.run.worker import end_with_parent
from evalwright.scoring.tally import Tally
from evalwright.session import Session, session
from evalwright.session.signals import Signals
from evalwright.stores.manifest import drop_manifest

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

    from evalwright.run.steps.compare import Comparing
    from evalwright.run.stored_artifacts import StoredArtifacts

__all__ = ["Judged", "judge_again", "next_message", "processors"]


_REPORT_EVERY = 500
_FEW_LOOKS = 50_000
"""So many looks at a trace take a fifth of a second; a further process would take a sixth of that for its start."""
_MOST_SHOWN = 5
_Cell = tuple[Case, Trace, list[EvaluationResult]]
_NO_CASE = Case("", None)
"""Given to evaluators that never look at the case."""


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _worthwhile(plan: Plan, cells: int) -> int:
    """How many processes judge: one for so few looks that a further process would hardly save any time."""
    quick = not plan.evaluators_by_case and all(_looks(spec) for spec in plan.evaluators)
    return 1 if quick and cells * len(plan.evaluators) <= _FEW_LOOKS else processors()


def _looks(spec: EvaluatorSpec) -> bool:
    return declared("evaluators", spec.type).looks


def _onlookers(plan: Plan) -> list[Traits] | None:
    """What the evaluators declare, if all of them only look at traces and nothing but their results decides about a
    cell."""
    if plan.evaluators_by_case or not by_common_rule(plan) or not all(map(_looks, plan.evaluators)):
        return None
    return [build(spec).traits for spec in plan.evaluators]


def _needs_cases(onlookers: list[Traits] | None, writer: RunWriter) -> bool:
    """Whether anything that is judged may depend on a case; in others' folders, a trace that lost its case must be
    reported in any case."""
    if writer.plan is None or onlookers is None:
        return True
    keys: frozenset[str] = frozenset()
    for traits in onlookers:
        if traits.uses_case and traits.expected_keys is None:
            return True
        keys |= traits.expected_keys if traits.uses_case and traits.expected_keys else frozenset()
    return bool(keys) and expects(writer, keys)


class Judged(NamedTuple):
    """The outcome of a re-evaluation."""

    tally: Tally
    kept: int
    """Cells whose traces cannot be read, and which keep their earlier results."""


class _Job(msgspec.Struct):
    """What each process needs; inherited by fork, so none of it has to be sent."""

    plan: Plan
    writer: Any
    case_of: CaseOf
    newest: Newest
    needs_cases: bool
    """Whether evaluators may look at the cases of the traces."""
    kind: type[Trace]
    """The traces with what evaluators look at, and also which of them can be read."""
    new_tally: Callable[[], Tally]
    only: str | None
    width: int
    """Cells that may wait for asynchronous evaluators at once."""


def judge_again(
    plan: Plan,
    writer: RunWriter,
    case_of: CaseOf,
    new_tally: Callable[[], Tally],
    state: RunState,
    processes: int | None,
    only: str | None = None,
    concurrency: int | None = None,
    signals: Signals | None = None,
    check: Callable[[], None] | None = None,
) -> Judged:
    """Replace all results and verdicts of a run; with `only`, those of one evaluator, keeping the others.

    So many `processes` judge, with None as many as are worth their start. Evaluators that call models run here, on as
    many cells at once as `concurrency` (by default the run's).
    The old set stays until the new one is complete, and `check` raises nothing. Raises InputError for a trace whose
    case is gone, if no trace can be read, and for results of a later major version; and KeyboardInterrupt for Ctrl-C,
    SIGTERM or SIGHUP.
    """
    signals = signals or Signals(owns_process=False)
    with signals.raising(KeyboardInterrupt):
        newest = newest_of(writer)
        before = judged_before(writer)
    state.total = newest.count
    together = bool(only) or ask_models(plan) or compares_cells(plan, writer)
    parts = writer.parts(1 if together else processes or _worthwhile(plan, newest.count))
    onlookers, width = _onlookers(plan), concurrency or plan.run.max_concurrency
    needs_cases = _needs_cases(onlookers, writer)
    kind = Trace if onlookers is None else trace_with(frozenset[str]().union(*(one.reads for one in onlookers)))
    judgements = writer.rewrite_judgements()
    job = _Job(plan, writer, case_of, newest, needs_cases, kind, new_tally, only, width)
    try:
        with signals.raising():
            shares = [judgements.share(i) for i in range(len(parts))]
            if len(parts) > 1:
                _import_ahead(plan)
            # what is there now is visited neither here nor in the children; elsewhere the collector is not ours
            with collector_eased() if session().owns_process else contextlib.nullcontext():
                tally = _in_processes(job, parts, shares, state, signals)
            kept = _kept(job, before, state.done, judgements.share(len(parts)))
        if check is not None:
            check()
        drop_manifest(Path(writer.location))
        judgements.commit()
        if (index := index_of(writer, make=False)) is not None:  # brought up to date, as its rows are at hand
            index.close()
    except Interrupted:
        judgements.abandon()
        raise KeyboardInterrupt from None
    except BaseException:  # whatever ends it, the old results are the ones that count
        judgements.abandon()
        raise
    return Judged(tally, kept)


def _kept(job: _Job, before: int, judged: int, share: JudgementShare) -> int:
    """The number of cells that keep their old results. Raises InputError if there are no others."""
    with closing(share):
        if not lost_traces(job.writer, before, judged):
            return 0
        kept = keep_judgements(job.writer.traces(job.kind), job.writer, job.newest, share)
    if not judged:
        damage = [*job.writer.damage] or ["there are none"]
        raise InputError(f"no trace of {job.writer.location} can be read: {'; '.join(damage[:_MOST_SHOWN])}")
    return kept


def _in_processes(
    job: _Job, parts: list[Part], shares: list[JudgementShare], state: RunState, signals: Signals
) -> Tally:
    """All parts but the last one in children, the last one here."""
    tally = job.new_tally()
    if not parts:
        return tally
    children = []
    try:
        with signals.held():  # Python swallows exceptions in functions that are called at a fork
            for part, share in zip(parts[:-1], shares[:-1], strict=True):
                children.append(_begun(job, part, share))
        with closing(shares[-1]):
            _judge_part(job, parts[-1], shares[-1], tally, state.advance)
        for _, receiver in children:
            tally.merge(_received(receiver, job, state))
    finally:
        for child, _ in children:
            # Also after an error: a child whose pipe is no longer read would wait forever.
            child.kill()
            child.join()
    return tally


def _begun(job: _Job, part: Part, share: JudgementShare) -> tuple[ForkProcess, Connection]:
    """A child that judges a part, and where its messages come from."""
    import multiprocessing  # few traces are judged in this process alone

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(os.getpid(), job, part, share, sender), daemon=True)
    child.start()
    # Only the child has the other end now: if it dies, reading ends instead of waiting forever.
    sender.close()
    return child, receiver


def _import_ahead(plan: Plan) -> None:
    """Import here what evaluators need, once rather than in every process.

    Only evaluators that merely look at a trace are built for that: others may start threads, which end at a fork.
    """
    for spec in plan.evaluators:
        ours = getattr(load("evaluators", spec.type), "__module__", "").startswith("evalwright.")
        if ours and spec.extractor is None and not acts(spec):
            build(spec)


def _child(parent: int, job: _Job, part: Part, share: JudgementShare, sender: Connection) -> None:
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    tally = job.new_tally()
    try:
        with Session(owns_process=True), closing(share):  # of this process: exits are refused by process
            _judge_part(job, part, share, tally, sender.send)
        sender.send(job.writer.damage)
        sender.send(tally)
    except EvalwrightError as error:
        sender.send(error.args[0] if isinstance(error, InputError) else error)
    sender.close()


def _received(receiver: Connection, job: _Job, state: RunState) -> Tally:
    while not isinstance(message := next_message(receiver), Tally):
        if isinstance(message, str):
            raise InputError(message)
        if isinstance(message, list):
            job.writer.damage += [note for note in message if note not in job.writer.damage]
        else:
            state.advance(message)
    return message


def next_message(receiver: Connection) -> Any:
    """The next message of a judging process. Raises the error that ended it, EvalwrightError if it simply
    disappeared."""
    try:
        message = receiver.recv()
    except EOFError:
        raise EvalwrightError("a process that judged cells ended without its result") from None
    if isinstance(message, EvalwrightError):
        raise message
    return message


def _judge_part(job: _Job, part: Part, share: JudgementShare, tally: Tally, report: Callable[[int], object]) -> None:
    watchdog = Watchdog(session().owns_process)
    clock = Clock()
    judge = Judge(job.plan, watchdog, clock, job.only)
    again = _Again(job, judge, clock, share, tally, report)
    with watchdog, closing(asyncio.new_event_loop()) as loop:
        try:
            run_to_end(loop, again.judge(part))
        finally:
            end_loose_tasks(loop)  # before the models are closed: a waiting call is then not made any more
            with contextlib.suppress(Exception):
                loop.run_until_complete(session().aclose())


class _Again:
    """New results and verdicts of a part of a run, written in the order of its traces."""

    def __init__(
        self,
        job: _Job,
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
        self._comparing: Comparing | None = None
        self._judged = 0
        self._lines = lines_by(judge, clock, share, tally)
        self._note = share.note if isinstance(share, LineShare) else None

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
            judged = self._compared if compared else self._finished
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

    async def _finished(
        self, case: Case, trace: Trace, results: list[EvaluationResult], pending: Sequence[Pending]
    ) -> Sequence[_Cell]:
        return [(case, trace, await self._complete(case, trace, results, pending))]

    async def _compared(
        self, case: Case, trace: Trace, results: list[EvaluationResult], pending: Sequence[Pending]
    ) -> Sequence[_Cell]:
        """All cells of the case and trial, once the last of them is there."""
        from evalwright.run.steps.compare import Compared, Comparing

        rows = await self._complete(case, trace, results, pending)
        if self._comparing is None:
            self._comparing = Comparing(self._job.plan, self._judge, self._clock)
        if cells := self._comparing.join(Compared(case, trace, rows)):
            await self._comparing.compare(cells)
        return [(cell.case, cell.trace, cell.results) for cell in cells]

    async def _complete(
        self, case: Case, trace: Trace, results: list[EvaluationResult], pending: Sequence[Pending]
    ) -> list[EvaluationResult]:
        """All rows of a trace: pending evaluators may use the kept ones."""
        rows = self._beside(case, trace, results)
        places = {id(row): i for i, row in enumerate(rows)}
        await self._judge.finish(rows, [one._replace(position=places[id(results[one.position])]) for one in pending])
        return rows

    async def _settle(self, judging: asyncio.Task[Sequence[_Cell]]) -> None:
        for case, trace, results in await judging:
            self._store(case, trace, results)

    def _beside(self, case: Case, trace: Trace, results: list[EvaluationResult]) -> list[EvaluationResult]:
        """The new results, and the kept ones if only some evaluators judge again."""
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
            self._note([(trace.case_index, trace.trial, trace.attempt, finished, alike)])
        self._share.append_verdict(verdict)
        self._tally.add(trace, results, verdict)
        self._count()

    def _count(self) -> None:
        self._judged += 1
        if self._judged % _REPORT_EVERY == 0:
            self._report(_REPORT_EVERY)


def _artifacts(job: _Job) -> StoredArtifacts:
    from evalwright.run.stored_artifacts import StoredArtifacts

    return StoredArtifacts(job.plan, job.writer)


class _KeptRows:
    """The other evaluators' stored rows, read along with the traces: both files have nearly the same order."""

    def __init__(self, writer: RunWriter) -> None:
        self._rows = writer.results(EvaluationResult)
        self._waiting: dict[tuple[str, str, int, int], dict[str, EvaluationResult]] = {}

    def beside(
        self, trace: Trace, names: Sequence[str], others: Sequence[str], new: list[EvaluationResult]
    ) -> list[EvaluationResult]:
        """The kept rows of a trace and its new ones, in the order of `names`: its cell is judged by these."""
        key = (trace.case_key, trace.variant_name, trace.trial, trace.attempt)
        while any(name not in self._waiting.get(key, ()) for name in others):
            row = next(self._rows, None)
            if row is None:
                break
            mine = (row.case_key, row.variant_name, row.trial, row.attempt)
            self._waiting.setdefault(mine, {})[row.evaluator] = row
        kept = self._waiting.pop(key, {})
        rows = [kept[name] for name in others if name in kept] + new
        return sorted(rows, key=lambda row: names.index(row.evaluator))
