"""What is done for one cell, compiled from the plan: the steps that it needs, in the order of its records.

    call the system (+ retries) → trace → [enrich] → [price] → store the trace
    → evaluators → [awaited evaluators] → [comparisons] → [spoiling] → store the results → store the verdict
    → count → [mirrors]

Steps in brackets are done for some plans only; for all others they are neither called nor imported. A resumed run
relies on the order of the records: a cell with a verdict is finished, one with a trace is judged, all others run.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import TYPE_CHECKING

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunWriter, Target
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Answer, Doubt, Trace, TraceError
from evalwright.run.call import Call, set_up, shut_down
from evalwright.run.cells import Cell, RunState
from evalwright.run.records import Clock, trace_of
from evalwright.run.verdicts import Verdicts

if TYPE_CHECKING:
    from evalwright.run.attempts import Attempts
    from evalwright.run.doubts import Doubts
    from evalwright.run.executors import Sites
    from evalwright.run.spending import CostLimit
    from evalwright.run.standstill import Standstill
    from evalwright.run.steps.enrich import EnrichersOfPlan
    from evalwright.run.steps.price import Pricing

__all__ = ["Pipeline"]

_LONG = 0.05
"""Seconds from which a call is so long that a separate write of its trace does not matter."""
_NOTICED = 0.1
"""Seconds from which it matters for a latency that evaluators kept the event loop from receiving the answer."""


class Pipeline:
    """The path of every cell in one session of a run, from the call of its system to its verdict.

    What follows the trace is done by `Verdicts`.
    """

    def __init__(
        self,
        plan: Plan,
        writer: RunWriter,
        targets: dict[str, Target],
        sites: Sites | None,
        clock: Clock,
        state: RunState,
        verdicts: Verdicts,
        proven: Set[str] = frozenset(),
    ) -> None:
        """`proven` are the variants that answered in an earlier session."""
        self._plan, self._run_id, self._variants = plan, plan.run_id, plan.variants
        self._money: CostLimit | None = None
        if plan.run.cost_limit_usd is not None:
            from evalwright.run.spending import cost_limit_of

            self._money = cost_limit_of(plan, state)
        self._writer, self._targets, self._sites = writer, targets, sites
        self._clock, self._state, self._verdicts = clock, state, verdicts
        self._pricing: Pricing | None = None
        self._enriching: EnrichersOfPlan | None = None
        if plan.prices:
            from evalwright.run.steps.price import Pricing

            self._pricing = Pricing(plan)
        if any(variant.enrich_trace_from for variant in plan.variants):
            from evalwright.run.steps.enrich import EnrichersOfPlan

            self._enriching = EnrichersOfPlan(plan)
        self._attempts: Attempts | None = None
        self._ask: Callable[[Call, Cell], Awaitable[Answer | TraceError | None]] = self._attempt
        self._proven: set[str] = {*proven}
        """Variants that answered before the first error of this session."""
        self._standstill: Standstill | None = None
        self._doubts: Doubts | None = None

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

    async def close(self) -> None:
        """Close the targets, as far as they let themselves be closed, and the workspaces."""
        if self._doubts is not None or self._plan.shard is not None:
            from evalwright.run.doubts import Doubts, texts

            counts = self._state.answers
            answers = {variant.name: counts[variant.name] for variant in self._variants if variant.name in counts}
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
                if (judged := self._verdicts.judging_seconds - call.judged) > _NOTICED:
                    from evalwright.run.doubts import doubts_about_latency

                    doubts = (*doubts, *doubts_about_latency(trace, judged, self._verdicts.busy_milliseconds))
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

        targets = self._targets.items()
        accounts = {name: account for name, target in targets if (account := getattr(target, "account", ""))}
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
        target, call.judged = self._targets[name], self._verdicts.judging_seconds
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
            trace.extra = {
                **trace.extra,
                "retried": [{"type": error.type, "message": error.message} for error in retried],
            }
        return trace

    def record(self, cell: Cell, trace: Trace, *, at_once: bool = False) -> Awaitable[None] | None:
        """Store the trace of a cell, and judge it at once or a little later. Raises StorageError.

        With `at_once`, the trace is written before that, and not together with the verdict. If any of it has to wait,
        the rest is returned, to be awaited.
        """
        if self._pricing is not None:  # only now, because a platform may have counted the tokens
            self._pricing.fill(trace)
        if self._money is not None:  # before anything is awaited, as `run` relies on it
            self._money.spend(trace.metrics.cost_usd)
        if self._sites is not None:
            return self._collect(self._sites, cell, trace, at_once)
        return self._verdicts.store(cell.case, trace, None, at_once)

    async def _collect(self, sites: Sites, cell: Cell, trace: Trace, at_once: bool) -> None:
        # The artifact goes first: a stored trace is never judged without its files.
        artifact = await sites.collect(cell)
        if (rest := self._verdicts.store(cell.case, trace, artifact, at_once)) is not None:
            await rest

    async def judge_stored(self, trace: Trace, known: Sequence[EvaluationResult], *, finished: bool = False) -> None:
        """Judge a trace of an earlier session that ended before it had its verdict.

        One that is `finished` is only compared with, for unfinished cells of its case. Once the run is to stop, all
        are left to a later session.
        """
        if self._state.stopping:
            return
        assert trace.case_index is not None
        case = self._writer.case(trace.case_index)
        if finished:
            await self._verdicts.compare(case, trace, [], known, finished=True)
            return
        artifact = None if self._sites is None else self._sites.stored(trace)
        if (rest := self._verdicts.judge(case, trace, artifact, known, stored=True)) is not None:
            await rest
