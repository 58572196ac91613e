"""Streams of Copilot CLI, and the sessions that it keeps."""

from __future__ import annotations

import pytest

from importers.transcripts import AT, imported, spoken, written


@pytest.mark.parametrize("shape", ["flat", "events"])
def test_both_shapes_of_copilot_say_the_same(tmp_path, shape):
    flat = [
        {"type": "message", "role": "user", "content": "go"},
        {"type": "tool_use", "id": "c", "name": "sh", "input": {"x": 1}},
        {"type": "tool_result", "id": "c", "output": "ok"},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"type": "result", "usage": {"input_tokens": 3, "output_tokens": 1}},
    ]
    events = [
        {"type": "user.message", "data": {"content": "go"}},
        {"type": "tool.execution_start", "data": {"toolCallId": "c", "toolName": "sh", "arguments": {"x": 1}}},
        {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": True, "result": {"content": "ok"}}},
        {"type": "assistant.message", "data": {"content": "Done."}},
        {"type": "result", "usage": {"inputTokens": 3, "outputTokens": 1}},
    ]
    lines = flat if shape == "flat" else events
    _, (case,) = imported(tmp_path, "copilot", written(tmp_path / "out.jsonl", lines))
    trace = case["embedded_trace"]
    assert [content for _, content, _ in spoken(trace)] == ["go", None, "ok", "Done."]
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"x": 1}]
    assert trace["metrics"]["token_input"] == 3


def kept(second, kind, agent=None, **data):
    """A line of a session that Copilot keeps."""
    return {"type": kind, "data": data, "id": f"e{second}", "timestamp": AT.format(second), **(agent or {})}


def copilot_kept(id, prompt_names_its_agent):
    by = {"agentId": "agent-1"}
    task = {"toolCallId": "t1", "name": "task", "arguments": {"prompt": "Count"}}
    look = {"toolCallId": "t2", "name": "bash", "arguments": '{"command": "ls"}'}
    usage = {"inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 70, "cacheWriteTokens": 5, "reasoningTokens": 3}
    return [
        kept(0, "session.start", sessionId=id, selectedModel="m"),
        kept(1, "system.message", content="Be brief", role="system"), kept(2, "user.message", content="go"),
        kept(3, "assistant.message", content="I look.", reasoningText="Hm", model="m", toolRequests=[task, look],
             outputTokens=9),
        kept(4, "tool.execution_start", toolCallId="t1", toolName="task", arguments=task["arguments"]),
        kept(5, "subagent.started", by, toolCallId="t1", agentName="explore", agentDisplayName="Explorer"),
        kept(6, "user.message", by if prompt_names_its_agent else None, content="Count"),
        kept(7, "assistant.message", *([by] if prompt_names_its_agent else [None]), content="Two.", outputTokens=4,
             **({} if prompt_names_its_agent else {"parentToolCallId": "t1"})),
        kept(8, "tool.execution_complete", toolCallId="t1", success=True, result={"content": "Two."}),
        kept(9, "tool.execution_complete", toolCallId="t2", success=False, error={"message": "denied"}),
        kept(10, "assistant.turn_end", turnId="0"), kept(11, "hologram"),
        kept(12, "assistant.message", content="Done.", outputTokens=2),
        kept(13, "session.shutdown", modelMetrics={"m": {"usage": usage}}),
    ]  # fmt: skip


@pytest.mark.parametrize("prompt_names_its_agent", [True, False])
def test_sessions_that_copilot_keeps_are_named_by_themselves_and_have_their_subagents_apart(
    tmp_path, prompt_names_its_agent
):
    lines = copilot_kept("one", prompt_names_its_agent)
    files = [written(tmp_path / "one" / "events.jsonl", lines),
             written(tmp_path / "two" / "events.jsonl", copilot_kept("two", True)[:-1])]  # fmt: skip
    done, (case, other) = imported(tmp_path, "copilot", *files)
    trace = case["embedded_trace"]
    assert (case["id"], other["id"], case["input"]) == ("one", "two", {"user_message": "go"})
    assert "name: copilot" in (tmp_path / "out" / "eval.yaml").read_text()
    assert spoken(trace) == [
        ("system", "Be brief", None), ("user", "go", None), ("assistant", "I look.", "task"),
        ("assistant", None, "bash"), ("tool", "Two.", None), ("tool", "denied", None), ("assistant", "Done.", None),
    ]  # fmt: skip
    (agent,) = [span for span in trace["spans"] if span["kind"] == "agent"]
    assert (agent["name"], [message["content"] for message in agent["output"]["messages"]]) == (
        "Explorer",
        ["Count", "Two."],
    )
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (100, 20, 3)
    assert metrics["custom"] == {"cache_read_tokens": 70, "cache_write_tokens": 5, "failed_tool_results": 1}
    assert (trace["messages"][2]["thinking"], trace["extra"]["models"]) == ("Hm", ["m"])
    assert other["embedded_trace"]["metrics"]["token_output"] == 15
    assert [note for note in done.notes if "lines of type" in note] == ["lost: lines of type 'hologram': 2"]


def test_a_session_of_copilot_that_was_stopped_is_an_error_unless_it_went_on(tmp_path):
    lines = [*copilot_kept("one", True)[:4], kept(20, "abort", reason="user initiated")]
    _, (case,) = imported(tmp_path, "copilot", written(tmp_path / "a.jsonl", lines))
    assert case["embedded_trace"]["error"]["type"] == "aborted"
    lines.append(kept(21, "assistant.message", content="Again."))
    _, (case,) = imported(tmp_path / "b", "copilot", written(tmp_path / "b.jsonl", lines))
    assert case["embedded_trace"]["error"] is None
