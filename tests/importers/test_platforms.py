"""Traces that platforms export: Langfuse, LangSmith, MLflow and Braintrust."""

import json

import pytest

from evalwright.errors import InputError
from importers.platforms import ASKED, CALL, OBSERVATIONS, langsmith, lc, observation
from importers.transcripts import imported, written


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


@pytest.mark.parametrize(("failed", "kind"), [({"error": "ValueError: no"}, "exception"), ({}, "broken_trace")])
def test_a_run_that_failed_says_why_though_it_was_given_no_end(tmp_path, failed, kind):
    runs = [langsmith("agent", "chain", None, 0, 1, end_time=None, **failed)]
    _, [case] = imported(tmp_path, "langsmith", written(tmp_path / "x.jsonl", runs))
    error = case["embedded_trace"]["error"]
    assert (error["type"], "ValueError: no" in error["message"]) == (kind, bool(failed))


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
        "lost: line 1: 1 score without a name or a value, such as ids alone",
        "recorded scores do not decide (correct, helpful): the suite asks only for an answer; to judge by one, add a "
        "field_check of metrics.custom.NAME",
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
