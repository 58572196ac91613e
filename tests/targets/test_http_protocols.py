"""Streams of known protocols: what they tell, where they end, and what nothing reads."""

import pytest

from evalwright.errors import InputError, TargetError
from evalwright.targets.http.protocols import PROTOCOLS
from targets.loopback import ask, build, chunked, reply
from targets.protocol_streams import (
    AG_UI,
    AI_SDK,
    ASKED,
    CALL,
    CALLED,
    LANGGRAPH,
    MODES,
    OPENAI_RESPONSES,
    STREAMS,
    named,
    sse,
    streamed,
)

AGENTS = ("ai_sdk", "data stream", "ag_ui", "langgraph")


@pytest.mark.parametrize("name", STREAMS)
def test_a_protocol_tells_text_thinking_calls_and_tokens(name):
    answer = streamed(name, STREAMS[name])
    assert (answer.output.final_answer, answer.output.thinking) == ("It is sunny.", "Look it up.")
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [("c1", "weather", {"city": "Rome"})]
    metrics = answer.metrics
    assert (metrics.token_input, metrics.token_output, metrics.stream_completed) == (30, 12, True)
    assert (answer.error, answer.doubts) == (None, ())


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_tells_its_steps_and_the_results_of_its_calls(name):
    answer = streamed(name, STREAMS[name])
    assert [(message.role, message.content) for message in answer.messages] == [
        ("assistant", "Let me check."),
        ("tool", {"sky": "clear"}),
        ("assistant", "It is sunny."),
    ]
    assert [(result.tool_call_id, result.name) for result in answer.tool_results] == [("c1", "weather")]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_anywhere_says_that_its_end_is_missing(name):
    whole = STREAMS[name]
    for end in range(1, len(whole), 31):
        answer = streamed(name, whole[:end], allow_missing=["final_answer"])
        assert answer.metrics.stream_completed is True or "stream_interrupted" in answer.extra
        assert [call.name for call in answer.tool_calls] in ([], ["weather"])


ERRORS = {
    "ai_sdk": sse({"type": "error", "errorText": "too busy"}, {"type": "finish"}) + b"data: [DONE]\n\n",
    "data stream": b'3:"too busy"\nd:{"finishReason":"error"}\n',
    "ag_ui": sse({"type": "RUN_ERROR", "message": "too busy"}),
    "openai_chat": sse({"error": {"message": "too busy"}}),
    "openai_responses": sse({"type": "response.failed", "response": {"error": {"message": "too busy"}}}),
    "anthropic_messages": b"event: error\n" + sse({"type": "error", "error": {"message": "too busy"}}),
    "langgraph": named([("error", {"error": "RuntimeError", "message": "too busy"})]),
}


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_stream_is_an_error_with_the_text_up_to_it(name, begun):
    before = STREAMS[name].partition(b"sunny.")[0].rpartition(b"\n")[0] + b"\n\n" if begun else b""
    answer = streamed(name, before + ERRORS[name])
    assert "too busy" in answer.error.message
    assert bool(answer.messages) is begun


@pytest.mark.parametrize("mode", MODES)
def test_the_modes_of_langgraph_give_the_same_answer(mode):
    one, other = (streamed("langgraph", named(events)) for events in (LANGGRAPH, MODES[mode]))
    assert (one.output, one.messages, one.tool_calls) == (other.output, other.messages, other.tool_calls)
    assert (other.metrics.token_input, other.metrics.token_output) == (30, 12)


def test_a_state_without_messages_is_the_structured_output():
    answer = streamed("langgraph", named([("values", {"n": 1}), ("values", {"n": 2})]))
    assert answer.output.structured == {"n": 2}


def chunk(id, text, **more):
    return ("messages", [{"type": "AIMessageChunk", "id": id, "content": text, **more}, {}])


def partial(id, text):
    return ("messages/partial", [{"type": "ai", "id": id, "content": text}])


@pytest.mark.parametrize(
    "events",
    [
        [
            chunk("a", ""),
            chunk("b", ""),
            chunk("a", "One "),
            chunk("b", "Two "),
            chunk("a", "more"),
            chunk("b", "more"),
        ],
        [partial("a", "One"), partial("b", "Two"), partial("a", "One more"), partial("b", "Two more")],
    ],
)
def test_messages_of_nodes_that_work_side_by_side_are_kept_apart(events):
    answer = streamed("langgraph", named(events))
    assert [message.content for message in answer.messages] == ["One more", "Two more"]


def test_pieces_of_calls_of_nodes_that_work_side_by_side_are_kept_apart():
    def call(message, args, **more):
        return chunk(message, "", tool_call_chunks=[{"index": 0, "args": args, **more}])

    begun = [call(i, '{"of":', id=f"c{i}", name="find") for i in "ab"]
    answer = streamed("langgraph", named([*begun, *(call(i, f'"{i}"}}') for i in "ab")]))
    assert [(call.id, call.arguments) for call in answer.tool_calls] == [("ca", {"of": "a"}), ("cb", {"of": "b"})]


def test_a_state_may_get_its_messages_later_and_have_them_without_ids():
    said = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": None, "name": "weather", "args": {"city": city}} for city in ("Rome", "Oslo")]},
        {"role": "assistant", "content": "It is sunny."},
    ]  # fmt: skip
    answer = streamed("langgraph", named([("values", {"messages": [], "n": 1}), ("values", {"messages": said})]))
    assert (answer.output.final_answer, answer.output.structured) == ("It is sunny.", None)
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Rome"}, {"city": "Oslo"}]


ASKING = {"__interrupt__": [{"value": "May I?", "id": "i"}]}


@pytest.mark.parametrize(
    ("form", "stream"),
    [
        ("langgraph", named([("values", {"messages": [ASKED, CALLED]}), ("values", ASKING)])),
        ("langgraph", named([("updates", {"model": {"messages": [CALLED]}}), ("updates", ASKING)])),
        ("ag_ui", sse(*AG_UI[:9], {"type": "RUN_FINISHED", "outcome": {"type": "interrupt"}})),
    ],
)
def test_an_agent_that_stops_to_ask_a_person_leaves_a_doubt(form, stream):
    answer = streamed(form, stream)
    assert [doubt.what for doubt in answer.doubts] == ["the agent stopped to ask a person"]
    assert (answer.output.final_answer, answer.output.structured) == ("Let me check.", None)
    assert answer.extra == {"finish_reason": "interrupt"}


def test_events_of_a_subgraph_are_counted_under_one_name():
    events = [("messages|a:1", chunk("x", "no")[1]), ("messages|b:2", chunk("y", "no")[1]), *LANGGRAPH]
    answer = streamed("langgraph", named(events))
    assert (answer.output.final_answer, answer.extra["unread_events"]) == (
        "It is sunny.",
        {"messages of a subgraph": 2},
    )


@pytest.mark.parametrize("id", ["c1", ""])
def test_calls_with_an_id_that_is_used_again_are_calls_of_their_own(id):
    def called(city):
        return {"type": "tool-input-available", "toolCallId": id, "toolName": "weather", "input": {"city": city}}

    def returned(sky):
        return {"type": "tool-output-available", "toolCallId": id, "output": {"sky": sky}}

    steps = [called("Rome"), returned("?"), returned("clear"), called("Oslo"), returned("grey")]
    answer = streamed("ai_sdk", sse(*steps, *AI_SDK[13:]))
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Rome"}, {"city": "Oslo"}]
    assert [result.content for result in answer.tool_results] == [{"sky": "clear"}, {"sky": "grey"}]


def test_tools_that_the_provider_runs_have_results():
    served = [
        {"type": "mcp_call", "id": "m", "name": "find", "arguments": '{"a": 1}', "output": "ok", "error": None},
        {"type": "mcp_call", "id": "n", "name": "find", "arguments": [1], "output": None, "error": "gone"},
        {"type": "file_search_call", "id": "f", "status": "completed", "queries": ["q"], "results": [{"text": "t"}]},
        {"type": "image_generation_call", "id": "g", "result": "iVBORw0KGgo="},
    ]
    events = [{"type": "response.output_item.done", "item": item} for item in served]
    answer = streamed("openai_responses", sse(*events, *OPENAI_RESPONSES[-2:]))
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [
        ("find", {"a": 1}), ("find", {"_raw": [1]}), ("file_search", {"queries": ["q"]}), ("image_generation", {}),
    ]  # fmt: skip
    returned = ["ok", "gone", {"results": [{"text": "t"}]}, "[image]"]
    assert [result.content for result in answer.tool_results] == returned


def test_a_tool_that_failed_is_a_result_and_no_error():
    failed = {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no sky"}
    refused = {"type": "tool-input-error", **CALL, "toolCallId": "c2", "input": "{", "errorText": "bad input"}
    answer = streamed("ai_sdk", sse(*AI_SDK[:10], refused, failed, *AI_SDK[12:]))
    assert [(result.tool_call_id, result.content) for result in answer.tool_results] == [
        ("c2", "bad input"),
        ("c1", "no sky"),
    ]
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Rome"}, {"_raw": "{"}]
    assert answer.error is None


def test_a_step_that_is_repeated_counts_once():
    again = [{"type": "reset-step"}, {"type": "text-delta", "id": "2", "delta": "It is raining."}]
    answer = streamed("ai_sdk", sse(*AI_SDK[:16], *again, *AI_SDK[16:]))
    assert answer.output.final_answer == "It is raining."
    assert len(answer.tool_calls) == 1


def test_an_agent_that_only_sends_snapshots_answers_with_the_last_one():
    said = [
        {"id": "1", "role": "user", "content": "weather?"},
        {"id": "2", "role": "assistant", "toolCalls": [{"id": "c1", "function": {"name": "weather"}}]},
        {"id": "3", "role": "tool", "toolCallId": "c1", "content": "clear"},
        {"id": "4", "role": "assistant", "content": "It is sunny."},
    ]  # fmt: skip
    snapshots = [{"type": "MESSAGES_SNAPSHOT", "messages": said[:n]} for n in (2, 4)]
    answer = streamed("ag_ui", sse(*snapshots, {"type": "RUN_FINISHED"}))
    assert (answer.output.final_answer, [call.name for call in answer.tool_calls]) == ("It is sunny.", ["weather"])
    assert [message.role for message in answer.messages] == ["assistant", "tool", "assistant"]


def test_events_that_nothing_reads_are_counted():
    data = {"type": "data-weather", "data": {"sky": "clear"}}
    assert streamed("ai_sdk", sse(data, *AI_SDK, data)).extra["unread_events"] == {"data-weather": 2}


def test_a_stream_of_another_protocol_is_no_answer():
    with pytest.raises(TargetError, match=r"no answer: there is no text in the .* TEXT_MESSAGE_CONTENT"):
        streamed("ai_sdk", STREAMS["ag_ui"])


@pytest.mark.parametrize("event", ["[1]", "7", '{"type": 7}', '{"type": "text-delta", "delta": [1]}', "plain text"])
def test_an_event_of_a_wrong_shape_is_an_error(event):
    with pytest.raises(TargetError, match="event"):
        streamed("ai_sdk", f"data: {event}\n\n".encode(), STREAMS["ai_sdk"])


def test_a_call_that_is_no_mapping_is_an_error():
    with pytest.raises(TargetError, match="'tool_calls' in an event"):
        streamed("openai_chat", sse({"choices": [{"delta": {"content": "Hi", "tool_calls": ["weather"]}}]}))


@pytest.mark.parametrize("form", ["openai_chat", "sse"])
def test_a_response_that_is_no_stream_is_quoted(form):
    config = {"stream_event_field": "$.t"} if form == "sse" else {}
    with pytest.raises(TargetError, match=r'expected events, found a response that begins with {"error": "too busy"'):
        ask(reply({"error": "too busy"}), response_mapping={}, stream=True, stream_format=form, **config)


def test_an_error_of_a_tool_is_none_of_the_service():
    events = [{**event, "error": "no sky"} if event["type"] == "TOOL_CALL_RESULT" else event for event in AG_UI]
    assert streamed("ag_ui", sse(*events)).error is None


def test_a_stream_without_text_says_how_it_ended():
    with pytest.raises(TargetError, match="no text in the 1 event of the stream, which ends with 'length'"):
        streamed("openai_chat", sse({"choices": [{"delta": {}, "finish_reason": "length"}]}))


SECRET = "sk-" + "Zq9x" * 12
CUT = "x" * 64 + SECRET
HELD = [
    ("ai_sdk", sse({"type": "text-delta", "delta": [CUT]}), {}),
    ("ai_sdk", sse(CUT), {}),
    (
        "openai_chat",
        sse({"choices": [{"delta": {"content": "Hi"}, "finish_reason": f"length:{' ' * 20}{SECRET}"}]}),
        {},
    ),
    ("sse", sse({"t": "Hi", "c": CUT}), {"stream_event_field": "$.t", "stream_tool_call_field": "$.c"}),
]


@pytest.mark.parametrize(("form", "stream", "paths"), HELD)
def test_no_part_of_a_secret_is_in_what_is_said_of_an_event(form, stream, paths):
    config = {"headers": {"Authorization": f"Bearer {SECRET}"}, "stream_format": form, **paths}
    try:
        said = str(ask(chunked(stream), response_mapping={}, stream=True, **config).doubts)
    except TargetError as error:
        said = str(error)
    assert said
    assert SECRET[:6] not in said


PATHS = {
    "ai_sdk": ("$.delta", "reasoning-delta"),
    "ag_ui": ("$.delta", "REASONING_MESSAGE_CONTENT"),
    "openai_chat": ("$.choices[0].delta.content", "tool call"),
    "openai_responses": ("$.delta", "response.reasoning_summary_text.delta"),
    "anthropic_messages": ("$.delta.text", "tool call of content_block_start"),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_that_read_half_of_a_known_protocol_leave_a_doubt_that_names_it(name):
    token, missed = PATHS[name]
    config = {"stream_format": "sse", "stream_event_field": token}
    answer = ask(chunked(STREAMS[name]), response_mapping={}, stream=True, **config)
    [doubt] = answer.doubts
    assert missed in doubt.example
    assert f"stream_format: {name}" in doubt.example


@pytest.mark.parametrize("name", ["ai_sdk", "ag_ui", "openai_chat", "openai_responses", "anthropic_messages"])
def test_paths_do_not_miss_an_error_of_a_known_protocol(name):
    text = b'data: {"t": "Hal"}\n\n'
    config = {"stream_format": "sse", "stream_event_field": "$.t"}
    answer = ask(chunked(text + ERRORS[name]), response_mapping={}, stream=True, **config)
    assert answer.output.final_answer == "Hal"
    assert "too busy" in answer.extra["stream_interrupted"]
    with pytest.raises(TargetError, match="too busy"):
        ask(chunked(ERRORS[name]), response_mapping={}, stream=True, **config)


def test_paths_that_read_the_calls_of_a_protocol_leave_none():
    config = {"stream_event_field": "$.choices[0].delta.content", "stream_tool_call_field": "$..tool_calls"}
    answer = ask(chunked(STREAMS["openai_chat"]), response_mapping={}, stream=True, stream_format="sse", **config)
    assert (len(answer.tool_calls), answer.doubts) == (1, ())


@pytest.mark.parametrize("form", PROTOCOLS)
def test_paths_have_no_effect_in_a_known_protocol(form):
    paths = {"stream_event_field": "$.x", "response_mapping": {"final_answer": "$.x"}}
    with pytest.raises(InputError) as raised:
        build(endpoint="http://localhost:1/", stream=True, stream_format=form, **paths)
    assert [problem.key for problem in raised.value.problems] == [*reversed(paths)]
