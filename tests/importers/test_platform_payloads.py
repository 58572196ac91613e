"""What the SDKs of models and of agents leave in spans: messages, calls and results, in each of their forms."""

import json
from typing import Any

import pytest

from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.platforms import langsmith, lc, mlflow_span, row
from importers.spans import START, exported, span
from importers.transcripts import imported, spoken, written

ASKED = "Where is order 7?"
CALLED = [
    ("user", ASKED, None), ("assistant", None, "track"), ("tool", "Bonn", None), ("assistant", "In Bonn", None)
]  # fmt: skip
CALL = {"name": "track", "args": {"order": 7}, "id": "c1", "type": "tool_call"}
BLOCK = {"type": "tool_use", "id": "c1", "name": "track", "input": {"order": 7}}


def constructor(kind: str, **fields: object) -> dict[str, object]:
    """A message of LangChain, as it makes it from its class."""
    return lc(f"{kind.title().replace('Ai', 'AI')}Message", type=kind, **fields)


def fields(kind: str, **fields: object) -> dict[str, object]:
    """A message of LangChain, as LangGraph keeps it in its state."""
    return {"type": kind, **fields}


def graph(message: Any) -> list[dict[str, object]]:
    """A run of LangGraph's agent, which called a model of Anthropic's twice and a tool once."""
    human = message("human", content=ASKED)
    call = message("ai", content=[BLOCK], tool_calls=[CALL])
    result = message("tool", content="Bonn", name="track", tool_call_id="c1")
    reply = message("ai", content="In Bonn")

    def model(id: str, start: int, given: list[Any], said: Any) -> dict[str, object]:
        outputs = {"generations": [[{"text": "", "message": said}]]}
        return langsmith(id, "llm", "graph", start, start + 1, inputs={"messages": [given]}, outputs=outputs)

    return [
        langsmith(
            "graph", "chain", None, 0, 9, inputs={"messages": [human]},
            outputs={"messages": [human, call, result, reply]},
        ),
        model("first", 1, [human], call),
        langsmith("track", "tool", "graph", 2, 3, inputs={"input": "{'order': 7}"}, outputs={"output": result}),
        model("second", 4, [human, call, result], reply),
    ]  # fmt: skip


@pytest.mark.parametrize("message", [constructor, fields])
@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
def test_a_run_of_langgraph_has_the_texts_calls_and_results_of_its_messages(tmp_path, message, packed):
    """LangSmith's exports of many runs have inputs and outputs as JSON in a text."""
    runs = graph(message)
    if packed:
        runs = [{**run, **{key: json.dumps(run[key]) for key in ("inputs", "outputs")}} for run in runs]
    _, [case] = imported(tmp_path, "langsmith", written(tmp_path / "runs.jsonl", runs))
    trace = case["embedded_trace"]
    assert (case["input"]["user_message"], trace["output"]["final_answer"]) == (ASKED, "In Bonn")
    assert spoken(trace) == CALLED
    assert [(call["id"], call["arguments"]) for call in trace["tool_calls"]] == [("c1", {"order": 7})]
    assert [(result["name"], result["content"]) for result in trace["tool_results"]] == [("track", "Bonn")]


@pytest.mark.parametrize("form", [constructor, fields])
@pytest.mark.parametrize("whole", [True, False], ids=["whole state", "new messages"])
def test_a_run_of_langgraph_alone_has_the_conversation_of_its_state(tmp_path, form, whole):
    def message(kind: str, **more: object) -> dict[str, object]:
        return form(kind, **more)

    human = message("human", content=ASKED)
    used = {"input_tokens": 10, "output_tokens": 4, "output_token_details": {"reasoning": 1}}
    new = [
        message("ai", content="", tool_calls=[CALL], usage_metadata=used),
        message("tool", content="Bonn", name="track", tool_call_id="c1", status="error"),
        message("ai", content="In Bonn", usage_metadata=used),
    ]
    state = {"messages": [human, *new] if whole else new}
    run = langsmith("graph", "chain", None, 0, 9, inputs={"messages": [human]}, outputs=state)
    _, [case] = imported(tmp_path, "langsmith", written(tmp_path / "runs.jsonl", [run]))
    trace = case["embedded_trace"]
    assert spoken(trace) == [("user", ASKED, None), *CALLED[1:]]
    metrics = trace["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (20, 8, 2)
    assert metrics["custom"] == {"failed_tool_results": 1}


ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASKED}]},
    {"type": "function_call", "call_id": "c1", "name": "track", "arguments": '{"order": 7}'},
    {"type": "function_call_output", "call_id": "c1", "output": "Bonn"},
]
REPLIES = {
    "responses": (
        {"model": "m", "instructions": "be kind", "input": ITEMS},
        {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Bonn"}]}]},
    ),
    "anthropic": (
        {"model": "m", "system": "be kind", "messages": [
            {"role": "user", "content": ASKED}, {"role": "assistant", "content": [BLOCK]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Bonn"}]},
        ]},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "In Bonn"}]},
    ),
    "gemini": (
        {"model": "m", "system": "be kind", "contents": [
            {"role": "user", "parts": [{"text": ASKED}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "track", "args": {"order": 7}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "track", "response": "Bonn"}}]},
        ]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "In Bonn"}]}}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", REPLIES)
@pytest.mark.parametrize("format", ["langsmith", "mlflow"])
def test_a_call_of_a_model_alone_has_its_messages_and_their_last_text_as_its_answer(tmp_path, format, form):
    asked, said = REPLIES[form]
    record: dict[str, Any] = langsmith("call", "llm", None, 0, 1, inputs=asked, outputs=said)
    if format == "mlflow":
        call = mlflow_span(b"a", None, "call", "CHAT_MODEL", 0, spanInputs=asked, spanOutputs=said)
        record = {"info": {}, "data": {"spans": [call]}}
    _, [case] = imported(tmp_path, format, written(tmp_path / "x.jsonl", [record]))
    trace = case["embedded_trace"]
    assert spoken(trace) == [("system", "be kind", None), *CALLED]
    assert (case["input"], trace["output"]["final_answer"]) == ({"user_message": ASKED}, "In Bonn")


def test_items_of_a_response_in_braintrust_are_messages(tmp_path):
    reply = REPLIES["responses"][1]["output"]
    _, [case] = imported(
        tmp_path, "braintrust", written(tmp_path / "x.jsonl", [row("c", "llm", None, 0, 1, input=ITEMS, output=reply)])
    )
    assert spoken(case["embedded_trace"]) == CALLED


def test_a_call_of_openinference_alone_has_the_reply_as_its_answer_and_not_the_whole_response(tmp_path):
    whole = {"choices": [{"message": {"role": "assistant", "content": "In Bonn"}}], "usage": {"prompt_tokens": 3}}
    call = span(1, "ChatCompletion", {
        "openinference.span.kind": "LLM", "input.value": json.dumps({"messages": [], "model": "m"}),
        "output.value": json.dumps(whole), "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": ASKED, "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "In Bonn",
    })  # fmt: skip
    _, [case] = imported(tmp_path, "otlp-json", written(tmp_path / "x.jsonl", [exported(call)]))
    assert (case["input"], case["embedded_trace"]["output"]["final_answer"]) == ({"user_message": ASKED}, "In Bonn")
    assert case["embedded_trace"]["output"]["structured"] is None


def test_runs_of_langsmith_without_counted_tokens_have_none_and_hide_none(tmp_path):
    """Its API writes zeros for them, also below a run with tokens."""
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "total_cost": 0}
    runs = [langsmith("agent", "chain", None, 0, 3, inputs={"q": "a"}, outputs={"a": "b"}, **zeros)]
    _, [case] = imported(tmp_path, "langsmith", written(tmp_path / "none.jsonl", runs))
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (None, None, None)
    model = langsmith("model", "llm", "agent", 1, 2, prompt_tokens=15, completion_tokens=3)
    runs += [model, langsmith("parser", "chain", "model", 1, 2, **zeros)]
    _, [case] = imported(tmp_path / "some", "langsmith", written(tmp_path / "some.jsonl", runs))
    assert case["embedded_trace"]["metrics"]["token_input"] == 15


def test_metadata_tags_and_model_of_a_run_of_langsmith_are_kept(tmp_path):
    extra = {"metadata": {"tier": "gold", "ls_model_name": "m-1"}, "invocation_params": {"model": "m"}}
    run = langsmith("agent", "llm", None, 0, 1, inputs={"q": "a"}, extra=json.dumps(extra), tags=["new"])
    _, [case] = imported(tmp_path, "langsmith", written(tmp_path / "x.jsonl", [run]))
    assert case["metadata"] == {"tier": "gold", "ls_model_name": "m-1", "tags": ["new"]}
    assert case["embedded_trace"]["spans"][0]["attributes"]["llm.model_name"] == "m-1"


def test_runs_that_the_command_line_of_langsmith_exported_keep_what_is_known_about_them(tmp_path):
    run = {
        "run_id": "r", "trace_id": "r", "name": "shop", "run_type": "llm", "parent_run_id": None, "status": "success",
        "start_time": "2026-03-04T09:00:00.123456789Z", "end_time": "2026-03-04T09:00:01.123456789Z",
        "custom_metadata": {"tier": "gold", "ls_model_name": "m-1"}, "tags": ["new"],
        "token_usage": {"prompt_tokens": 15, "completion_tokens": 3}, "costs": {"total_cost": 0.01},
        "inputs": {"messages": [{"role": "user", "content": ASKED}]}, "outputs": {"role": "assistant", "content": "In"},
    }  # fmt: skip
    path = written(tmp_path / "x.jsonl", [run])
    assert detected(head_of(path)) == "langsmith"
    _, [case] = imported(tmp_path, "langsmith", path)
    used = case["embedded_trace"]["metrics"]
    assert (used["token_input"], used["token_output"], used["cost_usd"]) == (15, 3, 0.01)
    assert case["metadata"] == {"tier": "gold", "ls_model_name": "m-1", "tags": ["new"]}
    assert (case["id"], case["embedded_trace"]["latency_ms"]) == ("r", 1000)


AI_SDK = [
    span(1, "ai.generateText", {
        "ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"system": "be kind", "prompt": ASKED}),
        "ai.response.text": "In Bonn", "ai.usage.promptTokens": 35, "ai.usage.completionTokens": 7,
    }),
    span(2, "ai.generateText.doGenerate", {
        "ai.operationId": "ai.generateText.doGenerate", "gen_ai.usage.input_tokens": 15,
        "gen_ai.usage.output_tokens": 3, "gen_ai.request.model": "m",
        "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": ASKED}]}]),
        "ai.response.toolCalls": json.dumps([{"toolCallId": "c1", "toolName": "track", "input": '{"order": 7}'}]),
    }, below=1, endTimeUnixNano=str(START + 3_000_000)),
    span(3, "ai.toolCall", {
        "ai.operationId": "ai.toolCall", "ai.toolCall.name": "track", "ai.toolCall.id": "c1",
        "ai.toolCall.args": '{"order": 7}', "ai.toolCall.result": '"Bonn"',
    }, below=1),
    span(4, "ai.generateText.doGenerate", {
        "ai.operationId": "ai.generateText.doGenerate", "ai.usage.inputTokens": 20, "ai.usage.outputTokens": 4,
        "ai.usage.cachedInputTokens": 6, "ai.response.text": "In Bonn", "ai.prompt.messages": json.dumps([
            {"role": "user", "content": [{"type": "text", "text": ASKED}]},
            {"role": "assistant", "content": [
                {"type": "tool-call", "toolCallId": "c1", "toolName": "track", "input": {"order": 7}}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "track",
                                          "output": {"type": "text", "value": "Bonn"}}]},
        ]),
    }, below=1),
]  # fmt: skip


def test_spans_of_vercels_ai_sdk_are_an_agent_with_models_and_tools(tmp_path):
    _, [case] = imported(tmp_path, "otlp-json", written(tmp_path / "x.jsonl", [exported(*AI_SDK)]))
    trace = case["embedded_trace"]
    assert [one["kind"] for one in trace["spans"]] == ["agent", "llm", "tool", "llm"]
    assert (case["input"]["user_message"], trace["output"]["final_answer"]) == (ASKED, "In Bonn")
    assert spoken(trace) == CALLED
    assert [(call["name"], call["id"], call["arguments"]) for call in trace["tool_calls"]] == [
        ("track", "c1", {"order": 7})
    ]
    assert [result["content"] for result in trace["tool_results"]] == ["Bonn"]
    used = trace["metrics"]
    assert (used["token_input"], used["token_output"], used["custom"]) == (35, 7, {"cache_read_tokens": 6})


@pytest.mark.parametrize(
    ("cached", "written_to_cache", "thought"),
    [
        (
            "ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.inputTokenDetails.cacheWriteTokens",
            "ai.usage.outputTokenDetails.reasoningTokens",
        ),
        (
            "gen_ai.usage.input_tokens.cached", "gen_ai.usage.input_tokens.cache_write",
            "gen_ai.usage.output_tokens.reasoning",
        ),
    ],
)  # fmt: skip
def test_parts_of_tokens_are_counted_by_all_their_names(tmp_path, cached, written_to_cache, thought):
    used = {"ai.usage.inputTokens": 20, "ai.usage.outputTokens": 9, cached: 6, written_to_cache: 3, thought: 4}
    call = span(1, "doGenerate", {"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": "a", **used})
    _, [case] = imported(tmp_path, "otlp-json", written(tmp_path / "x.jsonl", [exported(call)]))
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (20, 9, 4)
    assert metrics["custom"] == {"cache_read_tokens": 6, "cache_write_tokens": 3}


def test_spans_of_pydantic_ai_have_their_answer_tools_and_cost(tmp_path):
    told = [{"role": "user", "parts": [{"type": "text", "content": ASKED}]}]
    spans = [
        span(1, "agent run", {"pydantic_ai.all_messages": json.dumps(told), "final_result": "In Bonn"}),
        span(2, "chat m", {"gen_ai.operation.name": "chat", "operation.cost": 0.5}, below=1),
        span(3, "running tool", {
            "gen_ai.tool.name": "track", "tool_arguments": '{"order": 7}', "tool_response": "Bonn"}, below=1),
    ]  # fmt: skip
    _, [case] = imported(tmp_path, "otlp-json", written(tmp_path / "x.jsonl", [exported(*spans)]))
    trace = case["embedded_trace"]
    assert (case["input"]["user_message"], trace["output"]["final_answer"]) == (ASKED, "In Bonn")
    assert [call["arguments"] for call in trace["tool_calls"]] == [{"order": 7}]
    assert ([result["content"] for result in trace["tool_results"]], trace["metrics"]["cost_usd"]) == (["Bonn"], 0.5)


def test_metadata_and_tags_of_openinference_are_those_of_the_case(tmp_path):
    settings = {"openinference.span.kind": "CHAIN", "metadata": '{"tier": "gold"}', "tag.tags": ["a", "b"]}
    _, [case] = imported(tmp_path, "otlp-json", written(tmp_path / "x.jsonl", [exported(span(1, "shop", settings))]))
    assert case["metadata"] == {"tier": "gold", "tags": ["a", "b"], "service": "shop"}


def stored(kind: str, **more: object) -> dict[str, object]:
    """A message of LangChain, as `messages_to_dict` stores it."""
    return {"type": kind, "data": {"type": kind, **more}}


OF_RESPONSE = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
    {"type": "text", "text": "Looking", "annotations": []},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "track", "arguments": '{"order": 7}'},
]
"""The content of a message of LangChain that a model of the Responses API wrote."""


@pytest.mark.parametrize("content", [[{"type": "text", "text": "Looking"}, BLOCK], OF_RESPONSE], ids=["use", "items"])
@pytest.mark.parametrize("message", [constructor, fields, stored])
def test_the_messages_of_langchain_are_a_conversation(tmp_path, message, content):
    said = [
        message("system", content="be kind"), message("human", content=ASKED),
        message("ai", content=content, tool_calls=[CALL]),
        message("tool", content="Bonn", tool_call_id="c1"), message("ai", content="In Bonn"),
    ]  # fmt: skip
    path = written(tmp_path / "x.jsonl", [{"messages": said}])
    assert detected(head_of(path)) == "openai-messages"
    _, [case] = imported(tmp_path, "openai-messages", path)
    trace = case["embedded_trace"]
    asked, _, *rest = CALLED
    assert spoken(trace) == [("system", "be kind", None), asked, ("assistant", "Looking", "track"), *rest]
    assert [(call["id"], call["arguments"]) for call in trace["tool_calls"]] == [("c1", {"order": 7})]
    assert trace["messages"][2]["thinking"] == ("Hm" if content is OF_RESPONSE else None)


@pytest.mark.parametrize("message", [constructor, fields, stored])
def test_the_tokens_and_failures_in_messages_of_langchain_are_counted(tmp_path, message):
    usage = {
        "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "input_token_details": {"cache_read": 4, "cache_creation": 1}, "output_token_details": {"reasoning": 2},
    }  # fmt: skip
    said = [
        message("human", content=ASKED), message("ai", content="", tool_calls=[CALL], usage_metadata=usage),
        message("tool", content="down", tool_call_id="c1", status="error"),
        message("ai", content="Sorry", usage_metadata={"input_tokens": 20, "output_tokens": 6, "total_tokens": 26}),
        message("ai", content="Bye", usage_metadata={"input_tokens": "many"}),
    ]  # fmt: skip
    done, [case] = imported(tmp_path, "openai-messages", written(tmp_path / "x.jsonl", [{"messages": said}]))
    metrics = case["embedded_trace"]["metrics"]
    assert (metrics["token_input"], metrics["token_output"], metrics["token_thinking"]) == (30, 11, 2)
    assert metrics["custom"] == {"cache_read_tokens": 4, "cache_write_tokens": 1, "failed_tool_results": 1}
    assert done.notes == ["lost: token counts that are not whole numbers: 1"]


def test_what_the_commands_of_a_shell_printed_is_their_result(tmp_path):
    printed = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    output = [
        {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "s", "output": printed},
    ]
    path = written(tmp_path / "x.jsonl", [{"object": "response", "id": "r", "output": output}])
    _, [case] = imported(tmp_path, "openai-responses", path)
    assert case["embedded_trace"]["tool_results"][0]["content"] == {"output": printed}


def test_a_tool_that_failed_has_the_reason_as_its_result_and_is_counted(tmp_path):
    failed = span(
        2, "execute_tool track", {"gen_ai.tool.name": "track", "gen_ai.tool.call.id": "c1"}, below=1,
        status={"code": 2, "message": "timed out"},
    )  # fmt: skip
    root = span(1, "agent", {"input.value": ASKED, "output.value": "Sorry"})
    _, [case] = imported(tmp_path, "otlp-json", written(tmp_path / "x.jsonl", [exported(root, failed)]))
    trace = case["embedded_trace"]
    assert [(result["tool_call_id"], result["content"]) for result in trace["tool_results"]] == [("c1", "timed out")]
    assert (trace["metrics"]["custom"], trace["error"]) == ({"failed_tool_results": 1}, None)
