"""The official clients against a server that refuses what the real services refuse; litellm by `make test-litellm`."""

import asyncio
import base64
import json

import pytest

from evalwright.errors import EvaluatorError
from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.llm.routes import route_of
from evalwright.model.chat import ChatMessage, ChatRequest, EmbeddingRequest
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import ToolCall, ToolResult
from evalwright.registry import load
from evalwright.session import Session
from llm.models import Impatient
from llm.providers import KEY, last_text, providing

OPENAI, CLAUDE = "gpt-4o-mini", "claude-haiku-4-5"
SCHEMA = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}},
    "required": ["passed"],
    "additionalProperties": False,
}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 64


def order(number):
    """The state of an order."""
    return {"state": "sent", "number": number}


def talk(work, answer=last_text, environment=None, **choices):
    """What `work(models)` gives, and the server."""

    async def main():
        async with providing(answer) as server:
            known = {**server.environment(), **(environment or {})}
            models = LiveModels(None, ModelChoices(**choices), known, Impatient())
            try:
                return await work(models), server
            finally:
                await models.close()

    return asyncio.run(main())


def reply_to(request, answer=last_text, purpose="judge", **given):
    return talk(lambda models: models.chat(request, purpose), answer, **given)


def question(model, **fields):
    return ChatRequest(model, [ChatMessage("user", "Say json.")], **fields)


@pytest.mark.parametrize("model", [OPENAI, "gpt-5-mini", "o3", CLAUDE, "claude-opus-5-5"])
def test_questions_are_in_the_form_that_the_services_accept(model):
    questions = [
        question(model, system="You judge.", max_tokens=50, temperature=0.0),
        question(model, schema=SCHEMA, max_tokens=50, default_limit=True),
        question(model, schema={}),
        question(model, stream=True, max_tokens=50),
    ]

    async def work(models):
        return [await models.chat(one) for one in questions]

    replies, server = talk(work, lambda body: '{"passed": true}')
    assert [json.loads(reply.text) for reply in replies] == [{"passed": True}] * 4
    assert [reply.usage.token_input for reply in replies] == [100] * 4
    assert len(server.requests) == 4
    assert [reply.first_ms is not None for reply in replies] == [False, False, False, True]


def test_a_field_that_the_service_does_not_know_is_refused_in_its_words():
    for model in (OPENAI, CLAUDE):
        with pytest.raises(EvaluatorError, match="unknown field 'colour'"):
            reply_to(question(model, extra={"extra_body": {"colour": "red"}}))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_headers_and_queries_of_a_call_are_no_part_of_its_body(model, stream):
    extra = {"extra_headers": {"X-Team": "red"}, "extra_query": {"trace": "1"}, "extra_body": {"top_p": 0.5}}
    _, server = reply_to(question(model, extra=extra, stream=stream))
    ((_, _, headers, body),) = server.requests
    assert (headers["x-team"], body["top_p"], "extra_headers" in body, "extra_query" in body) == (
        "red",
        0.5,
        False,
        False,
    )


def test_a_wrong_key_is_no_answer():
    for model, name in ((OPENAI, "OPENAI_API_KEY"), (CLAUDE, "ANTHROPIC_API_KEY")):
        with pytest.raises(EvaluatorError) as raised:
            reply_to(question(model), environment={name: "sk-other"})
        assert raised.value.type == "authentication"


def test_embeddings_and_moderations_are_requested_in_the_form_of_the_service():
    embedding, _ = talk(lambda models: models.embed(EmbeddingRequest("text-embedding-3-small", ["a", "b"])))
    assert len(embedding.vectors) == 2
    moderation, _ = talk(lambda models: models.moderate("omni-moderation-latest", "a"))
    assert (moderation.scores, moderation.categories) == ({"violence": 0.1}, ["violence"])


def test_a_long_system_prompt_is_kept_by_anthropic_and_a_short_one_is_not():
    long, short = (reply_to(question(CLAUDE, system="Be fair. " * n))[1].requests[0][3]["system"] for n in (600, 3))
    assert long == [{"type": "text", "text": "Be fair. " * 600, "cache_control": {"type": "ephemeral"}}]
    assert short == "Be fair. " * 3


def uses_tools(body):
    """A model that asks for two orders at once, and then says what it was given."""
    anthropic = "max_tokens" in body and body["messages"][0].get("role") != "system" and "input_schema" in str(body)
    results = str(body["messages"][1:])
    if "sent" in results:
        return "Both are sent."
    if anthropic:
        uses = [{"type": "tool_use", "id": f"t{n}", "name": "order", "input": {"number": n}} for n in "78"]
        return [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Let me see."},
            *uses,
        ]
    calls = [
        {"id": f"t{n}", "type": "function", "function": {"name": "order", "arguments": json.dumps({"number": n})}}
        for n in "78"
    ]
    return {"role": "assistant", "content": "Let me see.", "tool_calls": calls}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_a_chat_system_uses_its_tools_and_sees_images(tmp_path, model, stream):
    (tmp_path / "order.png").write_bytes(PNG)
    parameters = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
    config = {
        "model": model,
        "system_prompt": "You are a clerk.",
        "images": ["input.photo"],
        "image_folders": [str(tmp_path)],
        "tools": [{"function": "llm.test_real_clients:order", "parameters": parameters}],
        "stream": stream,
    }
    case = Case("c", {"user_message": "Where are 7 and 8?", "photo": "order.png"})

    async def work(models):
        target = load("targets", "chat")(Variant("v", "chat", config))
        with Session(models=lambda: models):
            return await target.run(case, 0)

    answer, server = talk(work, uses_tools)
    assert answer.error is None, answer.error
    assert (answer.output.final_answer, len(server.requests)) == ("Both are sent.", 2)
    assert answer.tool_calls == [ToolCall("order", f"t{n}", {"number": n}) for n in "78"]
    assert answer.tool_results[0] == ToolResult("order", {"state": "sent", "number": "7"}, "t7")
    assert (answer.metrics.token_input, answer.metrics.cost_usd is not None) == (200, True)
    assert (answer.metrics.latency_first_token_ms is not None) == stream
    sent = json.dumps(server.requests[0][3])
    assert base64.b64encode(PNG).decode() in sent
    assert base64.b64encode(PNG).decode() not in str(answer.messages)


def test_a_stream_that_breaks_off_is_requested_again():
    from llm.models import outcomes_of, request
    from targets.loopback import reply

    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    parts = [{"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in ("Hel", "lo")]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    def events(*found):
        text = "".join(f"data: {json.dumps({**chunk, **one})}\n\n" for one in found)
        return reply(text.encode(), headers=("Content-Type: text/event-stream",))

    (said,), server = outcomes_of([events(*parts), events(*parts, last)], request(stream=True))
    assert (said.text, len(server.requests)) == ("Hello", 2)


@pytest.mark.slow("litellm takes seconds to import")
@pytest.mark.filterwarnings("ignore")
def test_litellm_asks_in_the_form_that_the_services_accept(monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks GitHub for prices when it is imported
    pytest.importorskip("litellm", reason="has an environment of its own: make test-litellm")

    async def main():
        async with providing(lambda body: '{"passed": true}') as server:
            here = f"http://127.0.0.1:{server.port}"
            models = LiveModels(None, ModelChoices(), {"MY_KEY": KEY}, Impatient())
            questions = [
                question(f"litellm/{model}", max_tokens=50, schema=schema, base_url=at, api_key_env="MY_KEY")
                for model, at in ((OPENAI, f"{here}/v1"), (f"anthropic/{CLAUDE}", here))
                for schema in (None, SCHEMA)
            ]
            try:
                return [await models.chat(one) for one in questions], server
            finally:
                await models.close()

    replies, server = asyncio.run(main())
    assert [json.loads(reply.text) for reply in replies] == [{"passed": True}] * 4
    assert len(server.requests) >= 4  # a form of reply that litellm cannot ask for is asked for in another


def test_litellm_is_given_the_address_and_the_key_that_the_user_names():
    asked_for = question("litellm/groq/llama", base_url="http://127.0.0.1:9", api_key_env="MY_KEY")
    route = route_of(asked_for, {"MY_KEY": "k"})
    assert (route.interface, route.model, route.base_url, route.key) == (
        "litellm",
        "groq/llama",
        "http://127.0.0.1:9",
        "k",
    )
    elsewhere = question("litellm/groq/llama", base_url="https://a.example", api_key_env="MY_KEY")
    assert route_of(elsewhere, {}).missing_key == "MY_KEY"


@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_an_environment_that_makes_no_client_is_an_error(monkeypatch, model):
    monkeypatch.setenv("ALL_PROXY", "junk://host")
    with pytest.raises(EvaluatorError, match="of the environment cannot be used: Unknown scheme"):
        reply_to(question(model, max_tokens=50))
