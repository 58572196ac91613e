"""Requests in the form that each model accepts, against servers that refuse what the real services refuse."""

from __future__ import annotations

import asyncio
import json

import pytest

from evalwright.errors import EvaluatorError, TargetError
from evalwright.llm.families import family_of
from evalwright.llm.fitting import ANTHROPIC_TOKENS
from evalwright.llm.models import LiveModels
from evalwright.llm.routes import key_of
from llm.models import anthropic, bodies, openai, outcomes_of, refused, reply, request
from targets.loopback import serving

SCHEMA = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}},
    "required": ["passed"],
    "additionalProperties": False,
}
LOOSE = {"type": "object", "properties": {"passed": {"type": "boolean"}}}
DEFAULT = {"max_tokens": 1024, "default_limit": True}


def sent(*scripts, purpose="judge", model="gpt-test", **fields):
    """The reply, and the bodies that the server was sent."""
    (said,), server = outcomes_of(scripts, request(model=model, **fields), purpose=purpose)
    return said, bodies(server)


@pytest.mark.parametrize(
    ("model", "limit", "tokens", "temperature"),
    [
        ("gpt-4o-mini", "max_tokens", 1024, True),
        ("gpt-5-mini", "max_completion_tokens", 16384, False),
        ("gpt-5.3-chat-latest", "max_tokens", 1024, True),
        ("o3", "max_completion_tokens", 16384, False),
        ("openai/gpt-6-luna", "max_completion_tokens", 16384, False),
        ("qwen3-32b", "max_tokens", 16384, True),
        ("deepseek-reasoner", "max_tokens", 16384, True),
        ("some-new-model", "max_tokens", 4096, True),
    ],
)
def test_parameters_are_those_of_the_family(model, limit, tokens, temperature):
    said, (body,) = sent(openai(), model=model, temperature=0.0, **DEFAULT)
    assert {key: body[key] for key in body if "tokens" in key} == {limit: tokens}
    assert ("temperature" in body, said.left_out) == (temperature, [] if temperature else ["temperature 0"])
    assert said.limit == tokens


def test_a_limit_is_sent_only_where_one_is_chosen_or_needed():
    assert [key for key in sent(openai())[1][0] if "tokens" in key] == []
    assert sent(anthropic(), model="claude-3-5-haiku-test")[1][0]["max_tokens"] == ANTHROPIC_TOKENS


def test_a_limit_that_somebody_chose_stays_and_so_do_the_parameters_of_a_system():
    assert sent(openai(), model="gpt-5", max_tokens=50)[1][0]["max_completion_tokens"] == 50
    _, (body,) = sent(openai(), model="gpt-5", purpose="system", temperature=0.3, **DEFAULT)
    assert (body["temperature"], body["max_completion_tokens"]) == (0.3, 1024)


@pytest.mark.parametrize(
    ("model", "temperature", "tokens"),
    [("claude-opus-4-6", True, 1024), ("claude-opus-4-8", False, 16384), ("claude-3-5-haiku-test", True, 1024)],
)
def test_claude_gets_a_temperature_as_long_as_it_took_one(model, temperature, tokens):
    _, (body,) = sent(anthropic(), model=model, temperature=0.0, **DEFAULT)
    assert ("temperature" in body, body["max_tokens"]) == (temperature, tokens)


def test_thinking_and_effort_are_passed_on_and_leave_room_for_the_reply():
    thinking = {"type": "enabled", "budget_tokens": 2000}
    settings = {"thinking": thinking, "reasoning_effort": "low"}
    said, (body,) = sent(anthropic(), model="claude-opus-4-6", extra=settings, temperature=0.0, schema=LOOSE, **DEFAULT)
    assert (body["thinking"], body["output_config"], body["max_tokens"]) == (thinking, {"effort": "low"}, 3024)
    assert ("temperature" in body, "tool_choice" in body, said.left_out) == (False, False, ["temperature 0"])
    assert sent(openai(), extra=settings)[1][0]["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    ("script", "model", "schema", "form"),
    [
        (openai, "gpt-4o", SCHEMA, "strict"),
        (openai, "gpt-4o", LOOSE, "json_schema"),
        (openai, "gpt-4o", {}, "json_object"),
        (openai, "deepseek-chat", SCHEMA, "json_object"),
        (anthropic, "claude-haiku-4-5", SCHEMA, "strict"),
        (anthropic, "claude-haiku-4-5", LOOSE, "tool"),
        (anthropic, "claude-3-5-haiku-test", SCHEMA, "tool"),
        (anthropic, "claude-haiku-4-5", {}, "prompt"),
        (openai, "gpt-4o", None, None),
    ],
)
def test_the_form_of_a_reply_is_requested_as_the_provider_guarantees_it(script, model, schema, form):
    said, (body,) = sent(script(), model=model, schema=schema)
    assert said.reply_format == form
    shape = body.get("response_format", {}).get("json_schema", {})
    output = body.get("output_config", {}).get("format", {})
    tools = [tool["input_schema"] for tool in body.get("tools", ())]
    assert (shape.get("strict"), shape.get("schema")) == (
        (True, SCHEMA) if form == "strict" and script is openai else (None, LOOSE if form == "json_schema" else None)
    )
    assert output == ({"type": "json_schema", "schema": SCHEMA} if form == "strict" and script is anthropic else {})
    assert tools == ([schema] if form == "tool" else [])
    assert body.get("tool_choice") == ({"type": "tool", "name": "reply"} if form == "tool" else None)


@pytest.mark.parametrize("change", [{"required": []}, {"additionalProperties": True}])
def test_a_schema_with_optional_or_further_keys_is_not_requested_strictly(change):
    said, (body,) = sent(openai(), model="gpt-4o", schema={**SCHEMA, **change})
    assert (said.reply_format, "strict" in body["response_format"]["json_schema"]) == ("json_schema", False)


def test_recordings_and_cached_replies_of_a_request_outlive_another_default_of_its_limit():
    plain = request(max_tokens=1024)
    assert key_of(request(**DEFAULT), at=None) == key_of(plain, at=None) != key_of(request(max_tokens=9), at=None)


def test_the_input_of_the_tool_is_the_reply_and_words_beside_it_stay_in_front():
    use = {"type": "tool_use", "id": "1", "name": "reply", "input": {"passed": True}}
    body = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
    body |= {"content": [{"type": "text", "text": "So: "}, use], "usage": {}, "stop_sequence": None}
    script = reply(body, headers=("Content-Type: application/json",))
    said, _ = sent(script, model="claude-3-5-haiku-test", schema=SCHEMA)
    assert (said.text, said.tool_calls) == ('So: {"passed": true}', [])


UNKNOWN_FORMAT = "This response_format type is unavailable now"
REFUSALS = [
    ("gpt-test", [UNKNOWN_FORMAT], {"schema": SCHEMA}, "json_schema"),
    ("gpt-test", [UNKNOWN_FORMAT] * 2, {"schema": SCHEMA}, "json_object"),
    ("gpt-test", [UNKNOWN_FORMAT] * 3, {"schema": SCHEMA}, "prompt"),
    ("claude-haiku-4-5", ["output_config: Extra inputs are not permitted"], {"schema": SCHEMA}, "tool"),
    ("claude-3-5-haiku-test", ["tool_choice: no tools here"], {"schema": SCHEMA}, "prompt"),
]


@pytest.mark.parametrize(("model", "messages", "fields", "form"), REFUSALS)
def test_a_form_that_a_server_refuses_is_requested_in_the_next_way(model, messages, fields, form):
    script = anthropic if model.startswith("claude") else openai
    said, requests = sent(*(refused(400, message) for message in messages), script(), model=model, **fields)
    assert (said.reply_format, len(requests)) == (form, len(messages) + 1)


def test_parameters_of_a_model_that_no_table_knows_are_learned_from_its_refusals():
    said, requests = sent(
        refused(400, "Unsupported parameter: 'max_tokens' is not supported, use 'max_completion_tokens' instead."),
        refused(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        refused(400, "max_completion_tokens is too large: 4096. This model supports at most 2048 completion tokens."),
        openai(),
        temperature=0.0,
        **DEFAULT,
    )
    *_, last = requests
    assert (len(requests), "max_tokens" in last, last["max_completion_tokens"], "temperature" in last) == (
        4, False, 1024, False,
    )  # fmt: skip
    assert (said.left_out, said.limit) == (["temperature 0"], 1024)


def test_what_was_learned_holds_for_later_calls():
    async def calls():
        async with serving(refused(400, "`temperature` is deprecated for this model."), openai()) as server:
            models = LiveModels(environment={"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"})
            for model in ("m", "m", "other"):
                await models.chat(request(model=model, temperature=0.0))
            await models.close()
            return [("temperature" in body, body["model"]) for body in bodies(server)]

    assert asyncio.run(calls()) == [(True, "m"), (False, "m"), (False, "m"), (True, "other")]


def test_calls_under_way_at_the_same_time_learn_from_each_other():
    both = asyncio.Barrier(2)

    async def refuses(writer):
        await both.wait()
        writer.write(refused(400, "`temperature` is deprecated for this model.", ["Connection: close"]))
        await writer.drain()

    hot = [request(text, temperature=0.0) for text in ("hi", "ho")]
    replies, server = outcomes_of([refuses, refuses, openai()], *hot)
    assert [reply.text for reply in replies] == ["hello", "hello"]
    assert ["temperature" in body for body in bodies(server)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("script", "fields", "error"),
    [
        (refused(400, "the image is too large"), {"temperature": 0.0, "schema": SCHEMA}, EvaluatorError),
        # it was not raised, so that it cannot be lowered again
        (refused(400, "max_tokens is too large"), {"model": "claude-3-5-haiku-test"}, EvaluatorError),
        (refused(401, "temperature"), {"temperature": 0.0}, EvaluatorError),
        (refused(400, "temperature"), {"temperature": 0.0, "purpose": "system"}, TargetError),
    ],
)
def test_another_refusal_is_an_error_after_one_request(script, fields, error):
    said, requests = sent(script, openai(), **fields)
    assert (type(said), len(requests)) == (error, 1)


def test_a_server_that_refuses_everything_by_name_is_called_a_few_times():
    said, requests = sent(
        refused(400, "temperature, max_tokens, max_completion_tokens, response_format, schema: not supported"),
        temperature=0.0,
        schema=SCHEMA,
        **DEFAULT,
    )
    assert isinstance(said, EvaluatorError)
    assert len(requests) == 6


@pytest.mark.parametrize("content", ["", '{"passed": true}', None])
def test_a_judge_whose_reply_is_cut_off_is_an_error_that_names_the_limit(content):
    body = json.loads(openai(content).partition(b"\r\n\r\n")[2])
    body["choices"][0]["finish_reason"] = "length"
    script = reply(body, headers=("Content-Type: application/json",))
    said, _ = sent(script, max_tokens=77)
    assert isinstance(said, EvaluatorError)
    assert "77 tokens" in str(said)
    assert "max_tokens" in str(said)
    system, _ = sent(openai("ye"), purpose="system", max_tokens=77)
    assert system.text == "ye"


def test_a_name_finds_its_family_behind_its_provider():
    assert family_of("us.anthropic.claude-opus-5-v1:0") is family_of("claude-opus-5")
    assert family_of("litellm/bedrock/anthropic.claude-3-haiku") is family_of("claude-3-haiku")
    assert family_of("my-o1-like").models == ""
