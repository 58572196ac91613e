"""Mirrors hear of a run, and cannot harm it."""

import gzip
import json
import math

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evalwright.errors import InputError
from evalwright.model.plan import EvaluatorSpec, Plugin, Variant
from evalwright.model.trace import Trace
from evalwright.registry import load
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from mirrors.receiver import receiving
from run.conftest import agents  # noqa: F401 - a fixture
from run.suites import suite


def mirrored(tmp_path, *mirrors, inputs=("done", "no"), target="agents:echo", **settings):
    made = suite(tmp_path, list(inputs), target, **settings)
    made.mirrors = [Plugin(kind, config) for kind, config in mirrors]
    return run_suite(made)


def webhook(url, platform="slack", **more):
    return "webhook", {"platform": platform, "url": url, **more}


@pytest.mark.parametrize(("platform", "key"), [("slack", "blocks"), ("discord", "content"), ("linear", "description")])
def test_a_platform_gets_the_summary_in_its_shape(tmp_path, platform, key):
    with receiving() as server:
        outcome = mirrored(tmp_path, webhook(f"{server.url}/hook", platform))
    ((path, _, body),) = server.requests
    assert path == "/hook"
    assert "main: 1/2 passed (50.0%)" in json.dumps(json.loads(body)[key])
    assert outcome.summary.sink_errors == []


def test_markup_of_a_name_means_nothing_to_slack(tmp_path):
    with receiving() as server:
        made = suite(tmp_path, ["done"])
        made.name, made.mirrors = "a<!channel>b", [Plugin(*webhook(server.url))]
        run_suite(made)
    assert b"<!channel>" not in server.requests[0][2]


def test_an_empty_address_turns_it_off(tmp_path):
    assert mirrored(tmp_path, webhook("")).summary.sink_errors == []


@pytest.mark.parametrize("status", [400, 500])
def test_a_webhook_that_fails_is_reported_and_nothing_else_changes(tmp_path, status):
    with receiving(status) as server:
        outcome = mirrored(tmp_path, webhook(f"{server.url}/s3cret"))
    (error,) = outcome.summary.sink_errors
    assert (error["sink"], error["op"], str(status) in error["error"]) == ("webhook", "save_summary", True)
    assert "s3cret" not in json.dumps(error)
    assert outcome.notes == [f"mirror webhook, save_summary: {error['error']}"], "people read the screen"
    assert outcome.exit_code == 1


def test_a_mirror_that_is_not_there_never_stops_a_run(tmp_path):
    outcome = mirrored(
        tmp_path,
        webhook("http://127.0.0.1:9/none", timeout_seconds=1),
        ("otel", {"endpoint": "http://127.0.0.1:9/v1/traces", "timeout_seconds": 1}),
    )
    assert sorted(error["sink"] for error in outcome.summary.sink_errors) == ["otel", "webhook"]
    assert outcome.summary.cells_total == 2


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"platform": "teams", "url": ""}, "platform"),
        ({"platform": ["slack"], "url": ""}, "platform"),
        ({"platform": "slack", "url": "", "headers": "a"}, "headers"),
        ({"platform": "slack", "url": "", "headers": {"Key": "a\nb"}}, "headers.Key"),
        ({"platform": "slack"}, "url"),
        ({"platform": "slack", "url": "http://hooks.example/x"}, "url"),
        ({"platform": "slack", "url": "ftp://x"}, "url"),
        ({"platform": "slack", "url": "", "timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_a_webhook_that_cannot_be_used_is_refused(config, key):
    with pytest.raises(InputError) as raised:
        load("mirrors", "webhook")(config)
    assert [problem.key for problem in raised.value.problems] == [key]


def spans(server):
    seen = []
    for _, headers, body in server.requests:
        given = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        request = ExportTraceServiceRequest.FromString(given)
        seen += [span for r in request.resource_spans for s in r.scope_spans for span in s.spans]
    return seen


def test_a_run_is_exported_as_spans(tmp_path):
    with receiving(body=b"") as server:
        outcome = mirrored(tmp_path, ("otel", {"endpoint": f"{server.url}/v1/traces"}))
    by_name = {span.name: span for span in spans(server)}
    root = by_name["main c0"]
    assert {"main c0", "main c1", "evaluate says_done", f"run {outcome.summary.run_id}"} <= by_name.keys()
    assert by_name["evaluate says_done"].parent_span_id in {root.span_id, by_name["main c1"].span_id}
    assert [event.name for event in root.events] == ["gen_ai.evaluation.result"]
    assert outcome.summary.sink_errors == []
    reader, _ = open_run(outcome.run_dir)
    stored = {trace.case_id: trace.extra["span_id"] for trace in reader.traces(Trace)}
    assert stored["c0"] == root.span_id.hex()


def evaluations(server):
    """The attributes of each evaluation's event, by the case whose span has it."""
    events = [(span.name, event) for span in spans(server) for event in span.events]
    return {
        name: {
            attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
            for attribute in event.attributes
        }
        for name, event in events
    }


RECORDED = {
    "case_id": "c", "variant_name": "v", "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:09Z",
    "latency_ms": 9000, "input": {}, "output": {"final_answer": "no"},
}  # fmt: skip
CALLS = [
    {"id": "1", "name": "m", "kind": "llm", "finished_at": "2026-01-01T00:00:02Z", "attributes": {"response_id": "r1"}},
    {"id": "2", "name": "m", "kind": "llm", "finished_at": "2026-01-01T00:00:03Z", "attributes": {"response_id": "r2"}},
]


@pytest.mark.parametrize(("calls", "told"), [(CALLS, {"gen_ai.response.id": "r2"}), ([], {})])
def test_results_are_events_of_the_genai_conventions(tmp_path, calls, told):
    with receiving(body=b"") as server:
        made = suite(tmp_path, ["done"], variants=[Variant("main", "replay", {})])
        made.cases[0].recorded = {**RECORDED, "spans": calls}
        made.mirrors = [Plugin("otel", {"endpoint": f"{server.url}/v1/traces"})]
        run_suite(made)
    assert evaluations(server)["main c0"] == {
        "gen_ai.evaluation.name": "says_done",
        "gen_ai.evaluation.score.value": 0.0,
        "gen_ai.evaluation.score.label": "fail",
        "gen_ai.evaluation.explanation": "missing: 'done'; in 'no'",
        **told,
    }


def test_steps_of_a_trace_are_exported_below_their_parents(tmp_path):
    started = {"started_at": "2026-01-01T00:00:01Z", "finished_at": "2026-01-01T00:00:03Z"}
    steps = [
        {"id": "1", "name": "agent", **started},
        {"id": "2", "name": "m", "kind": "llm", "parent_id": "1", "attributes": {"input_tokens": 7}, **started},
    ]
    with receiving(body=b"") as server:
        made = suite(tmp_path, ["done"], variants=[Variant("main", "replay", {})])
        made.cases[0].recorded = {**RECORDED, "spans": steps}
        made.mirrors = [Plugin("otel", {"endpoint": f"{server.url}/v1/traces"})]
        run_suite(made)
    by_name = {span.name: span for span in spans(server)}
    assert (by_name["agent"].parent_span_id, by_name["m"].parent_span_id) == (
        by_name["main c0"].span_id,
        by_name["agent"].span_id,
    )
    assert {attribute.key: attribute.value.int_value for attribute in by_name["m"].attributes}[
        "gen_ai.usage.input_tokens"
    ] == 7


def test_an_evaluator_that_failed_is_an_event_with_its_error(tmp_path):
    broken = EvaluatorSpec("broken", "python_code", {"code": "raise ValueError('no')"})
    with receiving(body=b"") as server:
        mirrored(tmp_path, ("otel", {"endpoint": f"{server.url}/v1/traces"}), inputs=["done"], evaluators=[broken])
    evaluation = evaluations(server)["main c0"]
    assert (evaluation["gen_ai.evaluation.score.label"], "error.type" in evaluation) == ("error", True)


@pytest.mark.parametrize("status", [400, 401])
def test_what_a_collector_says_to_refuse_spans_is_not_shown(tmp_path, caplog, status):
    with receiving(status, b"bad key hush \x1b[31m") as server:
        outcome = mirrored(tmp_path, ("otel", {"endpoint": f"{server.url}/v1/traces", "headers": {"key": "hush"}}))
    assert server.requests[0][1]["key"] == "hush"
    assert [error["op"] for error in outcome.summary.sink_errors] == ["save_summary"]
    assert "hush" not in json.dumps(outcome.summary.sink_errors)
    assert caplog.records == []


def test_spans_are_not_taken_along_a_redirect(tmp_path):
    with receiving() as other, receiving(307, headers={"Location": f"{other.url}/v1/traces"}) as server:
        outcome = mirrored(tmp_path, ("otel", {"endpoint": f"{server.url}/v1/traces", "headers": {"key": "hush"}}))
    assert other.requests == []
    assert [error["sink"] for error in outcome.summary.sink_errors] == ["otel"]


def test_an_answer_to_spans_is_not_read_because_it_may_be_endless(tmp_path):
    with receiving(body=b"no gzip", headers={"Content-Encoding": "gzip"}) as server:
        outcome = mirrored(tmp_path, ("otel", {"endpoint": f"{server.url}/v1/traces"}))
    assert (len(server.requests), outcome.summary.sink_errors) == (1, [])


def test_the_applications_own_tracing_is_left_alone(tmp_path):
    from opentelemetry import trace as api

    before = api.get_tracer_provider()
    with receiving(body=b"") as server:
        mirrored(tmp_path, ("otel", {"endpoint": f"{server.url}/v1/traces"}))
    assert api.get_tracer_provider() is before


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({"protocol": "smoke"}, ["protocol"]),
        ({"endpoint": 5}, ["endpoint"]),
        ({"headers": ["a"]}, ["headers"]),
        ({"headers": {"a": 1}}, ["headers.a"]),
        ({"headers": {"a": "of an unset variable "}}, ["headers.a"]),
        ({"timeout_seconds": "soon"}, ["timeout_seconds"]),
        ({"timeout_seconds": math.inf}, ["timeout_seconds"]),
        ({"protocol": "smoke", "endpoint": 5, "timeout_seconds": 0}, ["protocol", "endpoint", "timeout_seconds"]),
    ],
)
def test_every_mistake_of_an_exporter_is_reported_at_its_key(config, keys):
    with pytest.raises(InputError) as raised:
        load("mirrors", "otel")(config)
    assert [problem.key for problem in raised.value.problems] == keys


def test_an_exporter_that_never_started_is_closed_without_an_error():
    mirror = load("mirrors", "otel")({"endpoint": "http://127.0.0.1:9/v1/traces"})
    assert mirror.close() is None
