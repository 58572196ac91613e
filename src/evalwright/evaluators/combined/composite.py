"""Several evaluators as one, combined by an aggregator (AgentEvals 1.0, `composite`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evalwright.errors import AllMistakes, EvaluatorError, InputError, Problem, below
from evalwright.evaluators.build import BuiltEvaluator, calls_models, keys_needed
from evalwright.evaluators.combined.aggregators import Aggregator, aggregator_doubts, aggregator_problems
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.combined.members import (
    Member,
    MemberResult,
    evaluated_member,
    member_doubts,
    member_of,
    total_cost,
)
from evalwright.files.key_paths import as_written
from evalwright.llm.patience import all_given
from evalwright.model.artifact import Artifact
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Composite"]


class Composite:
    """Combines `evaluators`, given as in a plan, by `aggregator` {type, ...}; default: their weighted average.

    Members that skip a case are left out, and if all do, so does the composite. It errors if a member or the aggregator
    does; with `errors: count` they count as 0, as in AgentV. Raises InputError with every mistake in the members and
    the aggregator.
    """

    @staticmethod
    def calls_models(config: Mapping[str, Any]) -> bool:
        """Whether a member or the aggregator calls models."""
        members = [(str(member.get("type")), member.get("config") or {}) for member in config["evaluators"]]
        return (config.get("aggregator") or {}).get("type") == "llm_judge" or any(calls_models(*m) for m in members)

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        aggregator, members = config.get("aggregator") or {}, config.get("evaluators")
        if not isinstance(aggregator, dict) or not isinstance(members, list):
            return []
        return [*member_doubts(members), *aggregator_doubts(aggregator, members)]

    def __init__(
        self,
        evaluators: Sequence[Mapping[str, Any]],
        aggregator: Mapping[str, Any] | None = None,
        folder: str = ".",
        errors: str = "error",
    ) -> None:
        mistakes = AllMistakes()
        with mistakes:
            if errors not in ("error", "count"):
                raise InputError(Problem("", f"expected 'error' or 'count', found {as_written(errors)}", key="errors"))
        with mistakes:
            if not evaluators:
                raise InputError(Problem("", "expected at least one member", key="evaluators"))
        self._members: list[Member] = []
        for i, raw in enumerate(evaluators):
            with mistakes, below(f"evaluators[{i}]"):
                self._members.append(member_of(raw))
        self._errors_count = errors == "count"
        config = aggregator or {"type": "weighted_average"}
        names = [str(raw.get("name")) for raw in evaluators]
        with mistakes, below("aggregator"):
            if problems := [*aggregator_problems(config, names, lenient=self._errors_count)]:
                raise InputError(problems)
            self._aggregator = Aggregator(config, folder, lenient=self._errors_count)
        mistakes.refuse()
        self._calls: list[Callable[..., Any]] = [member.built.evaluate for member in self._members]
        traits = [member.built.traits for member in self._members]
        self.uses_artifact: bool = any(of_member.uses_artifact for of_member in traits)
        self.timeout_seconds: float = max(of_member.timeout_seconds for of_member in traits)

    @property
    def needed_keys(self) -> frozenset[str]:
        """The keys of `expected` without any of which no member checks anything."""
        needed = [keys_needed(member.built) for member in self._members]
        return frozenset().union(*needed) if all(needed) else frozenset()

    def bind_members(self, bound: Callable[[EvaluatorSpec, BuiltEvaluator], Callable[..., Any]]) -> None:
        """Call each member as `bound` says."""
        self._calls = [bound(member.spec, member.built) for member in self._members]

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        judge = self._aggregator.judge
        for built in (*(member.built for member in self._members), *([] if judge is None else [judge])):
            if built.traits.asks is not None:
                yield from built.traits.asks(case)

    async def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None = None) -> Evaluation:
        results = await all_given(
            evaluated_member(member, call, case, trace, *([artifact] if member.built.traits.uses_artifact else []))
            for member, call in zip(self._members, self._calls, strict=True)
        )
        evaluation = await self._joint_evaluation(case, trace, results)
        evaluation.detail = {**evaluation.detail, "children": [result.stored() for result in results]}
        if (cost := total_cost(results)) is not None:
            evaluation.cost_usd = cost + (evaluation.cost_usd or 0.0)
        return evaluation

    async def _joint_evaluation(self, case: Case, trace: Trace, results: Sequence[MemberResult]) -> Evaluation:
        """Raises EvaluatorError, with the members' results and cost, for an error that does not count as 0."""
        detail = {"children": [result.stored() for result in results]}
        broken = next((result for result in results if result.error is not None), None)
        if broken is not None and broken.error is not None and not self._errors_count:
            message = f"its member {broken.spec.name!r} had an error: {broken.error.message}"
            raise EvaluatorError(message, broken.error.type, detail, total_cost(results))
        judged = [result for result in results if not result.evaluation.skipped]
        if not judged:
            reasons = "; ".join(f"[{result.spec.name}] {result.evaluation.reason}" for result in results)
            return Evaluation(False, None, reasons, skipped=True)
        try:
            return await self._aggregator.evaluation(case, trace, judged)
        except EvaluatorError as error:
            message = f"the aggregator failed: {error}"
            if not self._errors_count:
                raise EvaluatorError(message, error.type, {**error.detail, **detail}, total_cost(results)) from error
            return banded(0.0, misses=[message], detail={"aggregator_error": str(error)})
