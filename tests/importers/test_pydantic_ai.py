"""Message histories of Pydantic AI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from importers.transcripts import AT, imported, spoken


def request(second: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts), "timestamp": AT.format(second), **more}


def response(second: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "response", "parts": list(parts), "timestamp": AT.format(second), "model_name": "m", **more}


def asked(content: Any = "Where are they?") -> dict[str, Any]:
    return {"part_kind": "user-prompt", "content": content, "timestamp": AT.format(0)}


def said(content: str) -> dict[str, Any]:
    return {"part_kind": "text", "content": content}


def called(call_id: str, args: Any, tool: str = "track") -> dict[str, Any]:
    return {"part_kind": "tool-call", "tool_name": tool, "tool_call_id": call_id, "args": args}


def returned(call_id: str, content: Any, tool: str = "track", **more: Any) -> dict[str, Any]:
    return {"part_kind": "tool-return", "tool_name": tool, "tool_call_id": call_id, "content": content, **more}


def history(folder: Path, *messages: dict[str, Any]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """What the importer says, the recording, and its case."""
    source = folder / "orders.json"
    source.write_text(json.dumps(messages))
    done, (case,) = imported(folder, "pydantic-ai", source)
    return done, case["embedded_trace"], case


def test_a_history_is_a_conversation_with_its_calls_and_results(tmp_path):
    _, trace, case = history(
        tmp_path,
        request(0, asked(), instructions="You track orders."),
        response(
            1,
            {"part_kind": "thinking", "content": "Both."},
            said("I look."),
            called("a", '{"order": 7}'),
            called("b", {"order": 8}),
        ),
        request(2, returned("a", {"city": "Bonn"}), returned("b", [1, 2]), instructions="You track orders."),
        response(3, said("In Bonn.")),
    )
    assert (case["id"], case["input"]) == ("orders", {"user_message": "Where are they?"})
    assert spoken(trace) == [
        ("system", "You track orders.", None),
        ("user", "Where are they?", None),
        ("assistant", "I look.", "track"),
        ("assistant", None, "track"),
        ("tool", {"city": "Bonn"}, None),
        ("tool", "[1,2]", None),
        ("assistant", "In Bonn.", None),
    ]
    assert trace["messages"][2]["thinking"] == "Both."
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"order": 7}, {"order": 8}]
    assert (trace["output"]["final_answer"], trace["latency_ms"]) == ("In Bonn.", 3000)
    assert [(span["kind"], span["parent_id"]) for span in trace["spans"]] == [
        ("llm", None),
        ("tool", "turn-1"),
        ("tool", "turn-1"),
        ("llm", None),
    ]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "output_reasoning_tokens": 2,
                "cache_read_tokens": 4,
                "cache_write_tokens": 0,
                "cost": "0.25",
            },
            (20, 10, 4, 0.5, {"cache_read_tokens": 8}),
        ),
        (
            {"requests": 1, "request_tokens": 10, "response_tokens": 5, "details": {"reasoning_tokens": 2}},
            (20, 10, 4, None, {}),
        ),
        ({"input_tokens": 0, "output_tokens": 0}, (None, None, None, None, {})),
    ],
    ids=["1.0 and later", "before 1.0", "not counted"],
)
def test_tokens_are_the_sum_of_those_that_were_counted(tmp_path, usage, counts):
    _, trace, _ = history(
        tmp_path, request(0, asked()), response(1, said("a"), usage=usage), response(2, said("b"), usage=usage)
    )
    metrics = trace["metrics"]
    keys = ("token_input", "token_output", "token_thinking", "cost_usd", "custom")
    assert tuple(metrics[key] for key in keys) == counts


@pytest.mark.parametrize(
    "part",
    [
        returned("a", "no station", outcome="retried"),
        {"part_kind": "retry-prompt", "content": "no station", "tool_name": "track", "tool_call_id": "a"},
    ],
    ids=["outcome", "retry"],
)
def test_a_call_that_failed_is_counted(tmp_path, part):
    _, trace, _ = history(tmp_path, request(0, asked()), response(1, called("a", {})), request(2, part))
    assert trace["metrics"]["custom"] == {"failed_tool_results": 1}
    assert [(result["name"], result["content"]) for result in trace["tool_results"]] == [("track", "no station")]


def test_the_output_that_held_its_schema_is_the_answer(tmp_path):
    _, trace, _ = history(
        tmp_path,
        request(0, asked()),
        response(1, called("a", {"city": 1}, "final_result")),
        request(2, returned("a", [{"type": "string_type"}], "final_result", outcome="retried")),
        response(3, said("Now."), called("b", {"city": "Bonn"}, "final_result")),
        request(4, returned("b", "Final result processed.", "final_result")),
    )
    assert trace["output"] == {"final_answer": '{"city":"Bonn"}', "thinking": None, "structured": {"city": "Bonn"}}


def test_an_output_that_was_refused_is_no_answer(tmp_path):
    refused = returned("a", [{"type": "string_type"}], "final_result", outcome="retried")
    call = called("a", {"city": 1}, "final_result")
    _, trace, _ = history(tmp_path, request(0, asked()), response(1, call), request(2, refused))
    assert trace["output"]["final_answer"] is None


def test_an_output_without_an_id_that_was_refused_is_no_answer(tmp_path):
    refusal = {"part_kind": "retry-prompt", "content": "no city", "tool_name": "final_result"}
    call = {"part_kind": "tool-call", "tool_name": "final_result", "args": {"town": 1}}
    _, trace, _ = history(tmp_path, request(0, asked()), response(1, call), request(2, refusal))
    assert trace["output"]["structured"] is None


@pytest.mark.parametrize("kind", [{"media_type": "application/pdf"}, {"media_type": "text/plain"}, {}])
def test_an_attachment_of_any_other_kind_is_a_document(tmp_path, kind):
    done, trace, _ = history(tmp_path, request(0, asked([{"kind": "binary", "data": "YQ==", **kind}])), response(1))
    assert (trace["messages"][0]["content"], done.notes) == ("[document]", ["lost: blocks of type 'document': 1"])


def test_what_is_no_text_is_named_and_counted(tmp_path):
    image = {"kind": "image-url", "url": "http://localhost/a.png"}
    picture = {"kind": "binary", "media_type": "image/png", "data": "YQ=="}
    done, trace, _ = history(
        tmp_path,
        request(0, asked(["See", image, picture])),
        response(1, {"part_kind": "file", "content": picture}, {"part_kind": "hologram"}),
    )
    assert spoken(trace) == [("user", "See\n[image]\n[image]", None), ("assistant", "[image]", None)]
    assert done.notes == ["lost: images: 3", "lost: parts of type 'hologram': 1"]


@pytest.mark.parametrize(
    ("more", "stopped"),
    [({"finish_reason": "length"}, "length"), ({"state": "interrupted"}, "interrupted"), ({}, None)],
)
def test_why_the_last_reply_stopped_is_kept(tmp_path, more, stopped):
    _, trace, _ = history(tmp_path, request(0, asked()), response(1, said("In"), **more))
    assert trace["extra"].get("stopped") == stopped


def test_records_have_ids_and_lines_are_records(tmp_path):
    lines = [{"id": "c7", "messages": [request(0, asked()), response(1, said("Yes"))]}, [request(0, asked())]]
    source = tmp_path / "log.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, cases = imported(tmp_path, "pydantic-ai", source)
    assert [case["id"] for case in cases] == ["c7", "log"]


def test_what_is_no_message_is_refused_with_its_place(tmp_path):
    with pytest.raises(InputError) as refused:
        history(tmp_path, request(0, asked()), {"kind": "response"})
    assert "orders.json:1  [1]  expected a message with its parts" in str(refused.value)
