"""What an http system is sent, what becomes of its response, and which configurations are refused."""

import asyncio
import json

import pytest

from evalwright.errors import TargetError
from evalwright.model.snapshot import Case
from evalwright.model.trace import Doubt
from targets.loopback import CASE, ask, chunked, opened, reply, sent, serving


def body_of(**config):
    return json.loads(sent(**config)["body"])


def mapped(document, **mapping):
    mapping = {name.replace("__", "."): path for name, path in mapping.items()}
    return ask(reply(document), response_mapping=mapping)


def test_the_input_overlays_the_body():
    assert body_of(body={"model": "m", "n": 1}) == {"model": "m", "n": 3, "user_message": 'say "hi"'}


def test_a_template_overlays_the_body_instead_of_the_input():
    template = '{"id": "{{ case_id }}", "q": {{ input.user_message | json }}, "k": {{ case.metadata.k }}}'
    expected = {"model": "m", "id": "c1", "q": 'say "hi"', "k": [1, 2]}
    assert body_of(body={"model": "m", "id": "other"}, request_template=template) == expected


@pytest.mark.parametrize("rendered", [[3, 1], [{"n": 3}], "3", 3, True, None])
def test_a_template_without_a_body_may_render_any_json(rendered):
    assert body_of(request_template=json.dumps(rendered).replace("3", "{{ input.n }}")) == rendered


def test_method_query_and_headers_are_sent():
    request = sent(
        endpoint="http://localhost:{port}/ask?a=1&b=2",
        method="put",
        query_params={"b": "x y", "n": 5},
        headers={"x-key": "k1", "content-type": "application/vnd.x+json"},
    )
    assert (request["method"], request["path"]) == ("PUT", "/ask?a=1&b=x+y&n=5")
    assert request["headers"]["x-key"] == "k1"
    assert request["headers"]["content-type"] == "application/vnd.x+json"


def test_texts_beyond_ascii_and_lone_surrogates_are_sent_as_json():
    case = Case(id="c", input={"t": "ä\u2028\ud800"})
    assert json.loads(sent(case=case)["body"]) == {"t": "ä\u2028\ud800"}


@pytest.mark.parametrize("provider", ["openai_chat", "anthropic_messages", "deepseek_r1"])
def test_chat_presets_send_the_user_message(provider):
    expected = {"model": "m", "messages": [{"role": "user", "content": 'say "hi"'}]}
    assert body_of(provider=provider, body={"model": "m"}) == expected


@pytest.mark.parametrize("provider", ["langserve_invoke", "simple"])
def test_plain_presets_wrap_the_input(provider):
    assert body_of(provider=provider) == {"input": CASE.input}
    assert ask(reply({"output": "o"}), provider=provider, response_mapping={}).output.final_answer == "o"


def test_an_openai_response():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = {"content": "hello", "reasoning_content": "hm", "tool_calls": [call]}
    usage = {"prompt_tokens": 5, "completion_tokens": 6, "completion_tokens_details": {"reasoning_tokens": 2}}
    answer = ask(
        reply({"choices": [{"message": message}], "usage": usage}), provider="openai_chat", response_mapping={}
    )
    assert (answer.output.final_answer, answer.output.thinking) == ("hello", "hm")
    assert [(c.id, c.name, c.arguments) for c in answer.tool_calls] == [("c1", "f", {"a": 1})]
    metrics = answer.metrics
    assert (metrics.token_input, metrics.token_output, metrics.token_thinking) == (5, 6, 2)


def test_an_anthropic_response():
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "u", "name": "f", "input": {"q": 1}},
        {"type": "text", "text": "b"},
    ]
    answer = ask(reply({"content": content}), provider="anthropic_messages", response_mapping={})
    assert (answer.output.final_answer, answer.output.thinking) == ("a\nb", "hm")
    assert [(c.id, c.name, c.arguments) for c in answer.tool_calls] == [("u", "f", {"q": 1})]


def test_calls_that_anthropic_ran_itself_are_calls():
    content = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "mcp_tool_use", "id": "m", "name": "delete", "server_name": "files", "input": {}},
        {"type": "text", "text": "a"},
    ]
    answer = ask(reply({"content": content}), provider="anthropic_messages", response_mapping={})
    assert [(c.id, c.name, c.arguments) for c in answer.tool_calls] == [
        ("s", "web_search", {"query": "x"}),
        ("m", "delete", {}),
    ]


def test_older_and_freer_calls_of_openai_are_calls():
    calls = [{"id": "1", "type": "custom", "custom": {"name": "bash", "input": "rm"}}]
    message = {"content": "", "tool_calls": calls, "function_call": {"name": "find", "arguments": '{"q": 1}'}}
    answer = ask(reply({"choices": [{"message": message}]}), provider="openai_chat", response_mapping={})
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [("bash", {"_raw": "rm"}), ("find", {"q": 1})]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "rm", "input": {}}]},
        {"role": "assistant", "function_call": {"name": "rm", "arguments": "{}"}},
        {"role": "assistant", "tool_calls": [{"id": "1"}]},
    ],
)
def test_a_call_in_messages_that_nothing_reads_did_not_not_happen(message):
    document = {"x": [message], "answer": "done", "calls": [{"name": "rm"}]}
    with pytest.raises(TargetError, match=r"response_mapping\.messages \$\.x finds a message with a tool call"):
        mapped(document, messages="$.x", final_answer="$.answer")
    [call] = mapped(document, messages="$.x", final_answer="$.answer", tool_calls="$.calls").tool_calls
    assert call.name == "rm"


def test_own_entries_override_single_ones_of_a_preset():
    document = {"choices": [{"message": {"content": "theirs"}}], "mine": "ours", "usage": {"prompt_tokens": 4}}
    answer = ask(reply(document), provider="openai_chat", response_mapping={"final_answer": "$.mine"})
    assert (answer.output.final_answer, answer.metrics.token_input) == ("ours", 4)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (5, "5"),
        (1.5, "1.5"),
        (True, "True"),
        (["a", "b"], "a\nb"),
        (["a", None, "b"], "a\nb"),
        (["a", 1], "['a', 1]"),
        ({"k": 1}, "{'k': 1}"),
    ],
)
def test_any_value_becomes_a_text(value, text):
    assert mapped({"v": value}, final_answer="$.v").output.final_answer == text


def test_parts_without_text_beside_a_tool_call_are_no_answer():
    document = {"parts": [{"text": None}, {"text": None}], "calls": [{"name": "find", "arguments": {}}]}
    answer = mapped(document, final_answer="$.parts[*].text", tool_calls="$.calls")
    assert (answer.output.final_answer, len(answer.tool_calls)) == (None, 1)


@pytest.mark.parametrize(("parts", "text"), [(["a"], "a"), (["a", "b"], "a\nb")])
def test_one_match_is_the_value_and_more_are_a_list(parts, text):
    document = {"parts": [{"type": "text", "text": part} for part in parts] + [{"type": "image"}]}
    assert mapped(document, final_answer='$.parts[?(@.type=="text")].text').output.final_answer == text


@pytest.mark.parametrize(
    ("item", "call"),
    [
        ({"name": "f", "arguments": {"a": 1}}, (None, "f", {"a": 1})),
        ({"name": "f", "input": {"a": 1}, "id": "i"}, ("i", "f", {"a": 1})),
        ({"function": {"name": "f", "arguments": '{"a": 1}'}}, (None, "f", {"a": 1})),
        ({"name": "f", "arguments": ""}, (None, "f", {})),
        ({"name": "f"}, (None, "f", {})),
        ({"name": "f", "arguments": "not json"}, (None, "f", {"_raw": "not json"})),
        ({"name": "f", "arguments": [1]}, (None, "f", {"_raw": [1]})),
    ],
)
@pytest.mark.parametrize("path", ["$.calls", "$.calls[*]", "$.calls[0]"])
def test_a_tool_call_in_any_shape_alone_or_in_a_list(item, call, path):
    answer = mapped({"calls": [item]}, tool_calls=path)
    assert [(c.id, c.name, c.arguments) for c in answer.tool_calls] == [call]


def test_what_is_no_tool_call_is_left_out_by_the_rules_of_evalh():
    document = {"calls": ["text", None, {"no": "name"}, {"name": "f"}]}
    answer = ask(reply(document), response_mapping={"tool_calls": "$.calls"}, evalh_rules=True)
    assert [c.name for c in answer.tool_calls] == ["f"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("tool_calls", "rm"), ("tool_calls", ["rm"]), ("tool_calls", [None, {"name": "f"}, {"fn": "rm"}]),
        ("tool_calls", {"function": "rm"}), ("messages", [{"from": "user", "text": "x"}]),
        ("tool_results", [{"output": "x"}]),
    ],
)  # fmt: skip
def test_what_is_found_and_cannot_be_read_did_not_not_happen(name, found):
    with pytest.raises(TargetError, match=rf"response_mapping\.{name} \$\.x finds .*, expected a"):
        mapped({"x": found}, **{name: "$.x"})


def doubts_of(*replies, **config):
    """The doubts about each of these replies."""

    async def doubts():
        async with serving(*replies) as server, opened(endpoint=f"http://127.0.0.1:{server.port}/", **config) as target:
            return [[*(await target.run(CASE, 0)).doubts] for _ in replies]

    return asyncio.run(doubts())


def test_paths_that_have_found_nothing_so_far_are_doubted():
    mapping = {"final_answer": "$.a", "tool_calls": "$.toolz", "tokens.input": "$.n", "trace_id": "$.t"}
    documents = [{"a": "x", "t": "1"}, {"a": "x", "n": None, "tools": [1]}, {"a": "x", "toolz": [], "n": 1, "t": "1"}]
    paths = ("tool_calls $.toolz", "tokens.input $.n")
    calls, tokens = (Doubt(f"response_mapping.{path} found nothing", if_all=True) for path in paths)
    assert doubts_of(*map(reply, documents), response_mapping=mapping) == [[calls, tokens], [calls], []]


def test_numbers_that_cannot_be_used_are_doubted():
    mapping = {"final_answer": "$.a", "cost_usd": "$.c"}
    documents = [{"a": "x", "c": "$0.5"}, {"a": "x", "c": 0.5}, {"a": "x", "c": -1}, {"a": "x", "c": None}]
    what = "response_mapping.cost_usd $.c found no number that can be used"
    doubts = doubts_of(*map(reply, documents), response_mapping=mapping)
    assert doubts == [[Doubt(what, "'$0.5'")], [], [Doubt(what, "-1")], []]


def test_streams_without_their_end_are_doubted():
    events = [b'data: {"t": "a"}\n\n', b'data: {"error": "too busy"}\n\n']
    config = {"stream": True, "stream_format": "sse", "stream_event_field": "$.t", "response_mapping": {}}
    doubts = doubts_of(chunked(*events), chunked(events[0]), **config)
    assert doubts == [[Doubt("the end of the stream is missing", "the service reports an error: too busy")], []]


def test_all_the_other_entries():
    document = {
        "s": {"a": 1}, "m": [{"role": "tool", "name": "f", "content": "r"}], "r": {"name": "f", "content": "r"},
        "t": "tr-1", "u": {"i": "10", "o": 5.7, "k": "many", "c": "0.25"},
    }  # fmt: skip
    answer = mapped(
        document, structured="$.s", messages="$.m", tool_results="$.r", trace_id="$.t",
        tokens__input="$.u.i", tokens__output="$.u.o", tokens__thinking="$.u.k", cost_usd="$.u.c",
    )  # fmt: skip
    assert answer.output.structured == {"a": 1}
    assert [(m.role, m.content) for m in answer.messages] == [("tool", "r")]
    assert [(r.name, r.content) for r in answer.tool_results] == [("f", "r")]
    replaced = [
        "metrics.token_output: expected a whole number, found 5.7; 5 is kept",
        "metrics.token_thinking: expected a finite number from 0 on, found 'many'; left out",
    ]
    assert answer.extra == {"trace_id": "tr-1", "replaced": replaced}
    metrics = answer.metrics
    assert (metrics.token_input, metrics.token_output, metrics.token_thinking) == (10, 5, None)
    assert metrics.cost_usd == 0.25


def test_structured_data_that_is_no_mapping_is_wrapped():
    assert mapped([1, 2], structured="$").output.structured == {"value": [1, 2]}


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        ("<think>\nhm\n</think>\n\nyes", "yes", "hm"),
        ("<think>a</think>x<think> b </think>y", "xy", "a\n\nb"),
        ("x<think>never closed", "x", "never closed"),
        ("<think>\n\n</think>yes", "yes", None),
        (" no thinking ", " no thinking ", None),
    ],
)
def test_inline_thinking_is_not_part_of_the_answer(text, answer, thinking):
    output = mapped({"v": text}, final_answer="$.v").output
    assert (output.final_answer, output.thinking) == (answer, thinking)


def test_inline_thinking_stays_if_configured():
    answer = ask(reply({"answer": "<think>a</think>b"}), strip_think=False)
    assert (answer.output.final_answer, answer.output.thinking) == ("<think>a</think>b", None)


def test_inline_thinking_follows_mapped_thinking():
    output = mapped({"v": "<think>b</think>c", "t": "a"}, final_answer="$.v", thinking="$.t").output
    assert (output.final_answer, output.thinking) == ("c", "a\n\nb")


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"request_template": '{"q": {{ input.user_message }}}'}, "request_template"),
        ({"request_template": "[1]", "body": {"model": "m"}}, "request_template"),
        ({"response_mapping": {"final_answer": "$.[[["}}, "response_mapping.final_answer"),
    ],
)
def test_a_bad_template_or_path_is_the_error_of_a_call_that_is_not_made(config, key):
    with pytest.raises(TargetError) as raised:
        ask(reply({"answer": "x"}), endpoint="http://127.0.0.1:1/nobody-listens", **config)
    assert raised.value.type == "adapter_error"
    assert key in str(raised.value)


CHAT = {"provider": "openai_chat", "response_mapping": {}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize("document", [None, [], {}, 5, "text", {"detail": "Internal failure"}, {"a": None}, {"a": []}])
def test_a_reply_without_an_answer_is_an_error_with_the_path_and_the_reply(document):
    with pytest.raises(TargetError) as raised:
        ask(reply(document), response_mapping={"final_answer": "$.a"})
    assert "no answer: response_mapping.final_answer $.a finds" in str(raised.value)
    assert json.dumps(document) in str(raised.value)
    assert raised.value.type == "adapter_error"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": None}, "no answer: response_mapping.final_answer $.a finds null"),
        ({"error": "overloaded"}, "HTTP 200, but the body is an error: overloaded"),
        ({"a": "x", "c": [5]}, "response_mapping.tool_calls $.c"),
    ],
)
def test_what_a_reply_without_an_answer_has_cost_is_kept(document, message):
    mapping = {"final_answer": "$.a", "tool_calls": "$.c", "tokens.input": "$.n", "cost_usd": "$.usd"}
    answer = ask(reply({**document, "n": 7, "usd": 0.5}), response_mapping=mapping)
    assert message in answer.error.message
    assert (answer.metrics.token_input, answer.metrics.cost_usd) == (7, 0.5)


def test_an_empty_text_is_an_answer():
    assert ask(reply({"a": ""}), response_mapping={"final_answer": "$.a"}).output.final_answer == ""


def test_what_the_suite_lets_be_absent_may_be():
    config = {"response_mapping": {"final_answer": "$.a"}}
    assert ask(reply({}), **config, allow_missing=["final_answer"]).output.final_answer is None
    assert ask(reply({}), **config, evalh_rules=True).output.final_answer is None


def test_a_structured_answer_that_is_not_there_is_an_error_too():
    mapping = {"final_answer": "$.a", "structured": "$.b"}
    with pytest.raises(TargetError, match=r"response_mapping\.structured \$\.b finds nothing"):
        ask(reply({"a": "x"}), response_mapping=mapping)


@pytest.mark.parametrize("document", [{}, {"choices": []}, {"choices": [{"message": {"content": None}}]}])
def test_a_chat_api_without_a_text_is_an_error(document):
    with pytest.raises(TargetError, match=r"response_mapping\.final_answer \$\.choices\[0\]\.message\.content finds"):
        ask(reply(document), **CHAT)


def test_a_reply_that_calls_tools_needs_no_text():
    document = {"choices": [{"message": {"tool_calls": [CALL]}}]}
    assert [call.name for call in ask(reply(document), **CHAT).tool_calls] == ["f"]
    own = {"final_answer": "$.text", "tool_calls": "$.calls"}
    assert ask(reply({"text": None, "calls": [{"name": "f"}]}), response_mapping=own).tool_calls
    with pytest.raises(TargetError, match=r"\$\.text finds nothing"):
        ask(reply({"txt": None, "calls": [{"name": "f"}]}), response_mapping=own)


def test_an_error_in_the_body_goes_before_the_path_that_finds_nothing():
    with pytest.raises(TargetError, match="the body is an error: overloaded"):
        ask(reply({"error": "overloaded", "usage": {"n": 1}}), response_mapping={"final_answer": "$.a"})
