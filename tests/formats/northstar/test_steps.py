"""NorthStar's exported traces and the graders of their steps."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.evaluators.build import build_evaluator
from evalwright.evaluators.steps.steps import spans_of_steps, steps_of_trace
from evalwright.formats.northstar.traces import steps_in, unread_trace_keys
from evalwright.model.conversation import ConversationExpected, TraceExpected
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case, Expected
from evalwright.model.steps import Steps
from evalwright.model.trace import Output, Span, ToolCall, ToolResult, Trace
from evalwright.northstar import EvalSuite, HallucinatedToolResultJudge, normalize_trace_payload
from formats.northstar.conversations import case, says
from formats.northstar.spans import event, payload, span


def graded(check: str, exported: dict[str, Any], strict: bool | None = None, **expected: Any) -> Evaluation:
    asked = Expected(conversation=ConversationExpected(trace=msgspec.convert(expected, TraceExpected)))
    trace = traced(steps_in(exported, "r"))
    config = {} if strict is None else {"strict": strict}
    evaluation = build_evaluator(check, config).evaluate(Case("a", None, asked), trace)
    assert isinstance(evaluation, Evaluation)
    return evaluation


def traced(steps: Steps) -> Trace:
    now = datetime.now(UTC)
    trace = Trace("a", "v", now, now, 0, None, Output(), spans=spans_of_steps(steps))
    return msgspec.json.decode(msgspec.json.encode(trace), type=Trace)


class TestReading:
    def test_true_instants_decide_the_order_and_what_has_no_time_comes_last(self) -> None:
        late = {**event("late", 5), "created_at": "2026-03-01T10:00:01+01:00"}
        exported = payload(event("undated", 0) | {"created_at": None}, event("b", 2), late, event("a", 0))
        found = normalize_trace_payload(exported, "r")
        assert [e.id for e in found.events] == ["a", "late", "b", "undated"]

    def test_edges_lead_to_what_is_there_only(self) -> None:
        exported = payload(
            span("p"), span("c", 1, parent_span_id="p"), span("o", 2, parent_span_id="gone"), event("e", 3, span_id="c")
        )
        edges = [(e.kind, e.source_id, e.target_id) for e in normalize_trace_payload(exported, "r").edges]
        assert edges == [("parent_child", "p", "c"), ("span_event", "c", "e")]

    def test_steps_come_back_from_the_spans_of_a_stored_trace(self) -> None:
        error = {"type": "E", "message": "boom", "module": "m"}
        exported = payload(
            span("p", kind="model", iteration=2, attributes={"model": "m"}, error=error, status="error"),
            event("e", 3, span_id="p", content={"x": 1}, attributes={"k": "v"}),
            event("free", 1),
            status="ok",
            metadata={"cost_usd": 1.5},
            error=error,
        )
        steps = steps_in(exported, "r")
        assert steps_of_trace(traced(steps)) == steps

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"runs": []}, "not among the runs"),
            ({"sessions": []}, "its session s is not among"),
            ({"spans": [span("a", kind="robot")]}, "kind: expected one of"),
            ({"spans": [{"id": "a", "run_id": "r", "kind": "tool"}]}, "name is missing"),
            ({"events": [event("a", 0, "odd")]}, "type: expected one of"),
            ({"events": [event("a", 0, created_at="soon") | {"created_at": "soon"}]}, "ISO 8601"),
            ({"spans": 5}, "expected a list"),
        ],
    )
    def test_a_payload_out_of_shape_is_refused(self, wrong: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            normalize_trace_payload({**payload(), **wrong}, "r")

    def test_unknown_keys_of_a_run_are_found_and_missing_content_is_null(self) -> None:
        exported = payload(span("a", atributes={}), event("e", 0), {**span("b"), "run_id": "other", "x": 1})
        assert steps_in(exported, "r").events[0].content is None
        found = [(("spans", 0, "atributes"), 'nothing reads this key; did you mean "attributes"?')]
        assert list(unread_trace_keys(exported, "r")) == found

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["id", "run_id", "kind", "type", "name", "session_id", "started_at"]), inner
                )
            ),
            max_leaves=20,
        ),
        st.sampled_from(["sessions", "runs", "spans", "events"]),
    )
    def test_arbitrary_payloads_are_read_or_refused(self, value: Any, key: str) -> None:
        steps = None
        with suppress(ValueError):
            steps = steps_in({**payload(span("a"), event("e", 1)), key: value}, "r")
        assert steps is None or steps_of_trace(traced(steps)) == steps


class TestRecovery:
    def test_saying_something_later_is_recovery_and_calling_again_is_not(self) -> None:
        failed = span("t", 0, status="error")
        marked, again = event("m", 2, "reasoning"), event("again", 2, "tool_arguments", span_id="u")
        assert graded("bad_tool_failure_recovery", payload(failed, marked)).passed
        lost = graded("bad_tool_failure_recovery", payload(failed, again, span("u", 1)))
        assert lost.detail["failed_tools"][0]["span_id"] == "t"

    def test_later_is_after_the_last_event_of_the_step(self) -> None:
        failed = span("t", 0, error={"message": "x"})
        before, inside = event("m", 1, "reasoning"), event("i", 2, "tool_result", span_id="t")
        assert not graded("bad_tool_failure_recovery", payload(failed, before, inside)).passed


class TestLoops:
    @pytest.mark.parametrize(("calls", "passes"), [(3, True), (4, False)])
    def test_more_than_three_calls_alike_are_a_loop(self, calls: int, passes: bool) -> None:
        events = [
            event(f"e{n}", n, "tool_arguments", span_id="t", content={"arguments": '{"b": 1, "a": 2}'})
            for n in range(calls)
        ]
        assert graded("unnecessary_tool_loop", payload(span("t"), *events)).passed is passes

    def test_numbers_of_another_kind_are_other_arguments(self) -> None:
        events = [event(f"e{n}", n, "tool_arguments", span_id="t", content=n and 1.0) for n in (0, 1)]
        assert graded("unnecessary_tool_loop", payload(span("t"), *events), max_repeated_tool_calls=1).passed


class TestOtherChecks:
    def test_every_change_of_state_must_be_allowed(self) -> None:
        events = [
            event("a", 0, attributes={"state": "new"}),
            event("b", 1, content={"to_state": 2}),
            event("c", 2, attributes={"state": "new"}),
        ]
        allowed = [{"from_state": "new", "to_state": "2"}]
        result = graded("invalid_state_transition", payload(*events), allowed_state_transitions=allowed)
        assert result.detail["states"] == ["new", "2", "new"]
        assert result.detail["invalid_transitions"] == [{"from_state": "2", "to_state": "new"}]

    @pytest.mark.parametrize(
        ("content", "states"),
        [
            ({"to_state": 0}, ["new", "0"]),
            ({"state": 0, "to_state": ""}, ["new", ""]),
            ({"state": 0, "to_state": 1}, ["new", "1"]),
        ],
    )
    def test_a_state_may_be_zero_or_empty(self, content: dict[str, Any], states: list[str]) -> None:
        events = [event("a", 0, attributes={"state": "new"}), event("b", 1, content=content)]
        result = graded("invalid_state_transition", payload(*events), allowed_state_transitions=[])
        assert result.detail["states"] == states

    def test_precision_and_recall_are_of_sets(self) -> None:
        results = [
            event("a", 0, "tool_result", content={"ids": [1, 1], "hits": [{"id": "no"}]}),
            event("b", 1, "tool_result", content=[{"id": "x"}, {"id": None}, "y"]),
        ]
        result = graded(
            "retrieval_precision_recall",
            payload(*results),
            relevant_retrieval_ids=["1", "z"],
            min_retrieval_precision=0.5,
            min_retrieval_recall=0.6,
        )
        assert (result.passed, result.score, result.detail["threshold"]) == (False, 0.5, 0.6)
        assert result.detail["retrieved_ids"] == ["1", "x"]

    def test_a_step_may_not_cost_more_than_its_limit(self) -> None:
        costs = [span(str(n), n, attributes={"cost_usd": cost}) for n, cost in enumerate((0.1, True, "9", 0.3))]
        result = graded("step_cost_attribution", payload(*costs), max_step_cost_usd=0.2)
        assert [over["span_id"] for over in result.detail["over_limit"]] == ["3"]
        assert result.detail["total_cost_usd"] == pytest.approx(0.4)

    def test_a_cost_just_above_its_limit_does_not_look_like_it(self) -> None:
        found = graded(
            "step_cost_attribution", payload(span("a", 0, attributes={"cost_usd": 0.1 + 0.2})), max_step_cost_usd=0.3
        )
        assert found.reason == "a costs 0.30000000000000004 USD; at most 0.3 expected"

    @pytest.mark.parametrize(
        ("mark", "passes"), [("Yes", False), (" yes", True), ("no", True), (1, False), (None, True)]
    )
    def test_marks_of_staleness(self, mark: Any, passes: bool) -> None:
        marked = event("m", 0, "reasoning", attributes={"stale": mark})
        assert graded("stale_context_usage", payload(marked)).passed is passes

    def test_the_first_failed_step_is_the_origin(self) -> None:
        result = graded("failure_origin", payload(span("late", 5, status="error"), span("early", 1, error={})))
        assert result.detail["failure_origin_span"]["id"] == "early"

    @pytest.mark.parametrize(
        "check",
        ["bad_tool_failure_recovery", "unnecessary_tool_loop", "step_cost_attribution", "failure_origin"],
    )
    def test_without_anything_to_look_at_a_check_is_skipped(self, check: str) -> None:
        assert graded(check, payload(error={})).skipped


class TestStricterRules:
    def test_a_failure_that_was_recovered_from_passes(self) -> None:
        exported = payload(span("t", 0, status="error"), event("m", 2, "reasoning"))
        result = graded("failure_origin", exported)
        assert (result.passed, result.detail["warning"]) == (
            False,
            "with strict it would pass: every failure was recovered from",
        )
        assert graded("failure_origin", exported, strict=True).passed

    def test_what_failed_for_good_does_not_pass(self) -> None:
        assert not graded("failure_origin", payload(span("t", 0, status="error")), strict=True).passed
        assert "warning" not in graded("failure_origin", payload(span("t", 0, status="error"))).detail

    def test_retrieving_nothing_is_a_recall_of_nothing(self) -> None:
        asked = {"relevant_retrieval_ids": ["d"], "min_retrieval_recall": 0.5}
        result = graded("retrieval_precision_recall", payload(), **asked)
        assert (result.skipped, result.detail["warning"]) == (
            True,
            "with strict it would fail: precision 1.00, recall 0.00",
        )
        found = graded("retrieval_precision_recall", payload(), strict=True, **asked)
        assert (found.passed, found.score, found.skipped) == (False, 0.0, False)

    def test_positional_arguments_tell_calls_apart(self) -> None:
        events = [event(f"e{n}", n, "tool_arguments", span_id="t", content={"args": [n], "kwargs": {}}) for n in (0, 1)]
        exported = payload(span("t"), *events)
        result = graded("unnecessary_tool_loop", exported, max_repeated_tool_calls=1)
        assert (result.passed, result.detail["warning"][:25]) == (False, "with strict it would pass")
        assert graded("unnecessary_tool_loop", exported, strict=True, max_repeated_tool_calls=1).passed


def test_tools_of_traces_of_other_origin_have_what_they_were_given_and_gave_back_as_events() -> None:
    spans = [Span(str(n), "search", kind="tool", input={"q": 1}, output=[{"id": "d1"}]) for n in range(4)]
    trace = traced(Steps())
    trace.spans = spans
    assert not build_evaluator("unnecessary_tool_loop", {}).evaluate(Case("a", None), trace).passed  # type: ignore[union-attr]


def test_calls_of_traces_without_spans_are_steps_too() -> None:
    call, answer = ToolCall("search", "c1", {"q": 1}), ToolResult("search", {"error": "down"}, "c1")
    trace = traced(Steps())
    trace.tool_calls, trace.tool_results = [call], [answer]
    recovery = build_evaluator("bad_tool_failure_recovery", {})
    assert recovery.evaluate(Case("a", None), msgspec.structs.replace(trace)).detail["failed_tools"]  # type: ignore[union-attr]
    trace.output.final_answer = "The search is down."
    assert recovery.evaluate(Case("a", None), msgspec.structs.replace(trace)).passed  # type: ignore[union-attr]


def test_a_judge_sees_the_steps() -> None:
    asked: list[Any] = []

    def complete(**request: Any) -> Any:
        asked.append(request["messages"][-1]["content"])
        reply = json.dumps({"score": 0.9, "reason": "r", "feedback": "f"})
        return {"choices": [{"message": {"content": reply}}]}

    exported = payload(span("t", attributes={"long": "x" * 5000}), event("e", 1, "reasoning", content="think"))
    result = EvalSuite([HallucinatedToolResultJudge("j", "some-model", completion_fn=complete)]).run(
        [case(says("x"), trace=exported), case(says("x"))]
    )
    first, second = (found.grades[0] for found in result.case_results)
    assert (first.status, first.metadata["trace_context_span_count"], second.status) == ("passed", 1, "skipped")
    shown = json.loads(asked[0])["trace"]
    assert (shown["run"]["name"], shown["events"][0]["content"]) == ("agent", "think")
    assert len(shown["spans"][0]["attributes"]) < 1100
