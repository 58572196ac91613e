"""Stored runs whose cells are judged again: checks that only look at them, and whatever may be in a trace."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from hypothesis import strategies as st

from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plan, RunSettings, Variant
from evalwright.model.protocols import Store
from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import Metrics, Output, ToolCall, ToolResult, Trace, TraceError
from evalwright.run.locations import Place
from evalwright.run.re_evaluation import re_evaluate
from evalwright.session import Session
from evalwright.testing import a_plan, a_trace

SECRET = "hush-hush-4711"
CHECKS = (
    EvaluatorSpec("says", "contains_text", {"all_of": ["Blue"]}),
    EvaluatorSpec("sensitive", "contains_text", {"all_of": ["Blue", "sky"], "case_sensitive": True}),
    EvaluatorSpec("some", "contains_text", {"any_of": ["sky", "sea"], "none_of": ["red"]}),
    EvaluatorSpec("avoids", "contains_text", {"none_of": ["red"]}),
    EvaluatorSpec("of the case", "contains_text"),
    EvaluatorSpec("elsewhere", "contains_text", {"field": "extra.note", "all_of": ["blue"]}),
    EvaluatorSpec("tool", "tool_called", {"tool_name": "look"}),
    EvaluatorSpec("once", "tool_called", {"tool_name": "look", "min_calls": 0, "max_calls": 1}),
    EvaluatorSpec("never", "tool_called", {"tool_name": "look", "must_appear": False}),
    EvaluatorSpec("with", "tool_called", {"tool_name": "look", "args_match": {"n": 1}, "must_succeed": False}),
    EvaluatorSpec("quick", "latency_under", {"max_ms": 100}, called="Quick"),
    EvaluatorSpec("cheap", "cost_under", {"max_usd": 0.5}),
    EvaluatorSpec("soon", "latency", {"threshold": 99}),
    EvaluatorSpec("tokens", "token_usage", {"max_input": 4}),
    EvaluatorSpec("few", "schema_match", {"field": "tool_calls", "schema": {"maxItems": 1}}),
    EvaluatorSpec("shape", "schema_match", {"schema": {"type": "object", "required": ["a"]}}),
    EvaluatorSpec("equal", "exact_match", {"field": "output.final_answer", "expected_from": "answer"}),
    EvaluatorSpec("answered", "answered"),
    EvaluatorSpec("thought", "thinking_present", threshold=0.5),
    EvaluatorSpec("needed", "answered", required=1.0),
    EvaluatorSpec("calls", "tool_calls_match", {"expected": [{"name": "look"}, {"name": "tell"}]}),
    EvaluatorSpec("used", "execution_metrics", {"max_cost_usd": 0.5, "max_tool_calls": 1}),
)
"""The last three leave all cells, or some, to be judged record by record."""

texts = st.sampled_from(
    [
        "blue sky",
        "Blue sky",
        "red and blue",
        "",
        "sea\u2028blue",
        "\u0085",
        "Grün\x01\u2029",
        f"the blue {SECRET}",
        None,
    ]
)
arguments = st.fixed_dictionaries({"n": st.sampled_from([1, 1.0, True, "1", SECRET])})
calls = st.builds(
    ToolCall, st.sampled_from(["look", "tell", f"tell {SECRET}"]), st.sampled_from(["t0", "t1"]), arguments
)
contents: Any = st.sampled_from([{"ok": True}, {"error": "no"}, {"is_error": 1}, "error"])


@st.composite
def traces(draw: st.DrawFn, variants: list[str], trials: int) -> list[Trace]:
    """Cells in any order, some without a trace, some with several."""
    found: list[Trace] = []
    tried: Counter[tuple[int, str, int]] = Counter()
    for _ in range(draw(st.integers(6, 16))):
        cell = index, variant, trial = draw(
            st.tuples(st.sampled_from([0, 1, 2, 0, 1, 2, 3]), st.sampled_from(variants), st.integers(0, trials - 1))
        )
        tried[cell] += 1
        found.append(
            a_trace(
                case_id=f"c{index}" if index < 3 else "c2",
                occurrence=2 if index == 3 else msgspec.UNSET,
                case_index=index,
                variant_name=variant,
                run_id="stored",
                trial=trial,
                attempt=tried[cell],
                latency_ms=draw(st.sampled_from([None, 0, 99, 100, 5000])),
                output=Output(draw(texts), draw(texts), draw(st.sampled_from([None, {}, {"a": 1}]))),
                tool_calls=draw(st.lists(calls, max_size=4)),
                tool_results=[ToolResult("look", draw(contents), f"t{i}") for i in range(draw(st.integers(0, 2)))],
                metrics=Metrics(
                    draw(st.none() | st.integers(0, 9)), None, cost_usd=draw(st.sampled_from([None, 0.25, 1]))
                ),
                error=draw(st.sampled_from([*[None] * 6, TraceError("timeout", "too late")])),
                extra=draw(st.sampled_from([{}, {"note": "blue"}, {"answer_unrecorded": "not recorded"}])),
                group=draw(st.sampled_from([msgspec.UNSET, "g"])),
            )
        )
    return found


@st.composite
def runs(draw: st.DrawFn) -> tuple[Plan, list[Trace]]:
    names = draw(st.sampled_from([["v1"], ["v1"], ["v1", "v2"]]))
    trials = draw(st.sampled_from([1, 1, 2]))
    checks = draw(st.lists(st.sampled_from(CHECKS[:-3]), unique_by=lambda spec: spec.name, min_size=1, max_size=5))
    checks += draw(st.sampled_from([*[[]] * 8, CHECKS[-1:], CHECKS[-2:-1], CHECKS[-3:-2]]))
    known = [spec.name for spec in checks]
    criteria = PassCriteria(
        draw(st.sampled_from([[], known[:1]])),
        draw(st.sampled_from([[], [], known[-2:]])),
        draw(st.sampled_from(["error", "error", "evaluate", "count"])),
        draw(st.sampled_from(["error", "fail"])),
    )
    plan = a_plan(
        run_id="stored",
        variants=[Variant(name, "replay") for name in names],
        evaluators=checks,
        pass_criteria=criteria,
        run=RunSettings(trials=trials),
        gate=draw(st.sampled_from([None, None, _GATE])) if "says" in known else None,
    )
    return plan, draw(traces(names, trials))


_GATE = {"kind": "simple", "metric_key": "says", "aggregation": "avg_score", "op": "gte", "value": 0.5}


def stored(store: Store, plan: Plan, found: list[Trace]) -> str:
    """The traces as a run, whose judgements are still to be made."""
    expected = Expected(answer_should_include=["sky"], answer_should_not_include=["red"], facts={"answer": "blue sky"})
    cases = [
        Case("c0", "in", expected),
        Case("c1", "in"),
        Case("c2", "in", Expected(facts={"answer": None})),
        Case("c2", "in", expected, occurrence=2),
    ]
    stored_plan = msgspec.structs.replace(plan)
    writer = store.create(stored_plan, cases, {})
    for trace in found:
        writer.append_trace(trace)
    writer.close()
    return stored_plan.run_id


def judged_again(place: Place) -> None:
    with Session(owns_process=True, stdout="keep"):  # as the command line does
        re_evaluate(place, processes=1)
