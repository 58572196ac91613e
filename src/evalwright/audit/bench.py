"""Judges traces and their mutants by the evaluators of a plan, and finds what each evaluator contributes."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from evalwright.audit.evaluators import criteria_without
from evalwright.model.artifact import Artifact
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plan
from evalwright.model.result import EvaluationResult, Status
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.run.judge import Judge
from evalwright.run.limits import Watchdog
from evalwright.run.records import Clock

__all__ = ["Bench", "JudgedTrace"]


@dataclass(frozen=True, slots=True)
class JudgedTrace:
    """What the evaluators found in one trace or mutant."""

    status: Status
    results: Sequence[EvaluationResult]
    without: dict[str, Status]
    """The status if one evaluator is left out, by its name."""

    @property
    def passes(self) -> bool:
        """By a result: a case without evaluators passes in some formats, and no mutant of it could fail."""
        return self.status == "pass" and any(row.status == "pass" for row in self.results)


class Bench:
    """The evaluators of a plan, built once."""

    def __init__(self, plan: Plan, watchdog: Watchdog) -> None:
        clock = Clock()
        self._plan, self._watchdog, self._clock = plan, watchdog, clock
        self._specs: list[EvaluatorSpec] | None = None if plan.evaluators_by_case else plan.evaluators
        self._judge = Judge(plan, watchdog, clock)
        self._turns = asyncio.Semaphore(plan.run.max_concurrency)
        self._rules: dict[str, Judge | None] = {}
        self.cost_usd: float = 0.0
        """What calls of models have cost."""
        self.uses_artifact: bool = self._judge.uses_artifact

    def close(self) -> None:
        self._judge.close()

    async def judged(self, case: Case, traces: Sequence[Trace], artifact: Artifact | None) -> list[JudgedTrace]:
        """What the evaluators find in each trace of a case; they wait for models at the same time."""
        return await asyncio.gather(*[self._one(case, trace, artifact) for trace in traces])

    async def _one(self, case: Case, trace: Trace, artifact: Artifact | None) -> JudgedTrace:
        results, pending = self._judge.evaluate(case, trace, (), artifact)
        if pending:
            async with self._turns:
                await self._judge.finish(results, pending)
        self.cost_usd += sum(row.cost_usd or 0.0 for row in results)
        specs = case.evaluators or [] if self._specs is None else self._specs
        without = {spec.name: self._status(case, trace, specs, results, left_out=spec.name) for spec in specs}
        return JudgedTrace(self._status(case, trace, specs, results), results, without)

    def _status(
        self,
        case: Case,
        trace: Trace,
        specs: Sequence[EvaluatorSpec],
        results: Sequence[EvaluationResult],
        left_out: str = "",
    ) -> Status:
        """The status by all evaluators of a case, or by all but one."""
        rows = [copy.copy(row) for row in results if row.evaluator != left_out]  # the rule may withdraw rows
        reduced = msgspec.structs.replace(case, evaluators=[spec for spec in specs if spec.name != left_out])
        rule = self._rule(left_out)
        return "skip" if rule is None else rule.conclude(reduced, trace, rows, _written_nowhere).status

    def _rule(self, left_out: str) -> Judge | None:
        """Concludes by the evaluators that it is given with a case; None if nothing that is required is left."""
        if left_out not in self._rules:
            criteria = criteria_without(self._plan.pass_criteria, [left_out])
            self._rules[left_out] = None if criteria is None else self._rule_by(criteria)
        return self._rules[left_out]

    def _rule_by(self, criteria: PassCriteria) -> Judge:
        plan = msgspec.structs.replace(self._plan, evaluators=[], evaluators_by_case=True, pass_criteria=criteria)
        return Judge(plan, self._watchdog, self._clock)


def _written_nowhere(rows: list[EvaluationResult]) -> None:
    """Nothing of an audit becomes a record of the run."""
