"""The aggregators of a `composite`: rules, a program and a judge that turn the members' results into one evaluation."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.build import BuiltEvaluator, build_evaluator, undeclared
from evalwright.evaluators.code.judge import call_program, script_of
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.combined.members import MemberResult
from evalwright.evaluators.wording import shown
from evalwright.files.numbers import is_number
from evalwright.model.result import Evaluation
from evalwright.model.score_rule import reaches
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["AGGREGATORS", "MEMBER_RESULTS", "Aggregator", "aggregator_doubts", "aggregator_problems"]

MEMBER_RESULTS = "EVALUATOR_RESULTS_JSON"
"""The place for the members' results in a judge's prompt; also the key of a case's `extra` under which it gets them."""
_PLACE = f"{{{{{MEMBER_RESULTS}}}}}"
_UNSAFE = 0.6
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
_BY_NAME = ("code_judge", "llm_judge")
"""Aggregators that get the members' results by name."""


class Aggregator:
    """An aggregator with its configuration, in which `aggregator_problems` finds nothing.

    A command runs in `folder`; `lenient` reads its reply as AgentV does. Raises InputError for a bad configuration of
    its judge, with keys relative to the aggregator.
    """

    def __init__(self, config: Mapping[str, Any], folder: str, *, lenient: bool) -> None:
        self._config, self._folder, self._lenient = config, folder, lenient
        self._kind: str = config["type"]
        self.judge: BuiltEvaluator | None = None
        """The evaluator that judges the members' results; None for rules and programs."""
        if self._kind == "llm_judge":
            keys = {key: value for key, value in config.items() if key != "type"}
            self.judge = build_evaluator(
                "criteria_judge", {**keys, "prompt": keys.get("prompt") or _PLACE, "max_calls": 1}
            )

    async def evaluation(self, case: Case, trace: Trace, results: Sequence[MemberResult]) -> Evaluation:
        """The joint evaluation of at least one result. Raises EvaluatorError if the program or judge gives none."""
        if self.judge is not None:
            return await self._by_judge(self.judge, case, trace, results)
        if self._kind == "code_judge":
            return await self._by_program(results)
        return self._by_rule(results)

    def _by_rule(self, results: Sequence[MemberResult]) -> Evaluation:
        scores = [result.score for result in results]
        verdict = None
        if self._kind in ("minimum", "maximum"):
            score = min(scores) if self._kind == "minimum" else max(scores)
        elif self._kind == "threshold":
            score = sum(result.verdict == "pass" for result in results) / len(results)
            verdict = "pass" if self._reaches_threshold(score) else "fail"
        elif (self._kind == "safety_gate" and self._is_unsafe(results)) or (
            self._kind == "all_or_nothing" and not self._reaches_threshold(min(scores))
        ):
            score = 0.0
        else:
            score = self._average(results)
        hits = [f"[{result.spec.name}] {hit}" for result in results for hit in result.evaluation.hits]
        misses = [f"[{result.spec.name}] {miss}" for result in results for miss in result.evaluation.misses]
        return banded(score, hits, misses, verdict=verdict)

    def _reaches_threshold(self, score: float) -> bool:
        return reaches(score, float(self._config.get("threshold", _ALL)))

    def _is_unsafe(self, results: Sequence[MemberResult]) -> bool:
        required = self._config.get("required") or ()
        return any(not reaches(result.score, _UNSAFE) for result in results if result.spec.name in required)

    def _average(self, results: Sequence[MemberResult]) -> float:
        by_name = self._config.get("weights") or {}
        weights = [float(by_name.get(result.spec.name, result.spec.weight)) for result in results]
        total = sum(weights)
        if not total:
            return 0.0
        return sum(result.score * weight for result, weight in zip(results, weights, strict=True)) / total

    async def _by_program(self, results: Sequence[MemberResult]) -> Evaluation:
        reply = await call_program(
            script_of(self._config["path"]), self._folder, {"results": _by_name(results)}, lenient=self._lenient
        )
        return banded(
            reply.score, reply.hits, reply.misses, reply.reasoning, detail=reply.details, verdict=reply.verdict
        )

    async def _by_judge(
        self, judge: BuiltEvaluator, case: Case, trace: Trace, results: Sequence[MemberResult]
    ) -> Evaluation:
        # A value like any other of the prompt: what members quote must not be read as a place to be filled in.
        text = json.dumps(_by_name(results), ensure_ascii=False, indent=2)
        evaluation = judge.evaluate(msgspec.structs.replace(case, extra={**case.extra, MEMBER_RESULTS: text}), trace)
        return await evaluation if isinstance(evaluation, Awaitable) else evaluation


def _by_name(results: Sequence[MemberResult]) -> dict[str, Any]:
    return {result.spec.name: result.shown() for result in results}


def aggregator_problems(config: Mapping[str, Any], members: Sequence[str], *, lenient: bool) -> Iterator[Problem]:
    """Every mistake in the configuration of an aggregator for these members, with keys relative to it.

    `lenient`, as AgentV is, allows keys and weights that nothing reads.
    """
    kind = config.get("type", "")
    if not isinstance(kind, str) or kind not in AGGREGATORS:
        shown_kind = shown(kind) if kind else "nothing"
        yield Problem("", f"expected one of {', '.join(AGGREGATORS)}, found {shown_kind}", key="type")
        return
    keys = AGGREGATORS[kind]
    if keys is not None and not lenient:
        yield from undeclared(config, ("type", *keys))
    if kind == "code_judge" and not config.get("path"):
        yield Problem("", "expected a command", key="path")
    yield from _number_problems(config)
    yield from _name_problems(config, members, lenient=lenient)
    repeated = [name for name, count in Counter(members).items() if count > 1]
    if repeated and not lenient and (kind in _BY_NAME or config.get("weights") or config.get("required")):
        yield Problem("", f"members are distinguished by name, and several are named {repeated[0]!r}", key="type")


def _number_problems(config: Mapping[str, Any]) -> Iterator[Problem]:
    threshold = config.get("threshold")
    if threshold is not None and not (is_number(threshold) and 0 <= threshold <= 1):
        yield Problem("", f"expected a number from 0 to 1, found {shown(threshold, 80)}", key="threshold")
    weights = config.get("weights")
    if weights is not None and not isinstance(weights, dict):
        yield Problem("", f"expected a mapping of members to weights, found {shown(weights, 80)}", key="weights")
    for name, weight in weights.items() if isinstance(weights, dict) else ():
        if not (is_number(weight) and 0 <= weight < math.inf):
            expected = "expected a number that is not negative"
            yield Problem("", f"{expected}, found {shown(weight, 80)}", key=f"weights.{name}")


def _name_problems(config: Mapping[str, Any], members: Sequence[str], *, lenient: bool) -> Iterator[Problem]:
    required = config.get("required") or []
    if not isinstance(required, list):
        message = f"expected a list of members' names, found {shown(required, 80)}"
        yield Problem("", message, key="required")
        required = []
    weights = config.get("weights")
    weighed = weights if isinstance(weights, dict) and not lenient else {}
    for key, names in (("required", required), ("weights", weighed)):
        for name in names:
            if name not in members:
                yield Problem("", f"no member {shown(name)} (there are: {', '.join(members)})", key=key)


def aggregator_doubts(config: Mapping[str, Any], members: Sequence[Any]) -> list[Problem]:
    """Doubts about an aggregator by which every trace passes, or none, with keys of the composite."""
    kind = config.get("type", "weighted_average")
    if kind == "threshold" and config.get("threshold") == 0:
        message = "every trace passes: name the share of members that must pass"
        return [Problem("", message, key="aggregator.threshold")]
    if kind == "safety_gate" and not config.get("required"):
        return [Problem("", "no member is required: the gate never closes", key="aggregator.required")]
    by_name = config.get("weights") or {}
    if kind not in _WEIGHED or not isinstance(by_name, dict):
        return []
    mappings = [member for member in members if isinstance(member, dict)]
    weights = [by_name.get(member.get("name"), member.get("weight", 1)) for member in mappings]
    if any(weights) or not weights:
        return []
    message = "all members have the weight 0, and no trace passes"
    return [Problem("", message, key="aggregator.weights" if by_name else "evaluators")]
