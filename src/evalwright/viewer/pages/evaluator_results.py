"""The results of a cell's evaluators as rows, each with the calls of its judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import money
from evalwright.model.plan import Plan
from evalwright.model.result import is_judge_call
from evalwright.model.trace import TraceError
from evalwright.reports.numbers import duration
from evalwright.scoring.reasons import error_text
from evalwright.viewer.pages.blocks import Blocks, ShownText

__all__ = ["EvaluatorResult", "JudgeCall", "evaluator_results"]

_ORDER = {"error": 0, "fail": 1, "borderline": 2, "pass": 3, "skip": 4}


class JudgeCall(NamedTuple):
    """One call of a judge."""

    model: str
    facts: str
    messages: list[tuple[str, ShownText]]
    reply: ShownText | None
    further: list[tuple[str, ShownText]]


class EvaluatorResult(NamedTuple):
    """One evaluator's result as a row."""

    name: str
    kind: str
    status: str
    score: float | None
    threshold: str
    reason: ShownText
    cost: float | None
    calls: list[JudgeCall]
    votes: ShownText | None
    detail: ShownText | None
    stack: ShownText | None


def evaluator_results(results: Sequence[dict[str, Any]], plan: Plan, blocks: Blocks) -> list[EvaluatorResult]:
    """Those that did not pass first, then in the order of the suite."""
    order = {spec.name: place for place, spec in enumerate(plan.evaluators)}
    thresholds = {name: plan.lowest_passing(name) for name in order}
    rows = [_result(result, number, thresholds, blocks) for number, result in enumerate(results)]
    return sorted(rows, key=lambda row: (_ORDER[row.status], order.get(row.name, len(order))))


def _result(result: dict[str, Any], number: int, thresholds: dict[str, Any], blocks: Blocks) -> EvaluatorResult:
    error, at = result.get("error"), f"results/{number}"
    detail = dict(result.get("detail") or {})
    calls = detail.pop("judge_calls", None)
    votes = detail.pop("votes", None)
    threshold = thresholds.get(result["evaluator"])
    if threshold is None:
        threshold = detail.get("threshold")
    reason = error_text(_error(error), of_result=True) if error else result.get("reason") or ""
    return EvaluatorResult(
        result["evaluator"],
        result.get("evaluator_type", ""),
        _status(result, detail),
        result.get("score"),
        f"{threshold:g}" if isinstance(threshold, int | float) else "",
        blocks.of(reason, f"{at}/error/message" if error else f"{at}/reason"),
        result.get("cost_usd"),
        [
            _call(call, f"{at}/detail/judge_calls/{i}", blocks)
            for i, call in enumerate(calls if isinstance(calls, list) else [])
        ],
        blocks.of(votes, f"{at}/detail/votes") if votes else None,
        blocks.of(detail, f"{at}/detail") if detail else None,
        blocks.of(error["stack"], f"{at}/error/stack") if error and error.get("stack") else None,
    )


def _error(error: dict[str, Any]) -> Any:
    return msgspec.convert(error, TraceError)


def _status(result: dict[str, Any], detail: dict[str, Any]) -> str:
    if result.get("error"):
        return "error"
    if result.get("skipped"):
        return "skip"
    if result.get("passed"):
        return "pass"
    return "borderline" if detail.get("verdict") == "borderline" else "fail"


def _call(call: Any, at: str, blocks: Blocks) -> JudgeCall:
    if not is_judge_call(call):
        return JudgeCall("", "", [], blocks.of(call, at), [])
    usage, facts = call.get("usage") or {}, []
    if call.get("cached"):
        facts.append("cached")
    if usage:
        facts.append(f"{usage.get('token_input', '?')} → {usage.get('token_output', '?')} tokens")
    if call.get("cost_usd") is not None:
        facts.append(money(call["cost_usd"]))
    if call.get("latency_ms") is not None:
        facts.append(duration(call["latency_ms"]))
    messages = []
    for number, message in enumerate(call.get("messages") or []):
        rest = {key: value for key, value in message.items() if key not in ("role", "content")}
        content = message.get("content") if not rest else {"content": message.get("content"), **rest}
        place = f"{at}/messages/{number}" + ("" if rest else "/content")
        messages.append((str(message.get("role", "")), blocks.of("" if content is None else content, place)))
    reply = call.get("reply")
    further = [
        (name, blocks.of(call[name], f"{at}/{name}")) for name in ("thinking", "tool_calls", "error") if call.get(name)
    ]
    shown = None if reply is None else blocks.of(reply, f"{at}/reply")
    return JudgeCall(str(call.get("model", "")), " · ".join(facts), messages, shown, further)
