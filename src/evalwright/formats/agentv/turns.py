"""The turns of a conversation, each judged by its own checks (AgentV 4, `mode: conversation`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from evalwright.errors import EvaluatorError, InputError, Problem
from evalwright.evaluators.build import BuiltEvaluator, calls_models
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.combined.composite import Composite
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.conversations import TURN_AGGREGATIONS, transcript, window
from evalwright.llm.patience import all_given
from evalwright.model.artifact import Artifact
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import Evaluation
from evalwright.model.score_rule import reaches
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace

__all__ = ["ConversationTurns"]

_Members = Sequence[Mapping[str, Any]]


class _Judged(NamedTuple):
    """A turn, or the whole conversation, with the case and the trace as its checks see them."""

    name: str
    members: _Members
    composite: Composite | None
    case: Case
    trace: Trace


class ConversationTurns:
    """The mean, `min` or `max` of the scores of the turns, and of `whole`, the checks of the conversation.

    Each entry of `turns` has the evaluators of a turn; a turn without any scores 1. With `stop`, the conversation
    ends with a turn whose score is below `threshold`, and the turns after it count as 0. Raises InputError for what
    cannot be built.
    """

    @staticmethod
    def calls_models(config: Mapping[str, Any]) -> bool:
        members = [member for listed in (*config["turns"], config.get("whole") or ()) for member in listed]
        return any(calls_models(str(member.get("type")), member.get("config") or {}) for member in members)

    def __init__(
        self,
        turns: Sequence[_Members],
        whole: _Members = (),
        aggregation: str = TURN_AGGREGATIONS[0],
        stop: bool = False,
        window_size: int | None = None,
        threshold: float = 0.8,
    ) -> None:
        if aggregation not in TURN_AGGREGATIONS:
            expected = f"expected one of {', '.join(TURN_AGGREGATIONS)}, found {as_written(aggregation)}"
            raise InputError(Problem("", expected, key="aggregation"))
        self._turns = [(members, Composite(members) if members else None) for members in turns]
        self._whole = (whole, Composite(whole) if whole else None)
        self._aggregation, self._window = aggregation, window_size
        self._stop_below = threshold if stop else 0.0
        built = self._composites()
        self.uses_artifact: bool = any(check.uses_artifact for check in built)
        self.timeout_seconds: float = sum(check.timeout_seconds for check in built) or 60.0

    def _composites(self) -> list[Composite]:
        return [composite for _, composite in (*self._turns, self._whole) if composite is not None]

    def bind_members(self, bound: Callable[[EvaluatorSpec, BuiltEvaluator], Callable[..., Any]]) -> None:
        for composite in self._composites():
            composite.bind_members(bound)

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        for composite in self._composites():
            yield from composite.asks(case)

    async def evaluate(self, case: Case, trace: Trace, artifact: Artifact | None = None) -> Evaluation:
        turn_results = trace.extra.get("turns")
        if not isinstance(turn_results, list) or len(turn_results) != len(self._turns):
            raise EvaluatorError("the trace does not have the turns of the conversation", "no_turns")
        history: list[dict[str, Any]] = [*case.extra.get("chat", ())]
        judged: list[_Judged] = []
        for number, (turn, reply, (members, composite)) in enumerate(
            zip(case.extra["turns"], turn_results, self._turns, strict=True), 1
        ):
            history += [{"role": "user", "content": turn["input"]}, {"role": "assistant", "content": reply["answer"]}]
            seen = window(history, self._window)
            own = _case(case, seen, turn["expected_messages"], turn["reference_answer"])
            answered = _trace(trace, reply["answer"], reply["output_messages"])
            judged.append(_Judged(f"turn-{number}", members, composite, own, answered))
        results = await self._results_of_turns(judged, artifact)
        left = judged[len(results) :]
        skipped = banded(0.0, misses=["not judged: a turn before it failed"])
        results += [_child(turn.name, skipped) for turn in left]
        if self._whole[1] is not None:
            messages = history[: len(history) - 2 * len(left)]
            answered = _ended_trace(trace, case.extra["turns"], len(left))
            answered = replace(answered, output=Output(transcript(messages)))
            whole = _Judged("conversation", *self._whole, _case(case, messages, [], ""), answered)
            results.append(await _turn_result(whole, artifact))
        return self._joint_evaluation(results)

    async def _results_of_turns(self, judged: Sequence[_Judged], artifact: Artifact | None) -> list[dict[str, Any]]:
        """The results of the turns, up to the one with which the conversation ends."""
        if not self._stop_below:
            return await all_given(_turn_result(result, artifact) for result in judged)
        turns: list[dict[str, Any]] = []
        for turn in judged:
            turns.append(await _turn_result(turn, artifact))
            if not reaches(turns[-1]["score"], self._stop_below):
                break
        return turns

    def _joint_evaluation(self, results: Sequence[dict[str, Any]]) -> Evaluation:
        scores = [result["score"] for result in results]
        score = {"min": min, "max": max}.get(self._aggregation, lambda all_of: sum(all_of) / len(all_of))(scores)
        hits = [f"[{result['evaluator']}] {hit}" for result in results for hit in result["hits"]]
        misses = [f"[{result['evaluator']}] {miss}" for result in results for miss in result["misses"]]
        costs = [cost for result in results if (cost := result.pop("cost_usd")) is not None]
        together = banded(score, hits, misses, detail={"children": [*results]})
        together.cost_usd = sum(costs) if costs else None
        return together


async def _turn_result(judged: _Judged, artifact: Artifact | None) -> dict[str, Any]:
    """The joint result of one turn's checks; a required check that is not met makes the score 0."""
    name, members, composite, case, trace = judged
    if composite is None:
        return _child(name, banded(1.0))
    try:
        evaluation = await composite.evaluate(case, trace, artifact)
    except EvaluatorError as error:
        raise EvaluatorError(f"{name}: {error}", error.type, error.detail, error.cost_usd) from error
    missed = [
        f"{member['name']}: required, at least {member['required']:g}"
        for member, child in zip(members, evaluation.detail["children"], strict=True)
        if member.get("required") is not None and not reaches(child["score"], member["required"])
    ]
    if missed:
        cost = evaluation.cost_usd
        evaluation = banded(
            0.0, evaluation.hits, [*missed, *evaluation.misses], detail={"children": evaluation.detail["children"]}
        )
        evaluation.cost_usd = cost
    return _child(name, evaluation)


def _child(name: str, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "evaluator": name,
        "evaluator_type": "turn",
        "weight": 1.0,
        "passed": evaluation.passed,
        "score": evaluation.score,
        "reason": evaluation.reason,
        "hits": evaluation.hits,
        "misses": evaluation.misses,
        "verdict": evaluation.detail["verdict"],
        "detail": evaluation.detail,
        "error": None,
        "cost_usd": evaluation.cost_usd,
    }


def _case(case: Case, history: Sequence[dict[str, Any]], expected: list[Any], reference: str) -> Case:
    """The case as the checks of a turn see it: the conversation up to the answer is the input."""
    question = transcript(history)
    seen = {"prompt": question, "question": question, "input_messages": [*history]}
    extra = {**case.extra, **seen, "expected_messages": expected, "reference_answer": reference}
    return replace(case, input=question, extra=extra)


def _ended_trace(trace: Trace, turns: Sequence[dict[str, Any]], left: int) -> Trace:
    """The trace as if the last turns had not been asked."""
    if not left:
        return trace
    messages = [
        message
        for turn, reply in list(zip(turns, trace.extra["turns"], strict=True))[:-left]
        for message in ({"role": "user", "content": turn["input"]}, *reply["output_messages"])
    ]
    return replace(trace, extra={**trace.extra, "output_messages": messages})


def _trace(trace: Trace, answer: str, messages: list[dict[str, Any]]) -> Trace:
    """The trace as the checks of a turn see it; time and cost are only known for all turns together."""
    extra = {key: value for key, value in trace.extra.items() if key not in ("turns", "token_usage", "duration_ms")}
    return replace(trace, output=Output(answer), extra={**extra, "output_messages": messages})
