"""Checks of the steps behind an answer (NorthStar 0.1, trace graders). A trace without steps is skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from evalwright.evaluators.conversation.messages import expected_of
from evalwright.evaluators.conversation.outcomes import graded
from evalwright.evaluators.steps.steps import in_order, steps_of_trace
from evalwright.evaluators.wording import listed, number
from evalwright.files.numbers import is_number
from evalwright.model.conversation import TraceExpected
from evalwright.model.recordings import json_text
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.steps import Step, StepEvent, Steps
from evalwright.model.trace import Trace

__all__ = [
    "BadToolFailureRecovery",
    "FailureOrigin",
    "InvalidStateTransition",
    "RetrievalPrecisionRecall",
    "StaleContextUsage",
    "StepCostAttribution",
    "UnnecessaryToolLoop",
]

_REPEATS = 3
"""Calls of one tool with the same arguments that are not yet a loop, if the case does not say."""
_SAYING = ("assistant_message", "reasoning", "final_response")
_STALE = ("stale", "stale_context", "used_stale_context")
_ID_LISTS = ("retrieved_ids", "document_ids", "ids")
_DOCUMENT_LISTS = ("hits", "documents", "results")
_MOST_SHOWN = 100
"""Steps that a detail lists."""


def _skipped(reason: str) -> Evaluation:
    return Evaluation(False, None, reason, skipped=True)


_NO_STEPS = _skipped("the trace has no steps")


def _expected_of_trace(case: Case) -> TraceExpected:
    return expected_of(case).trace or TraceExpected()


class _LenientCheck(msgspec.Struct, frozen=True):
    """Decides by the original's rule, or with `strict` by a stricter one. If they differ, the result's detail says
    so."""

    strict: bool = False

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        evaluation = self._evaluation(case, trace, self.strict)
        better = evaluation if self.strict else self._evaluation(case, trace, True)
        if (better.passed, better.skipped) != (evaluation.passed, evaluation.skipped):
            verdict = "with strict it would " + ("pass" if better.passed else "fail")
            warning = ": ".join(part for part in (verdict, better.reason) if part)
            return msgspec.structs.replace(evaluation, detail={**evaluation.detail, "warning": warning})
        return evaluation

    def _evaluation(self, case: Case, trace: Trace, strict: bool) -> Evaluation:
        raise NotImplementedError


class BadToolFailureRecovery(msgspec.Struct, frozen=True):
    """After each failed tool call the system says or reasons something; merely calling again is not a recovery."""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        steps = steps_of_trace(trace)
        if steps is None:
            return _NO_STEPS
        failed = [span for span in steps.spans if span.kind == "tool" and span.failed]
        if not failed:
            return _skipped("no tool failed")
        unrecovered = [span for span in failed if not _recovered(span, steps)]
        listed_spans = [{"span_id": span.id, "tool": span.name, "error": span.error} for span in unrecovered]
        names = listed(dict.fromkeys(span.name for span in unrecovered))
        reason = f"nothing was said or reasoned after the failure of {names}" if unrecovered else ""
        detail = {"failed_tools": listed_spans[:_MOST_SHOWN]} if unrecovered else {}
        return graded(not unrecovered, reason, {"failed_tool_count": len(failed), **detail})


def _recovered(span: Step, steps: Steps) -> bool:
    orders = [event.order for event in steps.events if event.span_id == span.id]
    if orders:
        return any(event.order > max(orders) and event.type in _SAYING for event in steps.events)
    return any(event.type in _SAYING and _after(event, span) for event in steps.events)


def _after(event: StepEvent, span: Step) -> bool:
    if event.created_at is None or span.started_at is None:
        return event.created_at is None and span.started_at is not None
    return event.created_at > span.started_at


class UnnecessaryToolLoop(_LenientCheck, frozen=True):
    """No tool is called with the same arguments more often than allowed.

    With `strict` positional arguments count too, and a call that names its tool is a call of that tool.
    """

    def _evaluation(self, case: Case, trace: Trace, strict: bool) -> Evaluation:
        steps = steps_of_trace(trace)
        if steps is None:
            return _NO_STEPS
        calls = [event for event in steps.events if event.type == "tool_arguments" and event.span_id is not None]
        if len(calls) < 2:
            return _skipped("fewer than two calls of tools")
        limit = _expected_of_trace(case).max_repeated_tool_calls or _REPEATS
        names = {span.id: span.name for span in steps.spans}
        event_ids: dict[tuple[str, str], list[str]] = {}
        for event in calls:
            if event.span_id in names:
                event_ids.setdefault(_signature(names[event.span_id], event.content, strict), []).append(event.id)
        loops = [(call, ids) for call, ids in event_ids.items() if len(ids) > limit]
        listed_loops = ", ".join(f"{tool} {len(ids)} times" for (tool, _), ids in loops[:3])
        reason = f"called with the same arguments: {listed_loops}; at most {limit} times expected" if loops else ""
        signatures = [
            {"signature": " ".join(call), "event_ids": ids[:_MOST_SHOWN], "count": len(ids)}
            for call, ids in loops[:_MOST_SHOWN]
        ]
        return graded(not loops, reason, {"max_repeated_tool_calls": limit, "loop_signatures": signatures})


def _signature(name: str, content: Any, strict: bool) -> tuple[str, str]:
    arguments = _arguments(content)
    if strict and isinstance(content, dict):
        name = str(content.get("name") or name)
        arguments = [content.get("args"), arguments]
    return name, json_text(arguments)


def _arguments(content: Any) -> Any:
    """The arguments of a call, without the positional ones of decorated functions."""
    if not isinstance(content, dict):
        return content
    if "arguments" in content:
        arguments = content["arguments"]
        try:
            return json.loads(arguments) if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            return arguments
    return content.get("kwargs", content)


class InvalidStateTransition(msgspec.Struct, frozen=True):
    """Each change from one observed state to the next is allowed; staying in a state must be allowed, too."""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        steps, allowed = steps_of_trace(trace), _expected_of_trace(case).allowed_state_transitions
        if steps is None:
            return _NO_STEPS
        if allowed is None:
            return _skipped("the case expects no changes of state (allowed_state_transitions)")
        states = [state for event in steps.events if (state := _state(event)) is not None]
        if len(states) < 2:
            return _skipped("fewer than two states were observed")
        known = {(change.from_state, change.to_state) for change in allowed}
        wrong = [change for change in pairwise(states) if change not in known]
        reason = f"not allowed: {listed(f'{a} to {b}' for a, b in wrong)}" if wrong else ""
        transitions = [{"from_state": before, "to_state": after} for before, after in wrong[:_MOST_SHOWN]]
        return graded(not wrong, reason, {"states": states[:_MOST_SHOWN], "invalid_transitions": transitions})


def _state(event: StepEvent) -> str | None:
    for source in (event.attributes, event.content):
        # a state of 0 or "" counts under `to_state` alone, as in NorthStar
        if isinstance(source, dict) and (state := source.get("state") or source.get("to_state")) is not None:
            return str(state)
    return None


class RetrievalPrecisionRecall(_LenientCheck, frozen=True):
    """Retrieved documents reach the precision and recall that the case asks for.

    Skipped if nothing was retrieved; with `strict`, the recall is then 0.
    """

    def _evaluation(self, case: Case, trace: Trace, strict: bool) -> Evaluation:
        steps, expected = steps_of_trace(trace), _expected_of_trace(case)
        least = (expected.min_retrieval_precision, expected.min_retrieval_recall)
        limits = [limit for limit in least if limit is not None]
        if steps is None:
            return _NO_STEPS
        if expected.relevant_retrieval_ids is None or not limits:
            return _skipped("the case expects no retrieval (relevant_retrieval_ids with a least precision or recall)")
        retrieved = {name for event in steps.events if event.type == "tool_result" for name in _ids(event.content)}
        if not retrieved and not strict:
            return _skipped("nothing was retrieved")
        relevant = set(expected.relevant_retrieval_ids)
        hits = retrieved & relevant
        precision = len(hits) / len(retrieved) if retrieved else 1.0
        recall = len(hits) / len(relevant) if relevant else 1.0
        passed = precision >= (expected.min_retrieval_precision or 0) and recall >= (expected.min_retrieval_recall or 0)
        detail = {
            "threshold": max(limits),
            "retrieved_ids": sorted(retrieved)[:_MOST_SHOWN],
            "relevant_ids": sorted(relevant)[:_MOST_SHOWN],
            "true_positive_ids": sorted(hits)[:_MOST_SHOWN],
            "retrieved_count": len(retrieved),
            "relevant_count": len(relevant),
            "true_positive_count": len(hits),
            "precision": round(precision, 4),
            "recall": round(recall, 4),
            "min_precision": expected.min_retrieval_precision,
            "min_recall": expected.min_retrieval_recall,
        }
        reason = f"precision {precision:.2f}, recall {recall:.2f}"
        return Evaluation(passed, min(precision, recall), reason, detail)


def _ids(content: Any) -> Iterator[str]:
    if isinstance(content, list):
        yield from _ids_of(content)
    elif isinstance(content, dict):
        for key in (*_ID_LISTS, *_DOCUMENT_LISTS):
            value = content.get(key)
            if isinstance(value, list):
                yield from map(str, value) if key in _ID_LISTS else _ids_of(value)
                return


def _ids_of(documents: list[Any]) -> Iterator[str]:
    for document in documents:
        if isinstance(document, dict) and document.get("id") is not None:
            yield str(document["id"])


class StepCostAttribution(msgspec.Struct, frozen=True):
    """No step costs more US dollars than allowed."""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        steps, limit = steps_of_trace(trace), _expected_of_trace(case).max_step_cost_usd
        if steps is None:
            return _NO_STEPS
        costs = [(span, cost) for span in steps.spans if (cost := _cost(span)) is not None]
        if not costs:
            return _skipped("no step says what it cost")
        over = [(span, cost) for span, cost in costs if limit is not None and cost > limit]
        reason = ", ".join(f"{span.name} costs {number(cost, limit)} USD" for span, cost in over[:3])
        detail = {
            "step_costs": [_cost_row(span, cost) for span, cost in costs[:_MOST_SHOWN]],
            "total_cost_usd": round(sum(cost for _, cost in costs), 8),
            "max_step_cost_usd": limit,
            "over_limit": [_cost_row(span, cost) for span, cost in over[:_MOST_SHOWN]],
        }
        return graded(not over, f"{reason}; at most {number(limit or 0)} expected" if over else "", detail)


def _cost(span: Step) -> float | None:
    cost = span.attributes.get("cost_usd")
    return cost if is_number(cost) else None


def _cost_row(span: Step, cost: float) -> dict[str, Any]:
    tokens = {key: span.attributes.get(key) for key in ("input_tokens", "output_tokens", "total_tokens")}
    return {"span_id": span.id, "span_name": span.name, "kind": span.kind, "cost_usd": float(cost), **tokens}


class StaleContextUsage(msgspec.Struct, frozen=True):
    """No event is marked as using stale context."""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        steps = steps_of_trace(trace)
        if steps is None:
            return _NO_STEPS
        marked = [event for event in steps.events if any(_has_mark(event, key) for key in _STALE)]
        stale = [event.id for event in marked]
        if not stale and not any(event.type in _SAYING for event in steps.events):
            return _skipped("nothing was said or reasoned")
        reason = f"a stale context was used: {listed(stale)}" if stale else ""
        spans = [event.span_id for event in marked if event.span_id]
        detail = {"event_ids": stale[:_MOST_SHOWN], "span_ids": spans[:_MOST_SHOWN]} if stale else {}
        return graded(not stale, reason, detail)


def _has_mark(event: StepEvent, key: str) -> bool:
    value = event.attributes.get(key)
    if isinstance(value, str):
        return value.lower() in ("1", "true", "yes", "error", "failed")
    return bool(value)


class FailureOrigin(_LenientCheck, frozen=True):
    """Names the first step that failed; skipped if none did.

    With `strict` it passes if the run ended well and every failed tool was recovered from.
    """

    def _evaluation(self, case: Case, trace: Trace, strict: bool) -> Evaluation:
        steps = steps_of_trace(trace)
        if steps is None:
            return _NO_STEPS
        spans = [span for span in steps.spans if span.failed]
        events = [e for e in steps.events if _has_mark(e, "error") or _has_mark(e, "failed")]
        error = None if steps.run is None else steps.run.error
        if not spans and not events and not error:
            return _skipped("nothing failed")
        origin = in_order(spans, "started_at")[0] if spans else None
        detail = {
            "failure_origin_span": None if origin is None else msgspec.to_builtins(origin),
            "failing_span_ids": [span.id for span in spans[:_MOST_SHOWN]],
            "failing_event_ids": [event.id for event in events[:_MOST_SHOWN]],
            "run_error": error,
            "evidence": ["run_error" if origin is None else f"{origin.name} ({origin.id})"],
        }
        if strict and not error and not events and all(_overcome(span, steps) for span in spans):
            return graded(True, "every failure was recovered from", detail)
        where = "the run" if origin is None else f"{origin.kind} {origin.name}"
        return graded(False, f"the first failure is that of {where}", detail)


def _overcome(span: Step, steps: Steps) -> bool:
    return span.kind == "tool" and _recovered(span, steps)
