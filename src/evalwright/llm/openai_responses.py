"""OpenAI's Responses API, through the official client."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from evalwright.llm.failures import failure_of
from evalwright.llm.fitting import Fit
from evalwright.llm.posts import posted
from evalwright.llm.replies import arguments_in, checked_reply, count_of, reading_reply, silent
from evalwright.llm.served_calls import served_call
from evalwright.model.chat import ChatReply, ChatRequest, Usage
from evalwright.model.trace import ToolCall

__all__ = ["respond"]


async def respond(client: Any, errors: type[Exception], model: str, request: ChatRequest, fit: Fit) -> ChatReply:
    """The reply to a request. Raises CallFailed."""
    started = time.monotonic()
    with reading_reply():
        try:
            response = await posted(client, "/responses", _body(model, request, fit))
        except errors as error:
            raise failure_of(error) from error
        return _reply(response, model, int((time.monotonic() - started) * 1000), fit.max_tokens)


def _body(model: str, request: ChatRequest, fit: Fit) -> dict[str, Any]:
    extra = dict(request.extra)
    if (effort := extra.pop("reasoning_effort", None)) is not None:
        extra["reasoning"] = {"effort": effort, **extra.get("reasoning", {})}
    body: dict[str, Any] = {
        "model": model,
        "input": [{"role": message.role, "content": message.content} for message in request.messages],
        **extra,
    }
    if request.system:
        body["instructions"] = request.system
    if fit.temperature is not None:
        body["temperature"] = fit.temperature
    if fit.max_tokens is not None:
        body["max_output_tokens"] = fit.max_tokens
    if request.schema and fit.reply_format in ("strict", "json_schema"):
        form = {
            "type": "json_schema",
            "name": "reply",
            "schema": request.schema,
            "strict": fit.reply_format == "strict",
        }
        body["text"] = {**body.get("text", {}), "format": form}
    elif fit.reply_format == "json_object":
        body["text"] = {**body.get("text", {}), "format": {"type": "json_object"}}
    return body


def _end_reason(response: Any) -> str | None:
    """Why the reply ended, in the terms of chat completions if it was cut off."""
    details = getattr(response, "incomplete_details", None)
    cut = response.status == "incomplete" and getattr(details, "reason", None) == "max_output_tokens"
    return "length" if cut else response.status


def _reply(response: Any, model: str, latency_ms: int, limit: int | None) -> ChatReply:
    texts, thoughts, calls, served, refusal = [], [], [], [], None
    for item in response.output:
        if item.type == "reasoning":
            thoughts += [part.text for part in (*(item.summary or ()), *(item.content or ()))]
        if item.type == "function_call":
            calls.append(ToolCall(item.name, item.call_id, arguments_in(item.arguments)))
        elif item.type == "custom_tool_call":
            calls.append(ToolCall(item.name, item.call_id, {"_raw": item.input}))
        elif item.type.endswith("_call"):
            served.append(served_call(item))
        for part in item.content if item.type == "message" else ():
            if part.type == "refusal":
                refusal = part.refusal
            else:
                texts.append(part.text)
    if not (texts or calls or refusal):
        raise silent(_end_reason(response), limit)
    reply = ChatReply(
        text="".join(texts),
        model=response.model or model,
        thinking="\n\n".join(thoughts) or None,
        tool_calls=calls,
        usage=_usage(response.usage),
        latency_ms=latency_ms,
        finish_reason=_end_reason(response),
        refusal=refusal,
        served_calls=served or msgspec.UNSET,
    )
    return checked_reply(reply)


def _usage(usage: Any) -> Usage:
    sent, output = (getattr(usage, f"{name}_tokens_details", None) for name in ("input", "output"))
    return Usage(
        count_of(usage, "input_tokens"),
        count_of(usage, "output_tokens"),
        count_of(output, "reasoning_tokens"),
        count_of(sent, "cached_tokens"),
    )
