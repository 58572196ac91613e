"""Models behind the Anthropic Messages API, called through the official client."""

from __future__ import annotations

import json
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from evalwright.llm.connections import bounded
from evalwright.llm.failures import failure_of
from evalwright.llm.fitting import ANTHROPIC_TOKENS, Fit
from evalwright.llm.posts import body_and_options, objects_of, posted
from evalwright.llm.replies import checked_reply, count_of, empty_reply, reading_reply, silent, tool_content
from evalwright.llm.routes import Route
from evalwright.llm.streamed_replies import anthropic_message
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, ServedCall, Usage
from evalwright.model.trace import ToolCall

if TYPE_CHECKING:
    from evalwright.llm.batches import BatchApi

__all__ = ["AnthropicClient"]

_REPLY = "reply"
"""The tool whose input is the reply, for models that cannot follow a schema in any other way."""
_CACHED_CHARACTERS = 4_096
"""Characters from which Anthropic caches a marked prompt (about 1,024 tokens); shorter ones are not cached."""
_NO_KEY = "no-key-needed"
"""The client cannot be created without a key, which a server on this machine may not need."""


class AnthropicClient:
    """One endpoint. A reply by schema comes as text (`output_config`) or, from older models, as the input of a tool."""

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

    async def chat(self, model: str, request: ChatRequest, fit: Fit) -> ChatReply:
        started, first = time.monotonic(), None
        body = _request_body(model, request, fit)
        with reading_reply():  # also around the call: the client itself fails on replies of a wrong shape
            try:
                if request.stream is True:
                    events = await self._client.messages.create(**_as_body(body), stream=True)
                    response, first = await anthropic_message(events, started)
                else:
                    response = await posted(self._client, "/v1/messages", body)
            except self._errors as error:
                raise failure_of(error) from error
            reply = _reply(response, model, int((time.monotonic() - started) * 1000), fit)
            return msgspec.structs.replace(reply, first_ms=first)

    @cached_property
    def batches(self) -> BatchApi:
        from evalwright.llm.batch_apis import AnthropicBatches

        return AnthropicBatches(self._client, self._errors)

    def batch_question(self, model: str, request: ChatRequest, fit: Fit) -> dict[str, Any]:
        """The request in the form that batches need."""
        whole, _ = body_and_options(_request_body(model, request, fit))
        return whole

    def batch_reply(self, model: str, body: dict[str, Any], fit: Fit) -> ChatReply:
        with reading_reply():
            return _reply(objects_of(json.dumps(body)), model, 0, fit)

    async def close(self) -> None:
        await self._client.close()


def _as_body(body: dict[str, Any]) -> dict[str, Any]:
    """The arguments for the client: what only newer or older servers know bypasses its list of parameters."""
    whole, options = body_and_options(body)
    required = {key: whole.pop(key) for key in ("model", "max_tokens", "messages")}
    return {**required, **options, "extra_body": whole}


def _request_body(model: str, request: ChatRequest, fit: Fit) -> dict[str, Any]:
    extra = dict(request.extra)
    output = dict(extra.pop("output_config", {}))
    if (effort := extra.pop("reasoning_effort", None)) is not None:
        output.setdefault("effort", effort)
    if fit.reply_format == "strict":
        output["format"] = {"type": "json_schema", "schema": request.schema}
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": fit.max_tokens or ANTHROPIC_TOKENS,
        "messages": _merged_messages(request.messages),
        **extra,
        **({"output_config": output} if output else {}),
    }
    system = [request.system or "", *(str(m.content) for m in request.messages if m.role == "system")]
    if any(system):
        body["system"] = "\n\n".join(filter(None, system))
    if fit.temperature is not None:
        body["temperature"] = fit.temperature
    if fit.reply_format == "tool":
        body["tools"] = [{"name": _REPLY, "description": "Give the reply.", "input_schema": request.schema}]
        body["tool_choice"] = {"type": "tool", "name": _REPLY}
    if request.tools:
        tools = [
            {"name": t["name"], "description": t.get("description", ""), "input_schema": t["parameters"]}
            for t in request.tools
        ]
        body["tools"] = [*extra.get("tools", ()), *tools]
    _mark_head(body)
    if request.tool_choice and request.tool_choice != "none":
        kinds = {"auto": {"type": "auto"}, "required": {"type": "any"}}
        body["tool_choice"] = kinds.get(request.tool_choice, {"type": "tool", "name": request.tool_choice})
    return body


def _mark_head(body: dict[str, Any]) -> None:
    """Have the provider cache the tools and the system prompt, if they are long enough to be cached.

    They are the same in every cell; what follows is not.
    """
    system = body.get("system")
    if isinstance(system, str) and len(system) + len(json.dumps(body.get("tools", ""))) >= _CACHED_CHARACTERS:
        body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]


def _merged_messages(messages: Any) -> list[dict[str, Any]]:
    """The messages as this API accepts them: consecutive tool results form one message of the user."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        reply = _message(message)
        last = merged[-1] if merged else None
        if message.role == "tool" and last and last["role"] == "user" and isinstance(last["content"], list):
            last["content"] += reply["content"]
        else:
            merged.append(reply)
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
    """A part of a message in the form of this API; images come in the form of OpenAI's, other parts stay as they
    are."""
    image = part.get("image_url") if isinstance(part, dict) else None
    if image is None:
        return part
    url = str(image.get("url") if isinstance(image, dict) else image)
    kind, inline, data = url.removeprefix("data:").partition(";base64,")
    if url.startswith("data:") and inline:
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _reply(response: Any, model: str, latency_ms: int, fit: Fit) -> ChatReply:
    blocks = getattr(response, "content", None)
    if not isinstance(blocks, list):
        raise empty_reply(response, "content")
    texts = [b.text for b in blocks if b.type == "text"]
    thinking = [b.thinking for b in blocks if b.type == "thinking"]
    calls = [_call(b) for b in blocks if b.type == "tool_use"]
    served = _served_calls(blocks)
    if fit.reply_format == "tool" and calls:
        # text beside the tool is kept in front of its input: a second verdict in it must be noticed
        texts += [json.dumps(call.arguments, ensure_ascii=False) for call in calls]
        calls = []
    if not (texts or calls or response.stop_reason == "refusal"):
        raise silent(response.stop_reason, fit.max_tokens)
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
        served_calls=served or msgspec.UNSET,
    )
    return checked_reply(reply)


def _call(block: Any) -> ToolCall:
    return ToolCall(block.name, block.id, block.input if isinstance(block.input, dict) else {"_raw": block.input})


def _served_calls(blocks: list[Any]) -> list[ServedCall]:
    """The calls that the provider itself ran: `server_tool_use`, `mcp_tool_use`, and their results."""
    calls = [_call(b) for b in blocks if b.type.endswith("_tool_use")]
    results = {b.tool_use_id: b.content for b in blocks if b.type.endswith("_tool_result")} if calls else {}
    return [ServedCall(call, tool_content(results[call.id]) if call.id in results else None) for call in calls]


def _usage(usage: Any) -> Usage:
    """The tokens of a call. This API counts input that is read from or written to its cache separately."""
    plain, read, written = (
        count_of(usage, name) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    whole = None if plain is None else plain + (read or 0) + (written or 0)
    return Usage(whole, count_of(usage, "output_tokens"), None, read, written)
