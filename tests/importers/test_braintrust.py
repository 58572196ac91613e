"""Experiments and logs that Braintrust exports."""

import pytest

from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.platforms import ASKED, CALL, row
from importers.transcripts import imported, written

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


def test_what_the_span_of_a_case_says_of_it_is_kept_with_its_task(tmp_path):
    found = {"exact": 0.5}
    case = row("case", "eval", None, 0, 60, input="q", scores=found, metadata={"k": 1}, tags=["hard"])
    rows = [case, row("task", "task", "case", 0, 3, output="a"), row("exact", "score", "case", 3, 60, scores=found)]
    _, (imported_case,) = imported(tmp_path, "braintrust", written(tmp_path / "x.jsonl", rows))
    assert imported_case["metadata"] == {"k": 1, "tags": ["hard"]}
    assert len(imported_case["embedded_trace"]["extra"]["recorded_scores"]) == 1


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
