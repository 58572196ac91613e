"""Models behind the Anthropic Messages interface, through the official client."""

from __future__ import annotations

import time
from typing import Any

from evalwright.llm.connections import bounded
from evalwright.llm.failures import CallFailed, failure_of
from evalwright.llm.replies import count_of, reading, sound
from evalwright.llm.routes import Route
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, Usage
from evalwright.model.trace import ToolCall

__all__ = ["AnthropicClient"]

_MAX_TOKENS = 4096
_NO_KEY = "no-key-needed"


class AnthropicClient:
    """One endpoint. A JSON reply is asked for in words: the system message of the request says what it must be."""

    def __init__(self, route: Route) -> None:
        import anthropic

        self._client = anthropic.AsyncAnthropic(
            api_key=route.key or _NO_KEY,
            base_url=route.base_url,
            max_retries=0,
            timeout=None,
            http_client=bounded(anthropic.DefaultAsyncHttpxClient),
        )
        self._errors: type[Exception] = anthropic.AnthropicError

    async def chat(self, model: str, request: ChatRequest) -> ChatReply:
        started = time.monotonic()
        with reading():
            try:
                said = await self._client.messages.create(**_asked(model, request))
            except self._errors as error:
                raise failure_of(error) from error
            return _reply(said, model, int((time.monotonic() - started) * 1000))

    async def close(self) -> None:
        await self._client.close()


def _asked(model: str, request: ChatRequest) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens or _MAX_TOKENS,
        "messages": _merged(request.messages),
        **request.extra,
    }
    system = [request.system or "", *(str(m.content) for m in request.messages if m.role == "system")]
    if any(system):
        asked["system"] = "\n\n".join(filter(None, system))
    if request.temperature is not None:
        asked["extra_body"] = {**asked.get("extra_body", {}), "temperature": request.temperature}
    if request.tools:
        asked["tools"] = [
            {"name": t["name"], "description": t.get("description", ""), "input_schema": t["parameters"]}
            for t in request.tools
        ]
    if request.tool_choice and request.tool_choice != "none":
        kinds = {"auto": {"type": "auto"}, "required": {"type": "any"}}
        asked["tool_choice"] = kinds.get(request.tool_choice, {"type": "tool", "name": request.tool_choice})
    return asked


def _merged(messages: Any) -> list[dict[str, Any]]:
    """Results of tools that follow each other are one message of the user, as the interface wants it."""
    said: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        one = _message(message)
        if said and message.role == "tool" and isinstance(said[-1]["content"], list) and said[-1]["role"] == "user":
            said[-1]["content"] += one["content"]
        else:
            said.append(one)
    return said


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
    """A part of a message as this interface has it; what is not an image of OpenAI's interface stays."""
    image = part.get("image_url") if isinstance(part, dict) else None
    if image is None:
        return part
    url = str(image.get("url") if isinstance(image, dict) else image)
    kind, inline, data = url.removeprefix("data:").partition(";base64,")
    if url.startswith("data:") and inline:
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _reply(said: Any, model: str, latency_ms: int) -> ChatReply:
    blocks = getattr(said, "content", None)
    if not isinstance(blocks, list):
        raise CallFailed("bad_reply", "the reply has no content", again=True)
    texts = [b.text for b in blocks if b.type == "text"]
    thinking = [b.thinking for b in blocks if b.type == "thinking"]
    calls = [
        ToolCall(b.name, b.id, b.input if isinstance(b.input, dict) else {"_raw": b.input})
        for b in blocks
        if b.type == "tool_use"
    ]
    usage = getattr(said, "usage", None)
    refused = said.stop_reason == "refusal"
    reply = ChatReply(
        text="".join(texts),
        model=said.model or model,
        thinking="\n\n".join(thinking) or None,
        tool_calls=calls,
        usage=Usage(count_of(usage, "input_tokens"), count_of(usage, "output_tokens")),
        latency_ms=latency_ms,
        finish_reason=said.stop_reason,
        refusal=("".join(texts) or "the model refused") if refused else None,
    )
    return sound(reply)
