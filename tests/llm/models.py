"""Real models' clients against a scripted server on loopback."""

import asyncio
import json

from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.llm.retries import Rules
from evalwright.model.chat import ChatMessage, ChatRequest
from targets.loopback import reply, serving

JSON = ("Content-Type: application/json",)


class Impatient(Rules):
    attempts = 3
    attempt_seconds = 20
    first_wait = 0.001
    longest_retry_after = 0.05


class Hasty(Impatient):
    """For servers that say nothing."""

    attempts = 1
    attempt_seconds = 1


def openai(text="hello", model="m", **message):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": model, "choices": [choice], "usage": usage}
    return reply(body, headers=JSON)


def anthropic(text="hello", **usage):
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": text}]
    usage = {"input_tokens": 100, "output_tokens": 10, **usage}
    body = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage}
    return reply({**body, "stop_reason": "end_turn", "stop_sequence": None}, headers=JSON)


def refused(status, message="no", headers=(), **error):
    return reply({"error": {"message": message, **error}}, status, headers=(*JSON, *headers))


def request(text="hi", model="gpt-test", **fields):
    return ChatRequest(model, [ChatMessage("user", text)], **fields)


def outcomes_of(scripts, *requests, prices=None, rules=None, environment=None, purpose="judge", **choices):
    """What came of each request, asked at the same time, and the server."""

    async def ask():
        async with serving(*scripts) as server:
            here = f"http://127.0.0.1:{server.port}"
            known = {"OPENAI_BASE_URL": f"{here}/v1", "ANTHROPIC_BASE_URL": here, **(environment or {})}
            models = LiveModels(prices, ModelChoices(**choices), known, rules or Impatient())
            calls = [models.chat(one, purpose) for one in requests or (request(),)]
            try:
                return await asyncio.gather(*calls, return_exceptions=True), server
            finally:
                await models.close()

    return asyncio.run(ask())


def bodies(server):
    """The JSON that the server was sent."""
    return [json.loads(request["body"]) for request in server.requests]
