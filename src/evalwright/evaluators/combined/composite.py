"""Several evaluators as one, combined by an aggregator (AgentEvals 1.0, `composite`)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import EvaluatorError, InputError, Problem
from evalwright.evaluators.build import (
    Built,
    build,
    build_evaluator,
    calls_models,
    config_doubts,
    keys_needed,
    undeclared,
)
from evalwright.evaluators.code.judge import call_program, script_of
from evalwright.evaluators.combined.banded import banded, details_of
from evalwright.evaluators.wording import shown
from evalwright.llm.patience import all_given
from evalwright.model.artifact import Artifact
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.protocols import Traits
from evalwright.model.result import Evaluation, band
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace, TraceError

__all__ = ["AGGREGATORS", "Composite"]

_RESULTS = "{{EVALUATOR_RESULTS_JSON}}"
_PLACE = re.compile(r"\{\{\s*EVALUATOR_RESULTS_JSON\s*\}\}")
_UNSAFE = 0.6
_DIGITS = 9
"""As for the bands: a score of 0.8 that is computed may lie a little below."""
_ALL = 0.8
AGGREGATORS: Mapping[str, tuple[str, ...] | None] = {
    "weighted_average": ("weights",),
    "minimum": (),
    "maximum": (),
    "safety_gate": ("weights", "required"),
    "all_or_nothing": ("weights", "threshold"),
    "threshold": ("threshold",),
    "code_judge": ("path",),
    "llm_judge": None,
}
"""The keys that each aggregator reads; None: the keys of its judge."""
_WEIGHED = tuple(kind for kind, keys in AGGREGATORS.items() if keys is not None and "weights" in keys)


class _MemberResult(NamedTuple):
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

    def child(self) -> dict[str, Any]:
        """The member's result as the composite's result stores it."""
        e = self.evaluation
        return {
            "evaluator": self.spec.name,
            "evaluator_type": self.spec.type,
            "weight": self.spec.weight,
            "passed": e.passed and self.error is None,
            "score": self.score if self.error is None else None,
            "reason": e.reason,
            "hits": e.hits,
            "misses": e.misses,
            "verdict": self.verdict,
            "detail": e.detail,
            "error": None if self.error is None else {"type": self.error.type, "message": self.error.message},
        }


class Composite:
    """Combines `evaluators`, given as in a plan, by `aggregator` {type, ...}; default: their weighted average.

    It errors if a member or the aggregator does; with `errors: count` they count as 0, as in AgentV. Raises InputError
    for a member that cannot be built, and for an aggregator that is unknown or names members that do not exist.
    """

    @staticmethod
    def calls_models(config: Mapping[str, Any]) -> bool:
        """Whether a member or the aggregator calls models."""
        members = [(str(member.get("type")), member.get("config") or {}) for member in config["evaluators"]]
        return (config.get("aggregator") or {}).get("type") == "llm_judge" or any(calls_models(*m) for m in members)

    @property
    def needed_keys(self) -> frozenset[str]:
        """The keys of `expected` without any of which no member checks anything."""
        needed = [keys_needed(member) for _, member in self._members]
        return frozenset().union(*needed) if all(needed) else frozenset()

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        rule, members = config.get("aggregator") or {}, config.get("evaluators")
        if not isinstance(rule, dict) or not isinstance(members, list):
            return []
        return [*_doubts_of_members(members), *_doubts_of_rule(rule, members)]

    def __init__(
        self,
        evaluators: Sequence[Mapping[str, Any]],
        aggregator: Mapping[str, Any] | None = None,
        folder: str = ".",
        errors: str = "error",
    ) -> None:
        if errors not in ("error", "count"):
            raise _config_error("errors", f"expected 'error' or 'count', found {errors!r}")
        self._errors_count = errors == "count"
        if not evaluators:
            raise _config_error("evaluators", "expected at least one member")
        self._members = [_member(raw, i) for i, raw in enumerate(evaluators)]
        self._calls: list[Callable[..., Any]] = [member.evaluate for _, member in self._members]
        self.uses_artifact: bool = any(member.traits.uses_artifact for _, member in self._members)
        self.timeout_seconds: float = max(member.traits.timeout_seconds for _, member in self._members)
        self._aggregator = dict(aggregator or {"type": "weighted_average"})
        self._folder = folder
        self._kind = self._aggregator.get("type", "")
        if self._kind not in AGGREGATORS:
            found = repr(self._kind) if self._kind else "nothing"
            raise _config_error("aggregator.type", f"expected one of {', '.join(AGGREGATORS)}, found {found}")
        names = [spec.name for spec, _ in self._members]
        required = self._aggregator.get("required") or []
        if not isinstance(required, list):
            raise _config_error(
                "aggregator.required", f"expected a list of members' names, found {shown(required, 80)}"
            )
        if unknown := [name for name in required if name not in names]:
            raise _config_error("aggregator.required", f"no member {unknown[0]!r} (there are: {', '.join(names)})")
        idle = [name for name in self._aggregator.get("weights") or () if name not in names]
        if idle and not self._errors_count:  # AgentV ignores such a weight
            raise _config_error("aggregator.weights", f"no member {idle[0]!r} (there are: {', '.join(names)})")
        if wrong := next(_wrong_numbers(self._aggregator), None):
            raise _config_error(*wrong)
        read = AGGREGATORS[self._kind]
        unread = [] if read is None or self._errors_count else undeclared(self._aggregator, ("type", *read))
        if unread:
            raise InputError([Problem("", p.message, key=f"aggregator.{p.key}") for p in unread])
        if self._kind == "code_judge" and not self._aggregator.get("path"):
            raise _config_error("aggregator.path", "expected a command")

    def bind_members(self, bound: Callable[[EvaluatorSpec, Built], Callable[..., Any]]) -> None:
        """Call each member as `bound` says."""
        self._calls = [bound(spec, member) for spec, member in self._members]

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        judging = [self._judge("")] if self._kind == "llm_judge" else []
        for evaluator in (*(member for _, member in self._members), *judging):
            if evaluator.traits.asks is not None:
                yield from evaluator.traits.asks(case)

    async def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None = None) -> Evaluation:
        member_results = await all_given(
            _evaluate_member(
                spec, call, member.traits, case, trace, *([artifact] if member.traits.uses_artifact else [])
            )
            for (spec, member), call in zip(self._members, self._calls, strict=True)
        )
        broken = next((one for one in member_results if one.error is not None), None)
        children = {"children": [one.child() for one in member_results]}
        if broken is not None and broken.error is not None and not self._errors_count:
            message = f"its member {broken.spec.name!r} had an error: {broken.error.message}"
            raise EvaluatorError(message, broken.error.type, children, _total_cost(member_results))
        try:
            found = await self._aggregated_evaluation(case, trace, member_results)
        except EvaluatorError as error:
            if not self._errors_count:
                detail = {**error.detail, **children}
                raise EvaluatorError(
                    f"the aggregator failed: {error}", error.type, detail, _total_cost(member_results)
                ) from error
            found = banded(0.0, misses=[f"the aggregator failed: {error}"], detail={"aggregator_error": str(error)})
        found.detail = {**found.detail, **children}
        if (cost := _total_cost(member_results)) is not None:
            found.cost_usd = cost + (found.cost_usd or 0.0)
        return found

    async def _aggregated_evaluation(
        self, case: Case, trace: Trace, member_results: Sequence[_MemberResult]
    ) -> Evaluation:
        if self._kind == "code_judge":
            return await self._by_command(member_results)
        return (
            await self._by_model(case, trace, member_results)
            if self._kind == "llm_judge"
            else self._by_rule(member_results)
        )

    def _by_rule(self, member_results: Sequence[_MemberResult]) -> Evaluation:
        scores = [one.score for one in member_results]
        average = self._average(member_results)
        verdict = None
        if self._kind in ("minimum", "maximum"):
            score = min(scores) if self._kind == "minimum" else max(scores)
        elif self._kind == "safety_gate":
            required = self._aggregator.get("required") or ()
            unsafe = any(round(one.score, _DIGITS) < _UNSAFE for one in member_results if one.spec.name in required)
            score = 0.0 if unsafe else average
        elif self._kind == "all_or_nothing":
            score = average if round(min(scores), _DIGITS) >= self._aggregator.get("threshold", _ALL) else 0.0
        elif self._kind == "threshold":
            score = sum(one.verdict == "pass" for one in member_results) / len(member_results)
            verdict = "pass" if round(score, _DIGITS) >= self._aggregator.get("threshold", _ALL) else "fail"
        else:
            score = average
        return _joint_evaluation(score, member_results, verdict)

    def _average(self, member_results: Sequence[_MemberResult]) -> float:
        own = self._aggregator.get("weights") or {}
        weights = [float(own.get(one.spec.name, one.spec.weight)) for one in member_results]
        total = sum(weights)
        return (
            sum(one.score * weight for one, weight in zip(member_results, weights, strict=True)) / total
            if total
            else 0.0
        )

    async def _by_command(self, member_results: Sequence[_MemberResult]) -> Evaluation:
        document = {"results": {one.spec.name: _result(one) for one in member_results}}
        reply = await call_program(
            script_of(self._aggregator["path"]), self._folder, document, lenient=self._errors_count
        )
        return banded(
            reply.score, reply.hits, reply.misses, reply.reasoning, detail=reply.details, verdict=reply.verdict
        )

    async def _by_model(self, case: Case, trace: Trace, member_results: Sequence[_MemberResult]) -> Evaluation:
        results = json.dumps({one.spec.name: _result(one) for one in member_results}, ensure_ascii=False, indent=2)
        prompt = _PLACE.sub(lambda _: results, str(self._aggregator.get("prompt") or _RESULTS))
        given = self._judge(prompt).evaluate(case, trace)
        return await given if isinstance(given, Awaitable) else given

    def _judge(self, prompt: str) -> Built:
        config = {key: value for key, value in self._aggregator.items() if key not in ("type", "prompt")}
        return build_evaluator("criteria_judge", {**config, "prompt": prompt, "max_calls": 1})


def _doubts_of_members(members: Sequence[Any]) -> Iterator[Problem]:
    for i, member in enumerate(members):
        config = member.get("config") if isinstance(member, dict) else None
        with suppress(InputError):  # of a type that is unknown, which is a mistake and no doubt
            for doubt in config_doubts(str(member.get("type")), config) if isinstance(config, dict) else ():
                yield Problem("", doubt.message, key=f"evaluators[{i}].config.{doubt.key}")


def _doubts_of_rule(rule: Mapping[str, Any], members: Sequence[Any]) -> list[Problem]:
    if rule.get("type") == "threshold" and rule.get("threshold") == 0:
        message = "every trace passes: name the share of members that must pass"
        return [Problem("", message, key="aggregator.threshold")]
    if rule.get("type") == "safety_gate" and not rule.get("required"):
        return [Problem("", "no member is required: the gate never closes", key="aggregator.required")]
    own = rule.get("weights") or {}
    if rule.get("type", "weighted_average") not in _WEIGHED or not isinstance(own, dict):
        return []
    weights = [own.get(member.get("name"), member.get("weight", 1)) for member in members if isinstance(member, dict)]
    message = "all members have the weight 0, and no trace passes"
    return (
        [] if any(weights) or not weights else [Problem("", message, key="aggregator.weights" if own else "evaluators")]
    )


def _wrong_numbers(aggregator: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The key and the mistake of each number of an aggregator that is none, or out of its range."""
    least = aggregator.get("threshold")
    if least is not None and not (_is_number(least) and 0 <= least <= 1):
        yield "aggregator.threshold", f"expected a number from 0 to 1, found {shown(least, 80)}"
    weights = aggregator.get("weights")
    if weights is not None and not isinstance(weights, dict):
        yield "aggregator.weights", f"expected a mapping of members to weights, found {shown(weights, 80)}"
    for name, weight in weights.items() if isinstance(weights, dict) else ():
        if not (_is_number(weight) and 0 <= weight < math.inf):
            found = f"expected a number that is not negative, found {shown(weight, 80)}"
            yield f"aggregator.weights.{name}", found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _member(raw: Mapping[str, Any], position: int) -> tuple[EvaluatorSpec, Built]:
    try:
        if unread := undeclared(raw, EvaluatorSpec.__struct_fields__):
            raise InputError(unread)
        spec = msgspec.convert(dict(raw), EvaluatorSpec)
        return spec, build(spec)
    except msgspec.ValidationError as error:
        raise _config_error(f"evaluators[{position}]", str(error)) from error
    except InputError as error:
        raise InputError(
            [Problem("", p.message, key=f"evaluators[{position}].{p.key}".rstrip(".")) for p in error.listed]
        ) from error


def _config_error(key: str, message: str) -> InputError:
    return InputError(Problem("", message, key=key))


async def _evaluate_member(spec: EvaluatorSpec, call: Callable[..., Any], traits: Traits, *given: Any) -> _MemberResult:
    try:
        found = call(*given)
        member_results: Evaluation = await found if isinstance(found, Awaitable) else found
        _must_be_within(member_results.score, *traits.scores)
        return _MemberResult(spec, member_results, None)
    except EvaluatorError as error:
        failure = TraceError(error.type, str(error))
    except Exception as error:
        failure = TraceError(type(error).__name__, str(error))
    message = f"Evaluator {spec.name!r} failed: {failure.message}"
    return _MemberResult(spec, Evaluation(False, 0.0, message, misses=[message]), failure)


def _must_be_within(score: Any, low: float, high: float) -> None:
    usable = isinstance(score, (int, float)) and not isinstance(score, bool) and low <= score <= high
    if score is not None and not usable:
        raise EvaluatorError(f"the score is {shown(score, 80)}, expected a number from {low:g} to {high:g}")


def _total_cost(member_results: Sequence[_MemberResult]) -> float | None:
    costs = [one.evaluation.cost_usd for one in member_results if one.evaluation.cost_usd is not None]
    return sum(costs) if costs else None


def _result(one: _MemberResult) -> dict[str, Any]:
    e = one.evaluation
    return {
        "score": one.score,
        "verdict": one.verdict,
        "hits": e.hits,
        "misses": e.misses,
        "reasoning": e.reason,
        "details": details_of(e.detail),
    }


def _joint_evaluation(score: float, member_results: Sequence[_MemberResult], verdict: str | None) -> Evaluation:
    hits = [f"[{one.spec.name}] {hit}" for one in member_results for hit in one.evaluation.hits]
    misses = [f"[{one.spec.name}] {miss}" for one in member_results for miss in one.evaluation.misses]
    return banded(score, hits, misses, verdict=verdict)
