"""Traces that platforms export: Langfuse, LangSmith, MLflow and Braintrust."""

import json
from base64 import b64encode

import pytest

from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.transcripts import imported, written

AT = "2026-03-04T09:00:{:02}Z"
ASKED = [{"role": "user", "content": "Where is order 7?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"order": 7}'}}


def observation(id: str, kind: str, parent: str | None, start: int, end: int, **more: object) -> dict[str, object]:
    named = {"id": id, "traceId": "t", "type": kind, "name": id, "parentObservationId": parent}
    return {**named, "startTime": AT.format(start), "endTime": AT.format(end), **more}


OBSERVATIONS = [
    observation("agent", "SPAN", None, 0, 4, output="In Bonn"),
    observation(
        "model", "GENERATION", "agent", 1, 2, model="gpt-4o-mini", input=ASKED,
        output={"role": "assistant", "content": None, "tool_calls": [CALL]},
        usageDetails={"input": 10, "input_cached_tokens": 5, "output": 3, "total": 18}, costDetails={"total": 0.01},
    ),
    observation("track", "TOOL", "agent", 2, 3, input={"order": 7}, output={"place": "Bonn"}),
]  # fmt: skip


def test_the_newer_api_of_langfuse_gives_messages_as_text(tmp_path):
    model = observation(
        "model", "GENERATION", None, 0, 4, providedModelName="claude-sonnet-4-5", input=json.dumps(ASKED),
        output=json.dumps({"role": "assistant", "content": "Looking", "tool_calls": [CALL]}), totalCost=0.25,
        usageDetails={"input": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output": 3,
                      "output_reasoning_tokens": 2, "total": 110},
    )  # fmt: skip
    _, (case,) = imported(tmp_path, "langfuse", written(tmp_path / "x.jsonl", [{"data": [model], "meta": {}}]))
    trace = case["embedded_trace"]
    assert [(message["role"], message["content"]) for message in trace["messages"]] == [
        ("user", "Where is order 7?"), ("assistant", "Looking")
    ]  # fmt: skip
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [("track", {"order": 7})]
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (105, 5, 2)
    assert (metrics["custom"], metrics["cost_usd"]) == ({"cache_read_tokens": 90, "cache_write_tokens": 5}, 0.25)
    assert trace["spans"][0]["attributes"]["llm.model_name"] == "claude-sonnet-4-5"


@pytest.mark.parametrize(
    "usage",
    [
        {"usage": {"promptTokens": 15, "completionTokens": 3, "totalTokens": 18, "totalCost": 0.5}},
        {"usage": {"input": 15, "output": 3, "unit": "TOKENS", "inputCost": 0.25, "totalCost": 0.5}},
        {"usageDetails": {"input": 15, "output": 3}, "costDetails": {"input": 0.25, "output": 0.25}},
    ],
)
def test_usage_of_langfuse_is_read_in_all_its_forms(tmp_path, usage):
    model = observation("model", "GENERATION", None, 0, 4, input=ASKED, output="In Bonn", **usage)
    _, [case] = imported(tmp_path, "langfuse", written(tmp_path / "x.jsonl", [model]))
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (15, 3, 0.5)


@pytest.mark.parametrize(
    ("usage", "told", "tokens"),
    [
        ({"usageDetails": {"input": 15, "input_cached": -5}}, "usageDetails.input_cached: ... the number -5", 15),
        ({"usageDetails": {"input": "many"}}, "usageDetails.input: ... the string 'many'", None),
        ({"promptTokens": -15}, "promptTokens: ... the number -15", None),
    ],
)
def test_a_number_of_langfuse_that_cannot_be_one_is_told(tmp_path, usage, told, tokens):
    model = observation("model", "GENERATION", None, 0, 4, input=ASKED, output="In Bonn", **usage)
    done, [case] = imported(tmp_path, "langfuse", written(tmp_path / "x.jsonl", [model]))
    assert case["embedded_trace"]["metrics"]["token_input"] == tokens
    assert done.notes[0] == "lost: line 1: " + told.replace("...", "expected a number that is not negative, found")


def test_usage_of_langfuse_in_another_unit_is_no_number_of_tokens_and_told(tmp_path):
    usage = {"input": 15, "output": 3, "unit": "CHARACTERS", "totalCost": 0.5}
    model = observation("model", "GENERATION", None, 0, 4, input=ASKED, output="In Bonn", usage=usage, promptTokens=15)
    done, [case] = imported(tmp_path, "langfuse", written(tmp_path / "x.jsonl", [model]))
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["cost_usd"]) == (None, 0.5)
    assert done.notes[0] == "lost: line 1: usage: expected the unit TOKENS, found the string 'CHARACTERS'"


def langsmith(id: str, kind: str, parent: str | None, start: int, end: int, **more: object) -> dict[str, object]:
    named = {"id": id, "trace_id": "t", "run_type": kind, "name": id, "parent_run_id": parent}
    return {**named, "start_time": AT.format(start), "end_time": AT.format(end), "inputs": {}, "outputs": {}, **more}


def lc(kind: str, **fields: object) -> dict[str, object]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": fields}


RUNS = [
    langsmith("agent", "chain", None, 0, 4, inputs={"q": "Where is order 7?"}, outputs={"answer": "In Bonn"}),
    langsmith(
        "model", "llm", "agent", 1, 2, inputs={"messages": [[lc("HumanMessage", content="Where is order 7?")]]},
        outputs={"generations": [[{"text": "", "message": lc(
            "AIMessage", content="", tool_calls=[{"name": "track", "args": {"order": 7}, "id": "c1"}])}]]},
        prompt_tokens=15, completion_tokens=3, total_cost="0.01",
    ),
    langsmith("track", "tool", "agent", 2, 3, inputs={"order": 7}, outputs={"place": "Bonn"}),
]  # fmt: skip


@pytest.mark.parametrize(
    "used",
    [
        {"outputs": {"usage_metadata": {"input_tokens": 15, "output_tokens": 3, "total_cost": 0.01}}},
        {"extra": {"metadata": {"usage_metadata": {"input_tokens": 15, "output_tokens": 3, "total_cost": 0.01}}}},
        {"outputs": {"llm_output": {"token_usage": {"prompt_tokens": 15, "completion_tokens": 3}}}, "total_cost": 0.01},
        {
            "outputs": {"generations": [[{"message": lc("AIMessage", usage_metadata={"input_tokens": 15})}]]},
            "completion_tokens": 3,
            "total_cost": 0.01,
        },
    ],
)
def test_usage_of_langsmith_counts_once_wherever_the_call_of_a_model_has_it(tmp_path, used):
    repeated = {key: value for key, value in used.items() if key in ("outputs", "extra")}
    around = langsmith("agent", "chain", None, 0, 4, **repeated)
    after = langsmith("parser", "chain", "agent", 2, 3, **repeated)
    path = tmp_path / "runs.jsonl"
    written(path, [around, langsmith("model", "llm", "agent", 1, 2, **used), after])
    _, [case] = imported(tmp_path, "langsmith", path)
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (15, 3, 0.01)


@pytest.mark.parametrize(
    "used",
    [
        {"outputs": {"usage_metadata": {
            "input_tokens": 15, "input_token_details": {"cache_read": 7, "cache_creation": 2},
            "output_tokens": 3, "output_token_details": {"reasoning": 1},
        }}},
        {
            "prompt_tokens": 15, "prompt_token_details": {"cache_read": 7, "cache_creation": 2},
            "completion_tokens": 3, "completion_token_details": {"reasoning": 1},
        },
    ],
)  # fmt: skip
def test_what_a_cache_read_and_reasoning_are_parts_of_langsmiths_tokens(tmp_path, used):
    path = written(tmp_path / "runs.jsonl", [langsmith("model", "llm", None, 1, 2, inputs={"q": "a"}, **used)])
    _, [case] = imported(tmp_path, "langsmith", path)
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (15, 3, 1)
    assert metrics["custom"] == {"cache_read_tokens": 7, "cache_write_tokens": 2}


@pytest.mark.parametrize("form", ["lines", "list", "whole"])
@pytest.mark.parametrize("format", ["langfuse", "langsmith"])
def test_a_trace_is_one_recording_whatever_its_form(tmp_path, format, form):
    records = OBSERVATIONS if format == "langfuse" else RUNS
    whole = {"id": "t", "name": "shop", "input": ASKED[0]["content"], "output": "In Bonn", "observations": OBSERVATIONS}
    if format == "langsmith":
        whole = {**RUNS[0], "child_runs": RUNS[1:]}
    path = tmp_path / "export.json"
    if form == "lines":
        written(path, records)
    else:
        path.write_text(json.dumps(records if form == "list" else whole))
    _, [case] = imported(tmp_path, format, path)
    trace = case["embedded_trace"]
    assert (case["id"], case["input"]["user_message"]) == ("t", "Where is order 7?")
    assert (trace["output"]["final_answer"], trace["error"], trace["latency_ms"]) == ("In Bonn", None, 4000)
    assert [(call["name"], call["arguments"]) for call in trace["tool_calls"]] == [("track", {"order": 7})]
    assert [result["content"] for result in trace["tool_results"]] == [{"place": "Bonn"}]
    used = trace["metrics"]
    assert (used["token_input"], used["token_output"], used["cost_usd"]) == (15, 3, 0.01)
    kinds = [span["kind"] for span in trace["spans"]]
    assert (kinds.count("llm"), kinds.count("tool")) == (1, 1)


def test_what_failed_at_the_top_is_an_error_and_what_failed_below_is_none(tmp_path):
    failed = [observation("a", "SPAN", None, 0, 1, level="ERROR", statusMessage="no route")]
    inside = [{**one, "traceId": "u"} for one in OBSERVATIONS[:2]]
    inside += [{**OBSERVATIONS[2], "traceId": "u", "level": "ERROR"}]
    _, cases = imported(tmp_path, "langfuse", written(tmp_path / "x.jsonl", failed + inside))
    errors = {case["id"]: case["embedded_trace"]["error"] for case in cases}
    assert errors["u"] is None
    assert "no route" in errors["t"]["message"]
    runs = [langsmith("agent", "chain", None, 0, 1, error="ValueError: no")]
    _, [case] = imported(tmp_path / "smith", "langsmith", written(tmp_path / "y.jsonl", runs))
    assert "ValueError: no" in case["embedded_trace"]["error"]["message"]


@pytest.mark.parametrize("format", ["langfuse", "langsmith"])
def test_damaged_lines_are_told_and_cost_only_themselves(tmp_path, format):
    records = OBSERVATIONS if format == "langfuse" else RUNS
    path = written(tmp_path / "x.jsonl", [*records, 7, {"id": "no run"}])
    path.write_text(path.read_text() + '{"id": \n' + '{"a":' * 5000 + "1" + "}" * 5000 + "\n")
    done, [case] = imported(tmp_path, format, path)
    assert case["embedded_trace"]["output"]["final_answer"] == "In Bonn"
    assert sum(f"line {number}" in note for note in done.notes for number in (4, 5, 6, 7)) == 4
    with pytest.raises(InputError, match="line 1"):
        imported(tmp_path / "none", format, written(tmp_path / "none.jsonl", [{"id": "no run"}]))


def test_scores_of_a_trace_are_kept_as_recorded_and_by_name(tmp_path):
    """A trace that people found wrong must not look as one that nobody judged."""
    scores = [
        {"name": "correct", "value": 0, "dataType": "BOOLEAN", "stringValue": "False", "source": "ANNOTATION"},
        {"name": "helpful", "value": 0.5, "dataType": "NUMERIC", "comment": "so so", "source": "EVAL"},
        {"name": "tone", "value": 2, "dataType": "CATEGORICAL", "stringValue": "rude"},
        {"name": "doubtful", "value": 1},
        {"name": "doubtful", "value": 0},
        {"name": "short", "value": 1, "observationId": "model"},
        {"name": "lost", "value": 1, "observationId": "not exported"},
        "only-an-id",
    ]
    record = {"id": "t", "observations": OBSERVATIONS, "scores": scores}
    done, [case] = imported(tmp_path, "langfuse", written(tmp_path / "export.jsonl", [record]))
    trace = case["embedded_trace"]
    assert trace["metrics"]["custom"] == {"correct": 0, "helpful": 0.5, "cache_read_tokens": 5}
    nothing = {"passed": None, "reason": None}
    assert trace["extra"]["recorded_scores"] == [
        {"name": "correct", "passed": False, "score": 0, "reason": None, "source": "ANNOTATION"},
        {"name": "helpful", "passed": None, "score": 0.5, "reason": "so so", "source": "EVAL"},
        {"name": "tone", "score": None, "label": "rude", **nothing},
        {"name": "doubtful", "score": 1, **nothing},
        {"name": "doubtful", "score": 0, **nothing},
        {"name": "lost", "score": 1, "span": "not exported", **nothing},
        {"name": "short", "score": 1, "span": "model", **nothing},
    ]
    assert [note for note in done.notes if "score" in note] == [
        "lost: line 1: 1 score without a name or a value, such as ids alone"
    ]


def test_feedback_on_runs_is_kept_as_recorded_and_by_name(tmp_path):
    about = {
        "correct": {"n": 2, "avg": 0.5, "values": {}, "comments": ["no", "yes"]},
        "tone": {"n": 3, "avg": None, "values": {"rude": 2, "kind": 1}},
    }
    below = {"short": {"n": 1, "avg": 1.0}}
    records = [{**RUNS[0], "feedback_stats": about}, {**RUNS[1], "feedback_stats": below}, RUNS[2]]
    _, [case] = imported(tmp_path, "langsmith", written(tmp_path / "export.jsonl", records))
    trace = case["embedded_trace"]
    assert trace["metrics"]["custom"] == {"correct": 0.5}
    assert trace["extra"]["recorded_scores"] == [
        {"name": "correct", "passed": None, "score": 0.5, "reason": "no\nyes", "number": 2},
        {"name": "tone", "passed": None, "score": None, "reason": None, "number": 3, "labels": {"rude": 2, "kind": 1}},
        {"name": "short", "passed": None, "score": 1, "reason": None, "number": 1, "span": "model"},
    ]


def mlflow_span(id: bytes, parent: bytes | None, name: str, kind: str, at: int, **more: object) -> dict[str, object]:
    """A span as MLflow 3 writes it: ids in base64, and each attribute as JSON text."""
    start = 1_795_940_404_000_000_000 + at * 10**6
    attributes = {"mlflow.spanType": kind, **{f"mlflow.{key}": value for key, value in more.items()}}
    return {
        "trace_id": b64encode(b"t" * 16).decode(), "span_id": b64encode(id * 8).decode(),
        "parent_span_id": parent and b64encode(parent * 8).decode(), "name": name, "start_time_unix_nano": start,
        "end_time_unix_nano": start + 10**6, "events": [], "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {**{key: json.dumps(value) for key, value in attributes.items()}, "step": "4"}, "links": [],
    }  # fmt: skip


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
    assert result.notes == ["lost: line 1: 1 assessment without feedback and expectation"]
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


def row(id: str, kind: str, parent: str | None, start: float, end: float, **more: object) -> dict[str, object]:
    """A span as Braintrust's SDK logs it."""
    metrics = {"start": 1772614800 + start, "end": 1772614800 + end, **more.pop("metrics", {})}
    about = {"type": kind, "name": id, **({"purpose": "scorer"} if kind == "score" else {})}
    parents = [parent] if parent else None
    return {"id": f"row-{id}", "span_id": id, "root_span_id": "r", "span_parents": parents, "span_attributes": about,
            "metrics": metrics, "created": AT.format(0), "experiment_id": "e", **more}  # fmt: skip


REPLY = [{"finish_reason": "tool_calls", "index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}}]
COUNTED = {"prompt_tokens": 10, "completion_tokens": 5, "tokens": 15, "prompt_cached_tokens": 4, "estimated_cost": 0.5}
EXPERIMENT = [
    row("case", "eval", None, 0, 60, input="Where is order 7?", output="In Bonn", expected="Bonn", metadata={"k": 1}),
    row("task", "task", "case", 0, 3, input="Where is order 7?", output="In Bonn"),
    row("chat", "llm", "task", 1, 2, input=ASKED, output=REPLY, metadata={"model": "m"}, metrics=COUNTED),
    row("track", "tool", "task", 2, 3, input={"order": 7}, output={"place": "Bonn"}),
    row("exact", "score", "case", 3, 60, scores={"exact": 0.5}, metadata={"rationale": "nearly"}),
    {**row("judge", "llm", "exact", 3, 60, metrics={"prompt_tokens": 900}), "span_attributes": {"purpose": "scorer"}},
]


@pytest.mark.parametrize("order", [1, -1])
def test_a_case_of_braintrust_is_what_its_task_did_with_what_the_scorers_found(tmp_path, order):
    path = written(tmp_path / "x.jsonl", [{"events": EXPERIMENT[::order], "cursor": None}])
    assert detected(head_of(path)) == "braintrust"
    _, (case,) = imported(tmp_path, "braintrust", path)
    trace = case["embedded_trace"]
    assert (case["input"], case["expected"]) == ({"user_message": "Where is order 7?"}, {"facts": {"expected": "Bonn"}})
    assert (trace["output"]["final_answer"], trace["latency_ms"]) == ("In Bonn", 3000)
    assert [(call["name"], call["id"], call["arguments"]) for call in trace["tool_calls"]] == [
        ("track", "c1", {"order": 7})
    ]
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (10, 5, 0.5)
    assert metrics["custom"] == {"cache_read_tokens": 4, "exact": 0.5}
    assert trace["extra"]["recorded_scores"] == [{"name": "exact", "passed": None, "score": 0.5, "reason": "nearly"}]
    assert sorted(span["name"] for span in trace["spans"]) == ["chat", "task", "track"]
    assert "warnings" not in trace["extra"]


def test_a_task_of_braintrust_that_failed_is_an_error_with_its_last_line(tmp_path):
    stack = "Traceback (most recent call last):\n  File x\nValueError: no order 7\n"
    rows = [row("case", "eval", None, 0, 2, input="q", error=stack), row("task", "task", "case", 0, 1, error=stack)]
    chat = row("chat", "llm", "task", 0, 1, input=ASKED, output=REPLY)
    _, (case,) = imported(tmp_path, "braintrust", written(tmp_path / "x.jsonl", [*rows, chat]))
    trace = case["embedded_trace"]
    assert (trace["error"]["message"], trace["error"]["stack"]) == ("ValueError: no order 7", stack)
    assert trace["output"]["final_answer"] is None


def test_a_span_that_was_logged_to_braintrust_without_an_experiment_is_a_trace(tmp_path):
    logged = row("answer", "function", None, 0, 1, input={"question": "q"}, output="a", scores={"liked": 1})
    result, (case,) = imported(tmp_path, "braintrust", written(tmp_path / "x.jsonl", [logged, {"span_id": "s"}]))
    assert case["embedded_trace"]["metrics"]["custom"] == {"liked": 1}
    assert any("expected a span with a span_id and a root_span_id" in note for note in result.notes)
