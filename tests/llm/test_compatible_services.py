"""Services with OpenAI's API at addresses of their own: where they are asked, with which key, and what they refuse.

Written from their references: learn.microsoft.com/azure/ai-foundry/openai/reference,
ai.google.dev/gemini-api/docs/openai, openrouter.ai/docs/api-reference, api-docs.deepseek.com,
console.groq.com/docs/api-reference, docs.mistral.ai/api, docs.x.ai/docs/api-reference.
"""

import asyncio
import json
from functools import partial

import pytest

from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.model.chat import ChatMessage, ChatRequest
from llm.models import Impatient
from llm.providers import KEY, Providers, providing
from llm.request_forms import Refused

SCHEMA = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}},
    "required": ["passed"],
    "additionalProperties": False,
}
JUDGE = {"system": "You judge, in JSON.", "schema": SCHEMA, "max_tokens": 1024, "default_limit": True}


class Service(Providers):
    """One service: the path of its API, the header with the key, and what else it wants of a request."""

    def __init__(self, answer, prefix, header="authorization", query="", refuses=lambda body: None):
        super().__init__(answer)
        self.prefix, self.header, self.query, self.refuses = prefix, header, query, refuses

    def respond(self, method, path, headers, raw):
        place, _, query = path.partition("?")
        given = headers.get(self.header, "").removeprefix("Bearer ")
        if not place.startswith(self.prefix + "/") or query != self.query or given != KEY:
            return 404 if given == KEY else 401, {"error": {"message": f"{method} {path}: not here, or not for you"}}
        try:
            self.refuses(json.loads(raw))
        except Refused as error:
            return error.status, {"error": {"message": str(error)}}
        return super().respond(
            method, "/v1" + place[len(self.prefix) :], {**headers, "authorization": f"Bearer {KEY}"}, raw
        )


def no_schema(body):
    """DeepSeek's answer to a form that it does not have."""
    if body.get("response_format", {}).get("type") == "json_schema":
        raise Refused("This response_format type is unavailable now")


def few_schemas(body):
    """Groq's answer for models without it."""
    if body.get("response_format", {}).get("type") == "json_schema":
        raise Refused(f"This model does not support response format `json_schema`: {body['model']}")


def mistral(body):
    """Mistral's API has no `max_completion_tokens`, and refuses what it does not know."""
    if unknown := body.keys() & {"max_completion_tokens", "reasoning_effort", "logit_bias", "user"}:
        raise Refused(f"extra_forbidden: {sorted(unknown)}: Extra inputs are not permitted", 422)


DATED = "/openai/deployments/mine"
SERVICES = {
    "azure/gpt-5-mini": (Service, "AZURE_OPENAI", "/openai/v1", {}, ["strict"]),
    "azure/mine": (
        partial(Service, header="api-key", query="api-version=2024-10-21"),
        "AZURE_OPENAI", DATED, {"AZURE_OPENAI_API_VERSION": "2024-10-21"}, ["strict"],
    ),
    "gemini/gemini-3-flash": (Service, "GEMINI", "/v1beta/openai", {}, ["strict"]),
    "openrouter/anthropic/claude-haiku-4.5": (Service, "OPENROUTER", "/api/v1", {}, ["strict"]),
    "deepseek/deepseek-chat": (partial(Service, refuses=no_schema), "DEEPSEEK", "/v1", {}, ["json_object"]),
    "groq/llama-3.3-70b-versatile": (
        partial(Service, refuses=few_schemas), "GROQ", "/openai/v1", {}, ["strict", "json_schema", "json_object"],
    ),
    "mistral/magistral-medium": (partial(Service, refuses=mistral), "MISTRAL", "/v1", {}, ["strict"]),
    "xai/grok-4": (Service, "XAI", "/v1", {}, ["strict"]),
}  # fmt: skip


def talk(model, requests, answer=lambda body: '{"passed": true}'):
    """The replies of a service, and the bodies that it was sent in all."""
    made, name, prefix, more, _ = SERVICES[model]
    bodies = []

    class Noting(Providers):
        def respond(self, method, path, headers, raw):
            bodies.append((path, json.loads(raw)))
            return made(self.answer, prefix).respond(method, path, headers, raw)

    async def main():
        async with providing(answer, Noting) as server:
            azure = name == "AZURE_OPENAI"
            address = f"http://127.0.0.1:{server.port}" + ("" if azure else prefix)
            known = {f"{name}_API_KEY": KEY, f"{name}_ENDPOINT" if azure else f"{name}_BASE_URL": address, **more}
            models = LiveModels(None, ModelChoices(), known, Impatient())
            try:
                return [await models.chat(request) for request in requests]
            finally:
                await models.close()

    return asyncio.run(main()), bodies


def question(model, **fields):
    return ChatRequest(model, [ChatMessage("user", "Is it so?")], **fields)


@pytest.mark.parametrize("model", SERVICES)
def test_each_service_is_called_at_its_address_in_its_form(model):
    forms = SERVICES[model][-1]
    first, again, streamed = (
        question(model, **JUDGE, temperature=0.0, stream=stream) for stream in (False, False, True)
    )
    replies, bodies = talk(model, [first, again, streamed])
    assert [json.loads(reply.text) for reply in replies] == [{"passed": True}] * 3
    assert {reply.reply_format for reply in replies} == {forms[-1]}
    assert len(bodies) == 2 + len(forms)  # what was refused once is not tried again
    assert (replies[0].first_ms, replies[2].first_ms is not None) == (None, True)
    assert all(0 <= reply.latency_ms < 600_000 for reply in replies)  # milliseconds of this call, not of the machine
    assert {body["model"] for _, body in bodies} == {model.partition("/")[2]}


def test_an_address_of_azure_may_name_the_deployment_and_the_version():
    made = partial(
        Service, prefix="/openai/deployments/judge", header="api-key", query="api-version=2025-03-01-preview"
    )

    async def main(address, more):
        async with providing(lambda body: "so it is", made) as server:
            here = f"http://127.0.0.1:{server.port}/openai/deployments/judge{address}"
            known = {"AZURE_OPENAI_API_KEY": KEY, **more}
            models = LiveModels(None, ModelChoices(), known, Impatient())
            try:
                return (await models.chat(question("azure/gpt-4o", base_url=here))).text
            finally:
                await models.close()

    assert asyncio.run(main("?api-version=2025-03-01-preview", {})) == "so it is"
    assert asyncio.run(main("", {"OPENAI_API_VERSION": "2025-03-01-preview"})) == "so it is"


def test_a_query_in_an_address_is_sent_with_every_call():
    made = partial(Service, prefix="/v1", query="tenant=a+b")

    async def main():
        async with providing(lambda body: "so it is", made) as server:
            known = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1?tenant=a%20b"}
            models = LiveModels(None, ModelChoices(), known, Impatient())
            try:
                return (await models.chat(question("gpt-test"))).text
            finally:
                await models.close()

    assert asyncio.run(main()) == "so it is"
