"""What a span says of the call of a model or a tool, in every convention."""

from __future__ import annotations

import json

import pytest

from importers.span_imports import model_call, trace
from importers.spans import exported, span

CONVENTIONS = [
    "messages", "structured messages", "content events", "message events", "indexed prompts", "older indexed prompts",
    "openinference",
]  # fmt: skip


@pytest.mark.parametrize("conventions", CONVENTIONS)
class TestEveryConventionTellsOfAModelCall:
    def test_what_was_asked_and_answered(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert (recorded["input"]["user_message"], recorded["output"]["final_answer"]) == (
            "Where is order 7?",
            "On its way",
        )

    def test_which_tool_was_wanted(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert [(call["name"], call["id"], call["arguments"]) for call in recorded["tool_calls"]] == [
            ("track", "c1", {"order": 7})
        ]

    def test_how_many_tokens_it_took(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert (recorded["metrics"]["token_input"], recorded["metrics"]["token_output"]) == (12, 5)

    def test_that_its_span_is_a_model_call(self, conventions, tmp_path):
        recorded = trace(tmp_path, exported(span(1, "POST /ask"), model_call(conventions)))
        assert [(one["kind"], one["parent_id"]) for one in recorded["spans"]] == [
            ("span", None),
            ("llm", "0000000000000001"),
        ]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "server_tool_call", "id": "1", "name": "find", "server_tool_call": {"q": "x"}},
        {"type": "server_tool_use", "id": "1", "name": "find", "input": {"q": "x"}},
        {"type": "mcp_tool_use", "id": "1", "name": "find", "input": {"q": "x"}},
        {"type": "tool-call", "toolCallId": "1", "toolName": "find", "args": {"q": "x"}},
        {"functionCall": {"id": "1", "name": "find", "args": {"q": "x"}}},
        {"toolUse": {"toolUseId": "1", "name": "find", "input": {"q": "x"}}},
    ],
)
def test_calls_are_read_in_the_form_of_every_provider(part, tmp_path):
    messages = [{"role": "assistant", "parts": [part, {"type": "text", "content": "Found"}]}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(messages)}
    recorded = trace(tmp_path, exported(span(1, "chat", attributes)))
    assert recorded["output"]["final_answer"] == "Found"
    assert [(call["name"], call["id"], call["arguments"]) for call in recorded["tool_calls"]] == [
        ("find", "1", {"q": "x"})
    ]


@pytest.mark.parametrize(
    "content",
    [[{"type": "file", "path": "a.py"}, {"type": "dir", "path": "b"}], [{"image": "cat.png"}], [{"type": "text"}]],
)
@pytest.mark.parametrize("written", [json.dumps, list])
def test_a_result_whose_items_look_like_parts_is_kept_whole(written, content, tmp_path):
    result = {"type": "tool_result", "tool_use_id": "1", "content": written(content)}
    call = {"type": "tool_use", "id": "1", "name": "ls", "input": {}}
    messages = [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(messages)}
    talk = trace(tmp_path, exported(span(1, "chat", attributes)))["messages"]
    assert json.loads(talk[-1]["content"]) == content


@pytest.mark.parametrize("texts", [["On its way"], ["On its", "way"]])
def test_text_that_a_message_says_twice_is_said_once(texts, tmp_path):
    """As OpenInference writes messages of the Agents SDK: whole, and in parts."""
    message = "llm.output_messages.0.message"
    parts = {f"{message}.contents.{i}.message_content.text": text for i, text in enumerate(texts)}
    attributes = {"openinference.span.kind": "LLM", f"{message}.role": "assistant", **parts}
    recorded = trace(tmp_path, exported(span(1, "chat", {**attributes, f"{message}.content": "\n".join(texts)})))
    assert recorded["output"]["final_answer"] == "\n".join(texts)
    (tmp_path / "apart").mkdir()
    apart = trace(tmp_path / "apart", exported(span(1, "chat", {**attributes, f"{message}.content": "So:"})))
    assert apart["output"]["final_answer"] == "\n".join(["So:", *texts])


def test_the_root_tells_input_output_and_latency(tmp_path):
    root = span(
        1, "ask", {"input.value": '{"question": "Why?"}', "output.value": "Because", "openinference.span.kind": "CHAIN"}
    )
    recorded = trace(tmp_path, exported(model_call("openinference"), root))
    assert (recorded["input"], recorded["output"]["final_answer"], recorded["latency_ms"]) == (
        {"user_message": "Why?", "question": "Why?"},
        "Because",
        98,
    )


def test_a_tool_that_was_carried_out_is_one_call_with_its_result(tmp_path):
    tool = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "track", "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"order": 7}', "gen_ai.tool.call.result": '{"at": "Bonn"}',
    }  # fmt: skip
    recorded = trace(
        tmp_path, exported(span(1, "ask"), model_call("messages"), span(3, "execute_tool track", tool, below=1))
    )
    assert ([call["name"] for call in recorded["tool_calls"]], recorded["tool_results"][0]["content"]) == (
        ["track"],
        {"at": "Bonn"},
    )


def test_sums_that_spans_around_repeat_are_counted_once(tmp_path):
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5}
    recorded = trace(tmp_path, exported(span(1, "invoke_agent", agent), model_call("messages")))
    assert recorded["metrics"]["token_input"] == 12


@pytest.mark.parametrize(("given", "tokens"), [(100, 100), (80, 80), (79, 159)])
def test_an_input_that_is_less_than_its_cached_parts_leaves_them_out(tmp_path, given, tokens):
    usage = {"input_tokens": given, "cache_read.input_tokens": 50, "cache_creation.input_tokens": 30}
    call = span(1, "chat", {f"gen_ai.usage.{key}": count for key, count in usage.items()})
    assert trace(tmp_path, exported(call))["metrics"]["token_input"] == tokens


@pytest.mark.parametrize(("count", "tokens"), [("12", 12), ("1.5", None), ("many", None), ("9" * 20, None)])
def test_counts_that_were_exported_as_text_are_read(tmp_path, count, tokens):
    recorded = trace(tmp_path, exported(span(1, "ask", {"gen_ai.usage.input_tokens": count})))
    assert recorded["metrics"]["token_input"] == tokens


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("gen_ai.usage.input_tokens", -1, "expected a number of tokens, found the number -1"),
        ("llm.token_count.completion", "many", "expected a number of tokens, found the string 'many'"),
        ("llm.cost.total", -0.5, "expected a cost in dollars, found the number -0.5"),
    ],
)
def test_usage_that_cannot_be_read_is_told(tmp_path, key, value, told):
    given = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": '["hi"]', key: value}
    recorded = trace(tmp_path, exported(span(1, "chat", given)))
    assert recorded["extra"]["warnings"] == [f"span 0000000000000001 (chat): {key}: {told}"]
