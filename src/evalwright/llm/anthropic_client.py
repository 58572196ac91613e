"""Models behind the Anthropic Messages API, called through the official client."""

from __future__ import annotations

import time
from typing import Any

from evalwright.llm.connections import bounded
from evalwright.llm.failures import CallFailed, failure_of
from evalwright.llm.replies import checked_reply, count_of, reading_reply, silent
from evalwright.llm.routes import Route
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, Usage
from evalwright.model.trace import ToolCall

__all__ = ["AnthropicClient"]

_MAX_TOKENS = 4096
"""Sent if the request has no limit of its own, as this API requires one."""
_NO_KEY = "no-key-needed"
"""The client cannot be made without a key, which a server on this machine may not need."""


class AnthropicClient:
    """One endpoint. The interface has no JSON mode: the system message of the request describes the JSON."""

    def __init__(self, route: Route) -> None:
        import anthropic

        self._client = anthropic.AsyncAnthropic(
            api_key=route.key or _NO_KEY,
            base_url=route.base_url,
            max_retries=0,  # `retries` is the one place for attempts and their time limits
            timeout=None,
            http_client=bounded(anthropic.DefaultAsyncHttpxClient),
        )
        self._errors: type[Exception] = anthropic.AnthropicError

    async def chat(self, model: str, request: ChatRequest) -> ChatReply:
        started = time.monotonic()
        with reading_reply():  # also around the call: the client itself stumbles over replies of a wrong shape
            try:
                response = await self._client.messages.create(**_request_body(model, request))
            except self._errors as error:
                raise failure_of(error) from error
            return _reply(response, model, int((time.monotonic() - started) * 1000))

    async def close(self) -> None:
        await self._client.close()


def _request_body(model: str, request: ChatRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens or _MAX_TOKENS,
        "messages": _merged(request.messages),
        **request.extra,
    }
    system = [request.system or "", *(str(m.content) for m in request.messages if m.role == "system")]
    if any(system):
        body["system"] = "\n\n".join(filter(None, system))
    if request.temperature is not None:
        body["extra_body"] = {**body.get("extra_body", {}), "temperature": request.temperature}
    if request.tools:
        body["tools"] = [
            {"name": t["name"], "description": t.get("description", ""), "input_schema": t["parameters"]}
            for t in request.tools
        ]
    if request.tool_choice and request.tool_choice != "none":
        kinds = {"auto": {"type": "auto"}, "required": {"type": "any"}}
        body["tool_choice"] = kinds.get(request.tool_choice, {"type": "tool", "name": request.tool_choice})
    return body


def _merged(messages: Any) -> list[dict[str, Any]]:
    """The messages as this API accepts them: tool results that follow each other are one message of the user."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        one = _message(message)
        last = merged[-1] if merged else None
        if message.role == "tool" and last and last["role"] == "user" and isinstance(last["content"], list):
            last["content"] += one["content"]
        else:
            merged.append(one)
    return merged


def _message(message: ChatMessage) -> dict[str, Any]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}
        return {"role": "user", "content": [result]}
    if message.tool_calls:
        text = [{"type": "text", "text": message.content}] if message.content else []
        uses = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in message.tool_calls]
        return {"role": message.role, "content": [*text, *uses]}
    content = message.content
    return {"role": message.role, "content": list(map(_block, content)) if isinstance(content, list) else content}


def _block(part: Any) -> Any:
    """A part of a message in the form of this API; images come in the form of OpenAI's, others stay as they are."""
    image = part.get("image_url") if isinstance(part, dict) else None
    if image is None:
        return part
    url = str(image.get("url") if isinstance(image, dict) else image)
    kind, inline, data = url.removeprefix("data:").partition(";base64,")
    if url.startswith("data:") and inline:
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _reply(response: Any, model: str, latency_ms: int) -> ChatReply:
    blocks = getattr(response, "content", None)
    if not isinstance(blocks, list):
        raise CallFailed("bad_reply", "the reply has no content", retryable=True)
    texts = [b.text for b in blocks if b.type == "text"]
    thinking = [b.thinking for b in blocks if b.type == "thinking"]
    calls = [
        ToolCall(b.name, b.id, b.input if isinstance(b.input, dict) else {"_raw": b.input})
        for b in blocks
        if b.type == "tool_use"
    ]
    if not (texts or calls or response.stop_reason == "refusal"):
        raise silent(response.stop_reason)
    usage = getattr(response, "usage", None)
    refused = response.stop_reason == "refusal"
    reply = ChatReply(
        text="".join(texts),
        model=response.model or model,
        thinking="\n\n".join(thinking) or None,
        tool_calls=calls,
        usage=_usage(usage),
        latency_ms=latency_ms,
        finish_reason=response.stop_reason,
        refusal=("".join(texts) or "the model refused") if refused else None,
    )
    return checked_reply(reply)


def _usage(usage: Any) -> Usage:
    """The tokens of a call. This API counts what was read from its cache and put there apart from other input."""
    plain, read, written = (
        count_of(usage, name) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    whole = None if plain is None else plain + (read or 0) + (written or 0)
    return Usage(whole, count_of(usage, "output_tokens"), None, read, written)
