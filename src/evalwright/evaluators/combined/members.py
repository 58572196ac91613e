"""The members of a `composite`: each is built once, called for each trace, and its error is a result like any other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import EvaluatorError, InputError, Problem, below
from evalwright.evaluators.build import BuiltEvaluator, build, build_extractor, config_doubts, undeclared
from evalwright.evaluators.combined.banded import details_of
from evalwright.evaluators.wording import shown
from evalwright.files.numbers import is_number
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import Evaluation, band
from evalwright.model.trace import TraceError
from evalwright.registry import load

__all__ = ["Member", "MemberResult", "evaluated_member", "member_doubts", "member_of", "total_cost"]


class Member(NamedTuple):
    """One evaluator of a composite."""

    spec: EvaluatorSpec
    built: BuiltEvaluator


class MemberResult(NamedTuple):
    """The result of one member; an error counts as 0 if errors count."""

    spec: EvaluatorSpec
    evaluation: Evaluation
    error: TraceError | None

    @property
    def score(self) -> float:
        return 0.0 if self.error is not None else self.evaluation.score or 0.0

    @property
    def verdict(self) -> str:
        return "fail" if self.error is not None else self.evaluation.detail.get("verdict") or band(self.score)

    def stored(self) -> dict[str, Any]:
        """The result as the composite's own result stores it."""
        evaluation = self.evaluation
        return {
            "evaluator": self.spec.name,
            "evaluator_type": self.spec.type,
            "weight": self.spec.weight,
            "passed": evaluation.passed and self.error is None,
            "score": self.score if self.error is None else None,
            "reason": evaluation.reason,
            "hits": evaluation.hits,
            "misses": evaluation.misses,
            "verdict": self.verdict,
            "detail": evaluation.detail,
            "error": None if self.error is None else {"type": self.error.type, "message": self.error.message},
        }

    def shown(self) -> dict[str, Any]:
        """The result as an aggregator's program or judge sees it."""
        return {
            "score": self.score,
            "verdict": self.verdict,
            "hits": self.evaluation.hits,
            "misses": self.evaluation.misses,
            "reasoning": self.evaluation.reason,
            "details": details_of(self.evaluation.detail),
        }


def member_of(raw: Mapping[str, Any]) -> Member:
    """The member in a configuration. Raises InputError with keys relative to it."""
    if unread := undeclared(raw, EvaluatorSpec.__struct_fields__):
        raise InputError(unread)
    try:
        spec = msgspec.convert(dict(raw), EvaluatorSpec)
    except msgspec.ValidationError as error:
        raise InputError(Problem("", str(error))) from error
    with below("type"):
        load("evaluators", spec.type)
    if spec.extractor is not None:
        with below("extractor.config"):
            build_extractor(spec.extractor.type, spec.extractor.config)
    with below("config"):
        return Member(spec, build(spec))


def member_doubts(members: Sequence[Any]) -> Iterator[Problem]:
    """The doubts about the configurations of members, which may be of any shape."""
    for i, member in enumerate(members):
        config = member.get("config") if isinstance(member, dict) else None
        with suppress(InputError):  # of a type that is unknown, which is a mistake and no doubt
            for doubt in config_doubts(str(member.get("type")), config) if isinstance(config, dict) else ():
                yield Problem("", doubt.message, key=f"evaluators[{i}].config.{doubt.key}")


async def evaluated_member(member: Member, evaluate: Callable[..., Any], *arguments: Any) -> MemberResult:
    """What a member finds, called by `evaluate`; an exception becomes its error."""
    spec, traits = member.spec, member.built.traits
    try:
        returned = evaluate(*arguments)
        evaluation: Evaluation = await returned if isinstance(returned, Awaitable) else returned
        _must_be_within(evaluation.score, *traits.scores)
        return MemberResult(spec, evaluation, None)
    except EvaluatorError as error:
        failure = TraceError(error.type, str(error))
    except Exception as error:
        failure = TraceError(type(error).__name__, str(error))
    message = f"Evaluator {spec.name!r} failed: {failure.message}"
    return MemberResult(spec, Evaluation(False, 0.0, message, misses=[message]), failure)


def _must_be_within(score: Any, low: float, high: float) -> None:
    usable = is_number(score) and low <= score <= high
    if score is not None and not usable:
        raise EvaluatorError(f"the score is {shown(score, 80)}, expected a number from {low:g} to {high:g}")


def total_cost(results: Sequence[MemberResult]) -> float | None:
    """US dollars of all members; None if none of them cost anything that is known."""
    costs = [result.evaluation.cost_usd for result in results if result.evaluation.cost_usd is not None]
    return sum(costs) if costs else None
