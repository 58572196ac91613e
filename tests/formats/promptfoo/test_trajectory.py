"""Assertions on what was traced while a provider ran: tools, steps and spans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from evaluators.scripted_models import Scripted, case, judged, says, trace
from evalwright.errors import EvaluatorError
from evalwright.model.trace import Span, ToolCall
from formats.promptfoo.runs import run

AGENT = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

trace.set_tracer_provider(TracerProvider())
tracer = trace.get_tracer("agent")


def call_api(prompt, options, context):
    with tracer.start_as_current_span("agent.run"):
        for name, arguments in (("search_orders", '{"id": "7", "page": 1}'), ("refund", '{"id": "7"}')):
            with tracer.start_as_current_span(f"execute_tool {name}") as span:
                span.set_attribute("gen_ai.tool.name", name)
                span.set_attribute("gen_ai.tool.call.arguments", arguments)
    return {"output": "done"}


def silent(prompt, options, context):
    return {"output": "done"}
"""
SPANS = "agent.run,execute_tool search_orders,execute_tool refund"
IN_PYTHON = (
    "all(span['endTime'] >= span['startTime'] > 0 for span in context['trace']['spans'])"
    " and context['trace']['spans'][1]['attributes']['gen_ai.tool.name'] == 'search_orders'"
    " and context['trace']['spans'][1]['parentSpanId'] == context['trace']['spans'][0]['spanId']"
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def tool(name, arguments, at=0):
    known = {"tool.name": name, "tool.arguments": arguments}
    return span(name, at, kind="tool", attributes=known)


def span(name, at=0, took=10, **keys):
    begun = START + timedelta(milliseconds=at)
    return Span(f"{name}{at}", name, started_at=begun, finished_at=begun + timedelta(milliseconds=took), **keys)


CALLS = (tool("search_orders", '{"id": "7", "page": 1}', 20), span("plan"), tool("refund", '{"id": "7"}', 40))


def status(kind, value, spans=CALLS, calls=()):
    on = msgspec.structs.replace(trace("done"), spans=[*spans], tool_calls=[*calls], extra={"promptfoo": {"vars": {}}})
    return judged("promptfoo", {"assertion": {"type": kind, "value": value}}, Scripted(), on=on, of=case()).passed


def test_spans_of_a_provider_in_python_are_judged(tmp_path):
    asserts = [
        {"type": "trajectory:tool-used", "value": ["search_*", "refund"]},
        {"type": "not-trajectory:tool-used", "value": "delete_*"},
        {"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["search_orders", "refund"]}},
        {"type": "trajectory:tool-args-match", "value": {"name": "search_orders", "args": {"id": "7"}}},
        {"type": "trajectory:step-count", "value": {"type": "tool", "max": 2}},
        {"type": "trace-span-count", "value": {"pattern": "agent.*", "min": 1, "max": 1}},
        {"type": "trace-span-duration", "value": {"pattern": "agent.*", "max": 60000}},
        {"type": "trace-error-spans"},
        {"type": "javascript", "value": "context.trace.spans.map((span) => span.name).join() === context.vars.spans"},
        {"type": "python", "value": IN_PYTHON},
    ]
    config = {"prompts": ["{{q}}"], "tests": [{"vars": {"q": "a", "spans": SPANS}, "assert": asserts}]}
    providers = ["python:agent.py", "python:agent.py:silent"]
    result = run(tmp_path, {**config, "providers": providers}, agent__py=AGENT)
    assert result.statuses == ["pass", "error"]
    assert "nothing was traced" in str(next(row.error for row in result.rows if row.status == "error"))


@pytest.mark.parametrize(
    ("kind", "value", "passed"),
    [
        ("trajectory:tool-used", "REFUND", True),
        ("trajectory:tool-used", ["refund", "delete"], False),
        ("not-trajectory:tool-used", ["refund", "delete"], False),
        ("trajectory:tool-used", {"pattern": "*", "max": 1}, False),
        ("not-trajectory:tool-used", {"name": "refund", "min": 2}, True),
        ("trajectory:tool-used", "plan", False),
        ("trajectory:tool-sequence", ["search_orders", "refund"], True),
        ("trajectory:tool-sequence", ["refund", "search_orders"], False),
        ("not-trajectory:tool-sequence", [{"name": "refund"}, {"name": "search_orders"}], True),
        ("trajectory:tool-sequence", {"mode": "exact", "steps": ["refund"]}, False),
        ("trajectory:tool-args-match", {"name": "search_orders", "args": {"id": "7"}, "mode": "exact"}, False),
        (
            "trajectory:tool-args-match",
            {"name": "search_orders", "args": {"id": "7"}, "mode": "exact", "ignore": "pa*"},
            True,
        ),
        (
            "trajectory:tool-args-match",
            {"name": "search_orders", "args": {"id": "7"}, "mode": "exact", "defaults": {"page": 1}},
            True,
        ),
        ("trajectory:tool-args-match", {"name": "search_orders", "args": {"page": True}}, False),
        ("trajectory:tool-args-match", {"name": "delete", "args": {}}, False),
        ("trajectory:step-count", {"min": 4}, False),
        ("trajectory:step-count", {"type": ["span", "message"], "pattern": "pl?n", "min": 1}, True),
        ("trace-span-count", {"pattern": "*", "max": 2}, False),
        ("not-trace-span-count", {"pattern": "*", "min": 1}, True),
        ("trace-span-duration", {"max": 9}, False),
        ("trace-span-duration", {"max": 9, "pattern": "nothing"}, True),
    ],
)
def test_calls_and_steps_are_counted_and_compared(kind, value, passed):
    assert status(kind, value) is passed


@pytest.mark.parametrize(
    ("value", "passed"), [(None, False), (1, True), ({"max_percentage": 50}, True), ({"pattern": "good"}, True)]
)
def test_spans_that_failed_are_counted(value, passed):
    spans = [span("bad", attributes={"http.status_code": 500}), span("good")]
    assert status("trace-error-spans", value, spans) is passed


def test_the_slowest_spans_may_be_left_out():
    spans = [span("step", at, took) for at, took in ((0, 10), (1, 20), (2, 500))]
    assert status("trace-span-duration", {"max": 20, "percentile": 60}, spans)
    assert not status("trace-span-duration", {"max": 20, "percentile": 95}, spans)


@pytest.mark.parametrize(
    ("attributes", "failed"),
    [
        ({"http.status_code": " 404 "}, True),
        ({"http.response.status_code": 404}, False),
        ({"failed": ["x"]}, True),
        ({"failed": 1}, False),
        ({"otel.status_code": "ERROR"}, True),
        ({"status.code": "error"}, False),
    ],
)
def test_a_span_has_failed_by_its_attributes(attributes, failed):
    assert status("trace-error-spans", None, [span("call", attributes=attributes)]) is not failed


@pytest.mark.parametrize(
    ("name", "attributes", "step"),
    [
        ("call", {"agent.toolName": "refund"}, "tool:refund"),
        ("call", {"x.tool_name": "refund"}, "tool:refund"),
        ("call", {"mcp.tool.server": '{"a": 1}'}, "span:call"),
        ("call", {"tool.result": "refund"}, "span:call"),
        ("mcp github/list_issues", {}, "tool:list_issues"),
        ("exec git status", {}, "command:git"),
        ("call", {"shell_command": "git status"}, "command:git status"),
        ("call", {"tool.name": "shell", "args": '{"commands": ["ls", 5]}'}, "command:ls; 5"),
        ("call", {"tool.name": "refund", "command": "ls"}, "tool:refund"),
        ("find orders", {"query": "cats"}, "search:cats"),
        ("call", {"query": "cats"}, "span:call"),
        ('search "cats"', {}, "search:cats"),
    ],
)
def test_a_step_is_known_by_what_its_span_says(name, attributes, step):
    kind, _, called = step.partition(":")
    value = {"type": kind, "name": called, "min": 1}
    assert status("trajectory:step-count", value, [span(name, attributes=attributes)])


@pytest.mark.parametrize("key", ["codex.mcp.args", "gen_ai.tool.input", "call.arguments", "x.input.y"])
def test_the_arguments_of_a_call_are_found_under_many_names(key):
    called = span("call", attributes={"tool.name": "refund", "input.error": "{}", key: ' {"id": "7"} '})
    value = {"name": "refund", "args": {"id": "7"}, "mode": "exact"}
    assert status("trajectory:tool-args-match", value, [called])


def test_calls_that_models_requested_count_if_there_are_no_spans_of_tools():
    assert status("trajectory:tool-used", "refund", [span("plan")], [ToolCall("refund", None, {"id": "7"})])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("trajectory:tool-used", []),
        ("trajectory:tool-used", {"min": 1}),
        ("trajectory:tool-sequence", {"steps": []}),
        ("trajectory:tool-sequence", {"steps": [{}]}),
        ("trajectory:tool-sequence", ["refund", ""]),
        ("trajectory:tool-args-match", {"name": "refund"}),
        ("trajectory:tool-args-match", {"name": "refund", "args": {}, "mode": "loose"}),
        ("trajectory:step-count", {"type": "tool"}),
        ("trace-span-count", {"min": 1}),
        ("trace-span-duration", {}),
        ("trajectory:goal-success", {}),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error(kind, value):
    for spans in (CALLS, [span("plan")]):
        with pytest.raises(EvaluatorError, match=kind):
            status(kind, value, spans)


def test_a_judge_is_shown_the_steps_and_the_goal():
    on = msgspec.structs.replace(trace("done"), spans=[*CALLS], extra={"promptfoo": {"vars": {}, "prompt": "p"}})
    for kind, passed, score in (("trajectory:goal-success", True, 0.8), ("not-trajectory:goal-success", False, 0)):
        models = Scripted(says('{"pass": true, "score": 0.8, "reason": "refunded"}'))
        config = {"assertion": {"type": kind, "value": "Refund order 7", "provider": {"id": "openai:m", "label": "m"}}}
        evaluation = judged("promptfoo", config, models, on=on, of=case())
        assert (evaluation.passed, evaluation.score) == (passed, score)
        assert "1. span:plan\n2. tool:search_orders\n3. tool:refund" in models.prompt
        assert "Refund order 7" in models.prompt
