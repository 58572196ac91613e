"""Streams and documents of Gemini CLI."""

from __future__ import annotations

import json

import pytest

from importers.transcripts import AT, imported, spoken, written


def test_pieces_of_a_message_are_one_text(tmp_path):
    lines = [
        {"type": "init", "timestamp": AT.format(0), "session_id": "g", "model": "m"},
        {"type": "message", "timestamp": AT.format(0), "role": "user", "content": "go"},
        *({"type": "message", "role": "assistant", "content": part, "delta": True} for part in ("I ", "look.")),
        {"type": "tool_use", "tool_name": "sh", "tool_id": "c", "parameters": {"x": 1}},
        {"type": "tool_result", "tool_id": "c", "status": "error", "error": {"message": "denied"}},
        {"type": "result", "status": "success", "stats": {"input_tokens": 4, "output_tokens": 2, "duration_ms": 9}},
    ]
    _, (case,) = imported(tmp_path, "gemini", written(tmp_path / "out.jsonl", lines))
    trace = case["embedded_trace"]
    assert spoken(trace) == [("user", "go", None), ("assistant", "I look.", "sh"), ("tool", "denied", None)]
    assert (trace["latency_ms"], trace["metrics"]["token_input"], case["id"]) == (9, 4, "g")


@pytest.mark.parametrize(
    ("document", "answer", "failure"),
    [
        ({"error": {"type": "Quota", "message": "none left"}}, None, ("agent_error", "none left")),
        ({"session_id": "g", "response": "Yes", "stats": {}}, "Yes", None),
    ],
)
def test_a_document_of_gemini_is_none_of_its_streams(tmp_path, document, answer, failure):
    (tmp_path / "out.json").write_text(json.dumps(document))
    _, (case,) = imported(tmp_path, "gemini", tmp_path / "out.json")
    trace = case["embedded_trace"]
    error = trace["error"] and (trace["error"]["type"], trace["error"]["message"])
    assert (trace["output"]["final_answer"], error) == (answer, failure)


def test_a_document_of_gemini_counts_the_tokens_of_each_model(tmp_path):
    def counted(**tokens: int) -> dict:
        return {"api": {"totalRequests": 1}, "tokens": tokens}

    models = {
        "pro": counted(input=30, prompt=100, candidates=20, total=158, cached=70, thoughts=30, tool=8),
        "flash": counted(input=10, prompt=10, candidates=2, total=12, cached=0, thoughts=0, tool=0),
    }
    document = {"session_id": "g", "response": "Yes", "stats": {"models": models}}
    (tmp_path / "out.json").write_text(json.dumps(document))
    _, (case,) = imported(tmp_path, "gemini", tmp_path / "out.json")
    metrics = case["embedded_trace"]["metrics"]
    assert [metrics[f"token_{part}"] for part in ("input", "output", "thinking")] == [118, 52, 30]
    assert metrics["custom"] == {"cache_read_tokens": 70}
    assert case["id"] == "g"


@pytest.mark.parametrize(("total", "counts"), [(507, (450, 57, 10)), (497, (450, 47, None))], ids=["thoughts", "none"])
def test_what_a_stream_counts_only_in_its_total_are_thoughts(tmp_path, total, counts):
    stats = {"total_tokens": total, "input_tokens": 450, "output_tokens": 47}
    lines = [
        {"type": "init", "session_id": "g"},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"type": "result", "status": "success", "stats": stats},
    ]
    _, (case,) = imported(tmp_path, "gemini", written(tmp_path / "g.jsonl", lines))
    metrics = case["embedded_trace"]["metrics"]
    assert tuple(metrics[f"token_{part}"] for part in ("input", "output", "thinking")) == counts


def test_what_a_session_of_gemini_counted_before_it_went_on_is_added(tmp_path):
    def part(status):
        stats = {"input_tokens": 4, "output_tokens": 2, "duration_ms": 9}
        said = {"type": "message", "role": "assistant", "content": status}
        return [{"type": "init", "session_id": "g"}, said, {"type": "result", "status": status, "stats": stats}]

    _, (case,) = imported(tmp_path, "gemini", written(tmp_path / "g.jsonl", [*part("error"), *part("success")]))
    trace = case["embedded_trace"]
    assert (trace["metrics"]["token_input"], trace["latency_ms"], trace["error"]) == (8, 18, None)
