"""Traces are completed by what a platform saw; what fails is noted and the cell goes on."""

import asyncio
import gzip
import json
from datetime import UTC, datetime

import msgspec
import pytest

from enrichers.silent import Silent
from evalwright import built_in
from evalwright.errors import InputError
from evalwright.model.plan import Plugin, Price, Variant
from evalwright.model.trace import Metrics, Output, Trace
from evalwright.registry import load
from evalwright.run.start import run_suite
from evalwright.run.steps.enrich import EnrichersOfPlan
from evalwright.run.stored_run import open_run
from evalwright.testing import a_plan, a_trace
from mirrors.receiver import receiving
from run.conftest import agents  # noqa: F401 - a fixture
from run.suites import suite

SEEN = {
    "usage": {"in": 7, "cost": 0.5},
    "calls": [{"name": "find", "arguments": {"q": 1}}],
    "answer": "from the platform",
}


def enriched(tmp_path, config, kind="otel", target="agents:traced"):
    variant = Variant("main", "python_function", {"target": target}, enrich_trace_from=[Plugin(kind, config)])
    outcome = run_suite(suite(tmp_path, ["done"], variants=[variant]))
    reader, _ = open_run(outcome.run_dir)
    (trace,) = reader.traces(Trace)
    return trace


def quick(url, **merge):
    return {"endpoint": url, "wait_for_ingestion_seconds": 0, "max_attempts": 2, "merge": merge}


@pytest.mark.parametrize(
    ("kind", "path"),
    [("otel", "/api/traces/t-1"), ("langfuse", "/api/public/traces/t-1"), ("phoenix", "/v1/traces/t-1")],
)
def test_the_trace_is_requested_from_the_platform(tmp_path, kind, path):
    with receiving(body=json.dumps(SEEN).encode()) as server:
        trace = enriched(tmp_path, quick(server.url, **{"metrics.token_input": "$.usage.in"}), kind)
    assert (server.requests[0][0], trace.metrics.token_input) == (path, 7)


def test_a_single_tool_call_becomes_a_list(tmp_path):
    with receiving(body=json.dumps(SEEN).encode()) as server:
        trace = enriched(tmp_path, quick(server.url, tool_calls="$.calls[0]"))
    assert [call.name for call in trace.tool_calls] == ["find"]


@pytest.mark.parametrize("merge", [{"metrics.token_input": "$.answer"}, {"tool_calls": "$.usage.in"}])
def test_what_does_not_fit_is_noted_and_changes_nothing(tmp_path, merge):
    with receiving(body=json.dumps(SEEN).encode()) as server:
        trace = enriched(tmp_path, quick(server.url, **merge))
    assert [error["enricher"] for error in trace.extra["enrichment_errors"]] == ["otel"]
    assert (trace.output.final_answer, trace.metrics.token_input, trace.tool_calls) == ("done", None, [])


@pytest.mark.slow("uses the second that a pattern may take")
def test_a_filter_with_a_catastrophic_pattern_is_ended_and_noted(tmp_path):
    seen = {"spans": [{"name": "a" * 40 + "b", "cost": 1}]}
    with receiving(body=json.dumps(seen).encode()) as server:
        trace = enriched(tmp_path, quick(server.url, **{"metrics.cost_usd": "$.spans[?(@.name =~ '(a+)+$')].cost"}))
    assert "took more than 1 s" in trace.extra["enrichment_errors"][0]["error"]


def test_a_platform_that_fails_is_called_as_often_as_allowed(tmp_path):
    with receiving(503) as server:
        trace = enriched(tmp_path, quick(server.url))
    assert len(server.requests) == 2
    assert "503" in trace.extra["enrichment_errors"][0]["error"]


@pytest.mark.parametrize(
    ("text", "times", "packed", "reason"),
    [
        (b"", 1, False, "expected JSON, found an empty body (HTTP 200)"),
        (b"no JSON hush", 1, False, "the response is not valid JSON"),
        (b"[", 100_000, False, "the JSON of the response is nested too deeply"),
        (b" ", 20 * 2**20, True, "the response has more than 10485760 bytes"),
        (b" ", 11 * 2**20, False, "the response has more than 10485760 bytes"),
    ],
    ids=["empty", "no JSON", "deep", "bomb", "large"],
)
def test_a_reply_that_is_no_record_is_noted_without_its_text(tmp_path, text, times, packed, reason):
    body = gzip.compress(text * times) if packed else text * times
    headers = {"Content-Encoding": "gzip"} if packed else {}
    with receiving(body=body, headers=headers) as server:
        trace = enriched(tmp_path, quick(server.url))
    (error,) = trace.extra["enrichment_errors"]
    assert len(server.requests) == 2
    assert f"no record of the trace after 2 attempts: {reason}" in error["error"]
    assert "hush" not in error["error"]


@pytest.mark.parametrize(
    ("trace_id", "path"),
    [
        ("../../admin?x=1#y", "/api/traces/..%2F..%2Fadmin%3Fx%3D1%23y"),
        ("@evil.example/", "/api/traces/%40evil.example%2F"),
    ],
)
def test_an_id_of_a_system_leads_to_no_other_address(trace_id, path):
    with receiving(body=b"{}") as server:
        now = datetime.now(UTC)
        trace = Trace("c", "v", now, now, 0, {}, Output(), extra={"trace_id": trace_id})
        asyncio.run(load("enrichers", "otel")(quick(server.url)).enrich(trace))
    assert [request[0] for request in server.requests] == [path]


def test_a_trace_without_an_id_cannot_be_found(tmp_path):
    trace = enriched(tmp_path, quick("http://127.0.0.1:9"), target="agents:echo")
    assert "trace_id" in trace.extra["enrichment_errors"][0]["error"]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"endpoint": "nowhere"},
        {"endpoint": "http://x", "merge": {"case_id": "$.a"}},
        {"endpoint": "http://x", "merge": {"output": "$["}},
        {"endpoint": "http://x", "merge": {"output": 5}},
        {"endpoint": "http://x", "merge": {"metrics.tokens_in": "$.a"}},
        {"endpoint": "http://x", "merge": {"metrics.cost_usd.total": "$.a"}},
        {"endpoint": "http://x", "merge": {"messages.content": "$.a"}},
        {"endpoint": "http://x", "merge": {"extra.": "$.a"}},
        {"endpoint": "http://x", "merge": ["output"]},
        {"endpoint": "http://x", "max_attempts": "many"},
        {"endpoint": "http://x", "max_attempts": 0},
        {"endpoint": "http://x", "wait_for_ingestion_seconds": -1},
        {"endpoint": "http://x", "headers": ["a"]},
        {"endpoint": "http://x", "headers": {"no name": "a"}},
    ],
)
def test_an_enricher_that_cannot_be_used_is_refused(config):
    with pytest.raises(InputError):
        load("enrichers", "otel")(config)


def test_the_end_of_the_run_names_paths_that_find_nothing_and_counts_failures(tmp_path):
    def warnings(platform, config):
        asked = [Plugin("otel", config)]
        variant = Variant("main", "python_function", {"target": "agents:traced"}, enrich_trace_from=asked)
        outcome = run_suite(suite(tmp_path / platform, ["done", "done"], variants=[variant]))
        return [*outcome.summary.warnings]

    merge = {"metrics.token_input": "$.usage.inn", "metrics.token_output": "$.usage.in"}
    with receiving(body=json.dumps(SEEN).encode()) as server:
        [listed] = warnings("found", quick(server.url, **merge))
    assert listed == "main: merge.metrics.token_input: $.usage.inn found nothing in any of 2 replies"
    with receiving(503) as server:
        [listed] = warnings("down", quick(server.url, **merge))
    assert listed.startswith(
        "main: the enricher otel failed in 2 of 2 replies: LookupError: no record of the trace after 2 attempts"
    )


def test_an_enricher_that_does_not_answer_in_time_is_noted_and_the_next_is_called(monkeypatch):
    monkeypatch.setitem(built_in.KINDS["enrichers"], "silent", "enrichers.silent:Silent")
    monkeypatch.setattr(Silent, "asked", 0)
    twice = [Plugin("silent"), Plugin("silent")]
    plan = a_plan(variants=[Variant("v1", "replay", timeout_seconds=0.01, enrich_trace_from=twice)])
    trace = a_trace()
    asyncio.run(EnrichersOfPlan(plan).enrich(trace))
    assert Silent.asked == 2
    assert "half" not in trace.extra
    assert [note["error"] for note in trace.extra["enrichment_errors"]] == ["no reply within 0.01 seconds"] * 2


CONVERSATION = [
    {"role": "user", "content": "find it"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": '{"q": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "there"},
]


def completed(record, merge, **parts):
    """A trace after a platform's record has been merged into it, and the doubts about that."""
    with receiving(body=json.dumps(record).encode()) as server:
        now = datetime.now(UTC)
        trace = Trace("c", "v1", now, now, 0, {}, Output(), **{"extra": {"trace_id": "t-1"}, **parts})
        plugin = Plugin("otel", quick(server.url, **merge))
        plan = a_plan(variants=[Variant("v1", "replay", enrich_trace_from=[plugin])])
        doubts = asyncio.run(EnrichersOfPlan(plan).enrich(trace))
    return trace, doubts


def test_tool_calls_in_merged_messages_are_calls_of_the_trace():
    trace, _ = completed({"messages": CONVERSATION}, {"messages": "$.messages"})
    assert [(call.name, call.arguments) for call in trace.tool_calls] == [("find", {"q": 1})]
    assert [(result.name, result.content) for result in trace.tool_results] == [("find", "there")]


def test_a_call_that_could_not_be_seen_is_a_failure():
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "find", "input": {}}]}
    trace, _ = completed({"messages": [call]}, {"messages": "$.messages"})
    assert "in a form that nothing reads" in trace.extra["enrichment_errors"][0]["error"]
    trace, _ = completed({"calls": [{"arguments": {}}]}, {"tool_calls": "$.calls"})
    assert "a call has no name" in trace.extra["enrichment_errors"][0]["error"]


def test_a_null_replaces_nothing_and_is_noted():
    trace, doubts = completed(
        {"usage": {"in": None}}, {"metrics.token_input": "$.usage.in"}, metrics=Metrics(token_input=3)
    )
    assert trace.metrics.token_input == 3
    assert trace.extra["enrichment_warnings"] == [
        {"target": "metrics.token_input", "reason": "$.usage.in found nothing"}
    ]
    assert [doubt.what for doubt in doubts] == ["merge.metrics.token_input: $.usage.in found nothing"]


def test_a_mapping_completes_the_one_of_the_trace():
    merge = {"extra": "$.extra", "metrics": "$.metrics"}
    record = {"extra": {"user": "u"}, "metrics": {"token_output": 2}}
    trace, _ = completed(record, merge, metrics=Metrics(token_input=3))
    assert trace.extra == {"trace_id": "t-1", "user": "u"}
    assert (trace.metrics.token_input, trace.metrics.token_output) == (3, 2)


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [({"tokens": 5}, "metrics has no tokens (there are: token_input"), ({"cost_usd": -1}, "expected a finite number")],
)
def test_numbers_that_no_metric_can_hold_are_a_failure(metrics, reason):
    trace, _ = completed({"metrics": metrics}, {"metrics": "$.metrics"})
    assert reason in trace.extra["enrichment_errors"][0]["error"]


def test_an_enricher_that_takes_nothing_over_is_doubted():
    _, doubts = completed({}, {})
    assert [doubt.what for doubt in doubts] == ["merge is empty: nothing of the platform's record was taken over"]


def test_tokens_that_a_platform_counted_have_a_price(tmp_path):
    with receiving(body=json.dumps(SEEN).encode()) as server:
        enricher = Plugin("otel", quick(server.url, **{"metrics.token_input": "$.usage.in"}))
        agent, named = {"target": "agents:traced"}, {"model": "m"}
        variant = Variant("main", "python_function", agent, named, enrich_trace_from=[enricher])
        plan = msgspec.structs.replace(suite(tmp_path, ["done"], variants=[variant]), prices={"m": Price(1_000_000, 0)})
        reader, _ = open_run(run_suite(plan).run_dir)
        (trace,) = reader.traces(Trace)
    assert trace.metrics.cost_usd == 7


@pytest.mark.parametrize("status", [301, 401, 403, 405])
def test_a_platform_that_refuses_is_called_once(tmp_path, status):
    with receiving(status) as server:
        trace = enriched(tmp_path, quick(server.url))
    assert len(server.requests) == 1
    assert f"HTTP status {status}" in trace.extra["enrichment_errors"][0]["error"]


def test_an_endpoint_may_be_the_whole_address_with_a_place_for_the_id(tmp_path):
    with receiving(body=json.dumps(SEEN).encode()) as server:
        enriched(tmp_path, quick(f"{server.url}/jaeger/{{trace_id}}?raw=1"))
    assert server.requests[0][0] == "/jaeger/t-1?raw=1"


def test_an_authorization_header_of_the_configuration_is_the_one_that_is_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("PHOENIX_API_KEY", "of-the-environment")
    with receiving(body=json.dumps(SEEN).encode()) as server:
        enriched(tmp_path, {**quick(server.url), "headers": {"authorization": "Token of-the-suite"}}, "phoenix")
    sent = {name.lower(): value for name, value in server.requests[0][1].items()}
    assert sent["authorization"] == "Token of-the-suite"
