"""Traces that MLflow exports."""

import json

import pytest

from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.platforms import ASKED, CALL, mlflow_span
from importers.transcripts import imported, written

CHAT = {
    "spanInputs": {"model": "gpt-4o", "messages": ASKED},
    "spanOutputs": {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}]},
    "llm.model": "gpt-4o", "llm.cost": {"input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3},
}  # fmt: skip
USED = {"chat.tokenUsage": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14, "cache_read_input_tokens": 6}}
MLFLOW = [
    mlflow_span(b"a", None, "agent", "AGENT", 0, spanInputs={"q": "Where is order 7?"}, spanOutputs="In Bonn", **USED),
    mlflow_span(b"b", b"a", "chat", "CHAT_MODEL", 1, **CHAT, **USED),
    mlflow_span(b"c", b"a", "track", "TOOL", 2, spanInputs={"order": 7}, spanOutputs={"place": "Bonn"}),
]
ASSESSED = [
    {"assessment_name": "right", "feedback": {"value": True}, "rationale": "fine", "source": {"source_type": "HUMAN"}},
    {"assessment_name": "right", "feedback": {"value": False}, "valid": False},
    {"assessment_name": "tone", "feedback": {"value": "warm"}, "span_id": (b"b" * 8).hex()},
    {"assessment_name": "answer", "expectation": {"value": "Bonn"}},
    {"assessment_name": "all", "expectation": {"serialized_value": {"value": "[1]"}}},
    {"assessment_name": "issue"},
]


def test_traces_of_mlflow_keep_their_calls_usage_and_feedback(tmp_path):
    info = {"trace_id": "tr-7", "assessments": ASSESSED, "tags": {"tier": "gold", "mlflow.x": "y"},
            "trace_metadata": {"mlflow.trace.session": "s"}}  # fmt: skip
    path = written(tmp_path / "traces.jsonl", [{"info": info, "data": {"spans": MLFLOW}}])
    assert detected(head_of(path)) == "mlflow"
    result, [case] = imported(tmp_path, "mlflow", path)
    assert result.notes[:-1] == ["lost: line 1: 1 assessment without feedback and expectation"]
    assert result.notes[-1].startswith("recorded scores do not decide (right): ")
    assert case["expected"] == {"facts": {"answer": "Bonn", "all": [1]}}
    trace = case["embedded_trace"]
    assert [(message["role"], message["content"]) for message in trace["messages"]] == [
        ("user", "Where is order 7?"), ("assistant", None),
    ]  # fmt: skip
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [("track", {"order": 7})]
    assert (trace["output"]["final_answer"], trace["tool_results"][0]["content"]) == ("In Bonn", {"place": "Bonn"})
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (10, 4, 0.3)
    assert metrics["custom"] == {"cache_read_tokens": 6, "right": 1.0}
    assert [(score["name"], score["passed"], score.get("label")) for score in trace["extra"]["recorded_scores"]] == [
        ("right", True, None), ("tone", None, "warm"),
    ]  # fmt: skip
    assert [(span["kind"], span["attributes"]["step"]) for span in trace["spans"]] == [
        ("agent", "4"), ("llm", "4"), ("tool", "4"),
    ]  # fmt: skip
    assert case["metadata"] == {"session.id": "s", "tier": "gold"}


TOTAL = {"mlflow.trace.tokenUsage": json.dumps(USED["chat.tokenUsage"]), "mlflow.trace.cost": '{"total_cost": 0.5}'}


@pytest.mark.parametrize(
    ("kind", "used", "tokens", "dollars"),
    [
        ("AGENT", USED, 10, None),
        ("AGENT", {}, 10, 0.5),
        ("CHAT_MODEL", {"chat.tokenUsage": {"input_tokens": 7}}, 7, 0.5),
    ],
)
def test_mlflow_may_count_tokens_in_a_model_an_agent_or_the_whole_trace(tmp_path, kind, used, tokens, dollars):
    info = {} if dollars is None else {"trace_metadata": TOTAL}
    spans = [mlflow_span(b"a", None, "shop", "CHAIN", 0), mlflow_span(b"b", b"a", "inner", kind, 1, **used)]
    record = {"info": info, "data": {"spans": spans}}
    _, [case] = imported(tmp_path, "mlflow", written(tmp_path / "traces.jsonl", [record]))
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["cost_usd"]) == (tokens, dollars)


@pytest.mark.parametrize("key", ["state", "status"])
def test_a_trace_of_mlflow_that_its_application_called_failed_is_an_error(tmp_path, key):
    record = {"info": {key: "ERROR"}, "data": {"spans": MLFLOW}}
    _, [case] = imported(tmp_path, "mlflow", written(tmp_path / "traces.jsonl", [record]))
    assert case["embedded_trace"]["error"]["message"] == "the state of the trace is ERROR"


def test_a_trace_of_mlflow_2_that_failed_is_an_error(tmp_path):
    failed = {
        "name": "bad", "context": {"span_id": "0x1f", "trace_id": "0x2f"}, "parent_id": None,
        "start_time": 1_795_940_404_000_000_000, "end_time": 1_795_940_404_500_000_000, "status_code": "ERROR",
        "status_message": "", "attributes": {"mlflow.spanType": '"CHAIN"', "mlflow.spanInputs": '{"x": 1}'},
        "events": [{"name": "exception", "attributes": {"exception.type": "ValueError", "exception.message": "boom"}}],
    }  # fmt: skip
    document = tmp_path / "traces.json"
    document.write_text(json.dumps({"spans": [failed, 5], "request": "{}", "response": None}))
    result, [case] = imported(tmp_path, "mlflow", document)
    assert "1 of 2 spans are no objects" in str(result.notes)
    assert detected(head_of(document)) == "mlflow"
    trace = case["embedded_trace"]
    assert (case["id"], trace["error"]["message"], trace["latency_ms"]) == ("2f", "ValueError: boom", 500)


def test_a_step_of_mlflow_that_returned_nothing_has_no_answer_and_no_result(tmp_path):
    track = mlflow_span(b"2", b"1", "track", "TOOL", 1, spanInputs={"order": 7}, spanOutputs=None)
    failed = {"code": "STATUS_CODE_ERROR", "message": "no such order"}
    agent = mlflow_span(b"1", None, "agent", "AGENT", 0, spanInputs={"q": "?"}, spanOutputs=None)
    file = written(tmp_path / "x.jsonl", [{"info": {}, "data": {"spans": [agent, {**track, "status": failed}]}}])
    _, (case,) = imported(tmp_path, "mlflow", file)
    trace = case["embedded_trace"]
    assert trace["output"]["final_answer"] is None
    assert [result["content"] for result in trace["tool_results"]] == ["no such order"]
