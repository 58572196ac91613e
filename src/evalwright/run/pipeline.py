"""What is done for one cell, compiled from the plan: the steps that it needs, in the order of its records.

    call the system (+ retries) → trace → [price] → [enrich] → store the trace
    → evaluators → [awaited evaluators] → [comparisons] → [spoiling] → store the results → store the verdict
    → count → [mirrors]

Steps in brackets are done for some plans only; for all others they are neither called nor imported. A resumed run
relies on the order of the records: a cell with a verdict is finished, one with a trace is judged, all others run.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from evalwright.model.artifact import Artifact
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter, Target
from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Doubt, Trace, TraceError
from evalwright.run.call import Call, set_up, shut_down
from evalwright.run.cells import Cell, RunState
from evalwright.run.judge import Judge
from evalwright.run.judged_lines import lines_by
from evalwright.run.records import Clock, Pending, drop_answer, trace_of
from evalwright.scoring.tally import Tally

if TYPE_CHECKING:
    from evalwright.run.attempts import Attempts
    from evalwright.run.doubts import Doubts
    from evalwright.run.executors import Sites
    from evalwright.run.judge_queue import JudgeQueue
    from evalwright.run.spending import CostLimit
    from evalwright.run.standstill import Standstill
    from evalwright.run.steps.compare import Compared, Comparing
    from evalwright.run.steps.enrich import Enriching
    from evalwright.run.steps.mirror import Mirroring
    from evalwright.run.steps.price import Pricing

__all__ = ["Pipeline"]

_LONG = 0.05
"""Seconds from which a call is so long that a separate write of its trace does not matter."""
_COUNTED = 0.001
"""Seconds of judging one cell from which it is counted which evaluator took them."""
_NOTICED = 0.1
"""Seconds from which it matters for a latency that evaluators kept the event loop from receiving the answer."""


class Pipeline:
    """The path of every cell in one session of a run, from the call of its system to its verdict."""

    def __init__(
        self,
        plan: Plan,
        writer: RunWriter,
        targets: dict[str, Target],
        sites: Sites | None,
        judge: Judge,
        clock: Clock,
        state: RunState,
        tally: Tally,
        mirrors: Mirroring | None,
    ) -> None:
        self._run_id, self._variants = plan.run_id, plan.variants
        self._money: CostLimit | None = None
        if plan.run.cost_limit_usd is not None:
            from evalwright.run.spending import cost_limit_of

            self._money = cost_limit_of(plan, state)
        self._writer, self._targets, self._judge = writer, targets, judge
        self._clock, self._state, self._tally = clock, state, tally
        self._sites, self._mirrors = sites, mirrors
        self._lines = None if mirrors is not None else lines_by(judge, clock, writer, tally)
        self._pricing: Pricing | None = None
        self._enriching: Enriching | None = None
        if plan.prices:
            from evalwright.run.steps.price import Pricing

            self._pricing = Pricing(plan)
        if any(variant.enrich_trace_from for variant in plan.variants):
            from evalwright.run.steps.enrich import Enriching

            self._enriching = Enriching(plan)
        self._plan = plan
        self._attempts: Attempts | None = None
        self._ask: Callable[[Call, Cell], Awaitable[Answer | TraceError | None]] = self._attempt
        self._proven: set[str] = set()
        """Variants that answered before the first error of the run."""
        self._standstill: Standstill | None = None
        self._doubts: Doubts | None = None
        self._comparing: Comparing | None = None
        self._judged = 0.0
        """Seconds for which evaluators have kept the process busy."""
        self._busy: Counter[str] = Counter()
        """Milliseconds of that, by evaluator."""
        self._write_records: Callable[[], None] = lambda: None
        self.write: Callable[[], None] = self._write_records
        """Writes the records and lines that are held, if any are."""
        self._later: Callable[[Callable[[], None]], None] | None = None
        """Calls a function in the next turn of the event loop, while there is one."""
        self._judge_queue: JudgeQueue | None = None
        """Created at the first call that takes long: cells of quick ones are judged at once."""

    async def open(self) -> None:
        """Prepare what cells need. Raises InputError if the user's setup code fails or takes too long."""
        if self._sites is not None:
            await self._sites.open()
        for variant in self._variants:
            if opening := getattr(self._targets[variant.name], "open", None):
                await set_up(variant, opening)
        if any(getattr(target, "address", None) for target in self._targets.values()):
            from evalwright.run.addresses import addresses_of

            attempts = self._further_attempts()
            attempts.addresses = addresses_of(self._plan, self._targets, self._state.lease)
            self._ask = attempts.in_turn

    def hold(self, later: Callable[[Callable[[], None]], None]) -> None:
        """Hold records until `later` calls the function that it gets, or until `write`: those of many cells then take
        one write per file."""
        # Stores of other packages may be unable to do so: their records are written one by one.
        if (hold := getattr(self._writer, "hold", None)) is not None:
            self._write_records = hold(lambda write: later(self._flushing(write)))
            self.write = self._flushing(self._write_records)
        self._later = later

    def _flushing(self, write: Callable[[], None]) -> Callable[[], None]:
        lines = self._lines
        if lines is None:
            return write

        def flush() -> None:
            lines.flush()
            write()

        return flush

    def leave_unjudged(self) -> None:
        """Leave cells that are not judged yet to a later session."""
        if self._judge_queue is not None:
            self._judge_queue.clear()

    async def judged(self) -> None:
        """Wait until no cell waits to be judged."""
        while self._judge_queue:
            await asyncio.sleep(0)

    def release(self) -> None:
        """Write and count everything that is held, at the end of the session; what is not judged by then is left."""
        self.leave_unjudged()
        if self._lines is not None:
            self._lines.close()
        if (hold := getattr(self._writer, "hold", None)) is not None:
            hold(None)

    async def close(self) -> None:
        """Close the judge, the targets, as far as they let themselves be closed, and the workspaces."""
        self._judge.close()
        if self._doubts is not None or self._plan.shard is not None:
            from evalwright.run.doubts import Doubts, texts

            answers = {
                one.name: self._state.answers[one.name] for one in self._variants if one.name in self._state.answers
            }
            self._state.replies = (self._doubts or Doubts()).replies(answers)
            self._state.doubts += texts(self._state.replies)
        # Before the workspaces, because what a target has started may still write there.
        for name, target in self._targets.items():
            if (closing := getattr(target, "close", None)) and (doubt := await shut_down(closing)):
                self._state.doubts.append(f"{name}: {doubt}")
        if self._sites is not None:
            await self._sites.close()

    async def run(self, call: Call, cell: Cell) -> None:
        """Run a cell to its verdict. One that is stopped before another attempt, or abandoned, is left as it is.

        Raises StorageError if a record cannot be written.
        """
        money = self._money
        if money is not None and not await self._has_money(cell, money):
            return
        try:
            began = time.monotonic()
            call.retried = []
            answer = await self._ask(call, cell)
            # Asked here, because nearly all calls succeed at once.
            if answer.__class__ is not Answer or answer.error is not None:
                answer = await self._further_attempts().last(call, cell, answer, began)
            if answer is None or call.abandoned:  # the ticker has recorded an abandoned call already
                return
            trace = self.trace(cell, answer, call.started, time.monotonic(), call.retried)
            doubts: Sequence[Doubt] = () if self._enriching is None else await self._enriching.enrich(trace)
            if isinstance(answer, Answer) and answer.error is None:
                self._state.answers[cell.variant.name] += 1
                if (judged := self._judged - call.judged) > _NOTICED:
                    from evalwright.run.doubts import doubts_about_latency

                    doubts = (*doubts, *doubts_about_latency(trace, judged, self._busy))
                if answer.doubts or doubts:
                    self._doubt(cell, (*answer.doubts, *doubts))
        finally:
            if money is not None:
                money.end()  # `record` counts the cost at once, so that no other cell looks in between
        if (rest := self.record(cell, trace, at_once=time.monotonic() - call.started > _LONG)) is not None:
            await rest
        # After the record: the trace that stops a system is stored like all others.
        if self._standstill is None:
            if trace.error is None and not self._state.stuck:
                self._proven.add(cell.variant.name)
                return
            self._standstill = self._errors_counted()
        self._standstill.add(trace)

    def _doubt(self, cell: Cell, doubts: Sequence[Doubt]) -> None:
        if self._doubts is None:
            from evalwright.run.doubts import Doubts

            self._doubts = Doubts()
        self._doubts.add(cell.variant.name, doubts, cell.case_index, cell.trial)

    def _errors_counted(self) -> Standstill:
        """What stops systems that only return errors; created at the first error."""
        from evalwright.run.standstill import Standstill

        accounts = {name: account for name, one in self._targets.items() if (account := getattr(one, "account", ""))}
        return Standstill(self._plan, accounts, self._proven, self._state.stuck)

    async def _has_money(self, cell: Cell, money: CostLimit) -> bool:
        """Wait until there is money for a cell and begin it; if there is none, record that and return False."""
        if await money.wait_for_room(self._state):
            return True
        if not self._state.stopping:
            now = time.monotonic()
            if (rest := self.record(cell, self.trace(cell, money.refusal(), now, now))) is not None:
                await rest
        return False

    def _attempt(self, call: Call, cell: Cell) -> Awaitable[Answer | TraceError]:
        name, sites = cell.variant.name, self._sites
        self._state.answers.setdefault(name, 0)
        target, call.judged = self._targets[name], self._judged
        return call.ask(target, cell) if sites is None else sites.ask(call, target, cell)

    def _further_attempts(self) -> Attempts:
        if self._attempts is None:
            from evalwright.run.attempts import Attempts

            self._attempts = Attempts(self._attempt, self._plan.run.retry, self._state)
        return self._attempts

    def trace(
        self, cell: Cell, answer: Answer | TraceError, start: float, end: float, retried: Sequence[TraceError] = ()
    ) -> Trace:
        """The trace of a call between two monotonic times; `retried` are the errors of earlier attempts."""
        date = self._clock.date
        took = int((end - start) * 1000) if isinstance(answer, TraceError) or answer.called else None
        trace = trace_of(self._run_id, cell, answer, date(start), date(end), took)
        if retried:
            trace.metrics.custom = {**trace.metrics.custom, "retries": len(retried)}
            trace.extra = {**trace.extra, "retried": [{"type": e.type, "message": e.message} for e in retried]}
        if self._pricing is not None:
            self._pricing.fill(trace)
        return trace

    def record(self, cell: Cell, trace: Trace, *, at_once: bool = False) -> Awaitable[None] | None:
        """Store the trace of a cell, and judge it at once or a little later. Raises StorageError.

        With `at_once`, the trace is written before that, and not together with the verdict. If any of it has to wait,
        the rest is returned, to be awaited.
        """
        if self._money is not None:  # before anything is awaited, as `run` relies on it
            self._money.spend(trace.metrics.cost_usd)
        if self._sites is not None:
            return self._collect(self._sites, cell, trace, at_once)
        return self._store(cell, trace, None, at_once)

    def _queued(self) -> JudgeQueue | None:
        """A queue for cells with their answers; None if their judging has to wait for anything."""
        if self._lines is None or self._later is None:
            return None
        from evalwright.run.judge_queue import JudgeQueue

        return JudgeQueue(self.judge, self._state.running, self._write_records, self.write, self._later)

    async def _collect(self, sites: Sites, cell: Cell, trace: Trace, at_once: bool) -> None:
        # The artifact goes first: a stored trace is never judged without its files.
        artifact = await sites.collect(cell)
        if (rest := self._store(cell, trace, artifact, at_once)) is not None:
            await rest

    def _store(self, cell: Cell, trace: Trace, artifact: Artifact | None, at_once: bool) -> Awaitable[None] | None:
        if self._mirrors is not None:  # before the trace is stored: mirrors add their ids to it
            self._mirrors.prepare(trace)
        try:
            size = self._writer.append_trace(trace)
        except (TypeError, ValueError, RecursionError) as error:
            drop_answer(trace, error)  # nothing has been written so far
            size = self._writer.append_trace(trace)
        queue = self._judge_queue
        if queue is None and at_once:
            queue = self._judge_queue = self._queued()
        if queue is not None and (at_once or queue) and self._state.listener is None:
            queue.put(cell.case, trace, size or 0)
            return None
        if at_once:  # an evaluator that blocks, or ends the process, must not lose an answer that took its time
            self._write_records()
        return self.judge(cell.case, trace, artifact)

    def judge(
        self, case: Case, trace: Trace, artifact: Artifact | None = None, known: Sequence[EvaluationResult] = ()
    ) -> Awaitable[None] | None:
        """Judge a stored trace, except for the results that are `known`, and mark its cell as finished.

        If that has to wait for anything, the rest of it is returned, to be awaited: most cells need no coroutine.
        """
        lines = None if known or self._state.listener is not None else self._lines
        if lines is not None and (status := lines.judge(case, trace)) is not None:
            self._state.count(status, trace.metrics.cost_usd)
            return None
        begun = time.monotonic()
        results, pending = self._judge.evaluate(
            case, trace, [row.evaluator for row in known] if known else (), artifact
        )
        self._judged += (took := time.monotonic() - begun)
        if took > _COUNTED:
            self._busy.update({row.evaluator: row.latency_ms for row in results})
        if pending or self._judge.comparisons(case):
            return self._judge_later(case, trace, results, pending, known)
        return self._conclude(case, trace, results, known)

    async def _judge_later(
        self,
        case: Case,
        trace: Trace,
        results: list[EvaluationResult],
        pending: Sequence[Pending],
        known: Sequence[EvaluationResult],
    ) -> None:
        if pending:
            await self._judge.finish(results, pending)
        if self._judge.comparisons(case):
            from evalwright.run.steps.compare import Compared

            await self._compare(Compared(case, trace, results, known))
        elif (rest := self._conclude(case, trace, results, known)) is not None:
            await rest

    async def _compare(self, cell: Compared) -> None:
        """Judge and mark as finished all cells of a case and trial, once the last of them is there."""
        if self._comparing is None:
            from evalwright.run.steps.compare import Comparing

            self._comparing = Comparing(self._plan, self._judge, self._clock)
        if cells := self._comparing.join(cell):
            await self._comparing.compare(cells)
        for case, trace, results, known, finished in cells:
            if not finished and (rest := self._conclude(case, trace, results, known)) is not None:
                await rest

    def _conclude(
        self, case: Case, trace: Trace, results: list[EvaluationResult], known: Sequence[EvaluationResult]
    ) -> Awaitable[None] | None:
        """Store results and verdict, and count them. Returns the mirrors' work, to be awaited."""
        if self._lines is not None:  # records are written in the order in which cells were judged
            self._lines.flush()
        verdict = self._judge.conclude(case, trace, results, self._writer.append_results, known)
        self._writer.append_verdict(verdict)
        if known:
            results = [*known, *results]
        self._tally.add(trace, results, verdict)
        self._state.count(verdict.status, trace.metrics.cost_usd)
        if self._state.listener is not None or self._mirrors is not None:
            self.write()  # what mirrors receive must not be sent again after a crash
        if self._state.listener is not None:
            self._state.listener(case, trace, results, verdict)
        return None if self._mirrors is None else self._mirrors.cell(case, trace, results, verdict)

    async def judge_stored(self, trace: Trace, known: Sequence[EvaluationResult], *, finished: bool = False) -> None:
        """`judge` for a trace of an earlier session that ended before it had its verdict.

        One that is `finished` is only compared with, for unfinished cells of its case. Once the run is to stop, all
        are left to a later session.
        """
        if self._state.stopping:
            return
        assert trace.case_index is not None
        case = self._writer.case(trace.case_index)
        if finished:
            from evalwright.run.steps.compare import Compared

            await self._compare(Compared(case, trace, [], known, finished=True))
            return
        artifact = None if self._sites is None else self._sites.stored(trace)
        if (rest := self.judge(case, trace, artifact, known)) is not None:
            await rest
