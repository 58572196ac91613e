"""Models behind the OpenAI API, called through the official client: chat completions, embeddings, moderations."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from evalwright.llm.connections import bounded
from evalwright.llm.failures import CallFailed, failure_of
from evalwright.llm.fitting import Fit
from evalwright.llm.posts import body_and_options, objects_of, posted
from evalwright.llm.replies import arguments_in, checked_reply, count_of, empty_reply, reading_reply, silent
from evalwright.llm.routes import DEPLOYMENTS, Route
from evalwright.llm.streamed_replies import openai_completion
from evalwright.llm.thinking import content_and_thinking
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest, Embedding, Moderation, Usage
from evalwright.model.trace import ToolCall

if TYPE_CHECKING:
    from evalwright.llm.batches import BatchApi

__all__ = ["OpenAIClient", "reply_of", "request_body"]

_FAR = 1e6
"""From here on, a logarithm is none of a probability that a model computes."""
_NO_KEY = "no-key-needed"
"""The client cannot be created without a key, which a server on this machine may not need."""


class OpenAIClient:
    """One endpoint. The client's own retries and time limit are off: they are handled only in `retries`."""

    def __init__(self, route: Route) -> None:
        import openai

        address, _, query = (route.base_url or "").partition("?")
        options = dict(parse_qsl(query))
        dated = DEPLOYMENTS in address
        addressing = {"api_version": options["api-version"]} if dated else {"default_query": options or None}
        client_class: Any = openai.AsyncAzureOpenAI if dated else openai.AsyncOpenAI
        self._client = client_class(
            api_key=route.key or _NO_KEY,
            base_url=address or None,
            max_retries=0,
            timeout=None,
            http_client=bounded(openai.DefaultAsyncHttpxClient),
            **addressing,
        )
        self._errors: type[Exception] = openai.OpenAIError

    async def chat(self, model: str, request: ChatRequest, fit: Fit) -> ChatReply:
        if request.api == "responses":
            from evalwright.llm.openai_responses import respond

            return await respond(self._client, self._errors, model, request, fit)
        started, first = time.monotonic(), None
        body = request_body(model, request, fit)
        with reading_reply():
            try:
                if request.stream is True:
                    response, first = await openai_completion(await self._streamed_response(_as_body(body)), started)
                else:
                    response = await posted(self._client, "/chat/completions", body)
            except self._errors as error:
                raise failure_of(error) from error
            reply = reply_of(response, model, int((time.monotonic() - started) * 1000), fit.max_tokens)
            return msgspec.structs.replace(reply, first_ms=first)

    async def _streamed_response(self, body: dict[str, Any]) -> Any:
        # without the option no usage is sent, and the cost would be unknown
        options = {"include_usage": True, **body["extra_body"].get("stream_options", {})}
        whole = {**body["extra_body"], "stream_options": options}
        return await self._client.chat.completions.create(**{**body, "extra_body": whole, "stream": True})

    @cached_property
    def batches(self) -> BatchApi:
        from evalwright.llm.batch_apis import OpenAIBatches

        return OpenAIBatches(self._client, self._errors)

    def batch_question(self, model: str, request: ChatRequest, fit: Fit) -> dict[str, Any]:
        """The request in the form that batches need. Raises CallFailed."""
        if request.api == "responses":
            raise CallFailed("bad_request", "batches use the chat completions API, not responses")
        whole, _ = body_and_options(request_body(model, request, fit))
        return whole

    def batch_reply(self, model: str, body: dict[str, Any], fit: Fit) -> ChatReply:
        with reading_reply():
            return reply_of(objects_of(json.dumps(body)), model, 0, fit.max_tokens)

    async def embed(self, model: str, texts: Sequence[str]) -> Embedding:
        with reading_reply():
            try:
                # Named because the client defaults to base64, which many compatible servers do not know.
                response = await self._client.embeddings.create(model=model, input=list(texts), encoding_format="float")
            except self._errors as error:
                raise failure_of(error) from error
            data = sorted(response.data, key=lambda item: item.index)
            if [item.index for item in data] != list(range(len(texts))):
                raise ValueError(f"expected {len(texts)} vectors, one for each text, found {len(data)}")
            vectors = [list(item.embedding) for item in data]
            return checked_reply(
                Embedding(vectors, model, Usage(count_of(response.usage, "prompt_tokens"), token_output=0))
            )

    async def moderate(self, model: str, text: str) -> Moderation:
        with reading_reply():
            try:
                response = await self._client.moderations.create(model=model, input=text)
            except self._errors as error:
                raise failure_of(error) from error
            result = response.results[0]
            scores = {
                name: float(score) for name, score in result.category_scores.model_dump(by_alias=True).items() if score
            }
            flags = result.categories.model_dump(by_alias=True).items()
            return checked_reply(Moderation(result.flagged, scores, model, [name for name, flag in flags if flag]))

    async def close(self) -> None:
        await self._client.close()


def request_body(model: str, request: ChatRequest, fit: Fit) -> dict[str, Any]:
    """The request in the form of the chat completions API."""
    messages = [{"role": "system", "content": request.system}] if request.system else []
    body: dict[str, Any] = {
        "model": model,
        "messages": [*messages, *map(_message, request.messages)],
        **request.extra,
    }
    if fit.temperature is not None:
        body["temperature"] = fit.temperature
    if fit.max_tokens is not None:
        body[fit.limit] = fit.max_tokens
    if request.schema is not None and fit.reply_format != "prompt":
        body["response_format"] = _format(request.schema, fit.reply_format)
    if request.tools:
        tools = [{"type": "function", "function": tool} for tool in request.tools]
        body["tools"] = [*request.extra.get("tools", ()), *tools]
    if request.tool_choice:
        names_tool = request.tool_choice not in ("auto", "none", "required")
        body["tool_choice"] = (
            {"type": "function", "function": {"name": request.tool_choice}} if names_tool else request.tool_choice
        )
    return body


def _as_body(body: dict[str, Any]) -> dict[str, Any]:
    """The request as `extra_body`: the client would try all its types on each message, and reject other ones."""
    whole, options = body_and_options(body)
    return {"model": whole["model"], "messages": [], **options, "extra_body": whole}


def _format(schema: dict[str, Any], how: str | None) -> dict[str, Any]:
    if how == "json_object":
        return {"type": "json_object"}
    strict = {"strict": True} if how == "strict" else {}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, **strict}}


def _message(message: ChatMessage) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name:
        plain["name"] = message.name
    if message.tool_call_id:
        plain["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        plain["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
            for c in message.tool_calls
        ]
    return plain


def _thinking(message: Any) -> str | None:
    """A reasoning model's thinking, under either name that servers use for it."""
    texts = (getattr(message, name, None) for name in ("reasoning_content", "reasoning"))
    return next((text for text in texts if isinstance(text, str) and text), None)


def _refusal(message: Any) -> str | None:
    """The refusal in a message, in a field of its own or as a part of the content."""
    parts = message.content if isinstance(message.content, list) else ()
    refusals = [part["refusal"] for part in parts if isinstance(part, dict) and part.get("type") == "refusal"]
    return getattr(message, "refusal", None) or "".join(refusals) or None


def reply_of(response: Any, model: str, latency_ms: int, limit: int | None = None) -> ChatReply:
    """The reply in a response of the chat completions API, at most `limit` tokens. Raises CallFailed."""
    if not getattr(response, "choices", None):
        raise empty_reply(response, "choices")
    with reading_reply():
        choice = response.choices[0]
        message = choice.message
        content, thought = content_and_thinking(message.content)
        refusal = _refusal(message)
        calls = [_call(call) for call in message.tool_calls or ()]
        written = [_written(call) for call in message.tool_calls or ()]
        if (legacy := getattr(message, "function_call", None)) is not None:
            calls.append(ToolCall(legacy.name, None, arguments_in(legacy.arguments)))
            written.append(legacy.arguments or "")
        if content is None and not (calls or refusal):
            raise silent(choice.finish_reason, limit)
        details = getattr(response.usage, "completion_tokens_details", None)
        input_details = getattr(response.usage, "prompt_tokens_details", None)
        usage = Usage(
            count_of(response.usage, "prompt_tokens"),
            count_of(response.usage, "completion_tokens"),
            count_of(details, "reasoning_tokens"),
            count_of(input_details, "cached_tokens"),
        )
        reply = ChatReply(
            text="" if content is None else content,
            model=response.model or model,
            thinking=_thinking(message) or thought,
            tool_calls=calls,
            usage=usage,
            latency_ms=latency_ms,
            finish_reason=choice.finish_reason,
            refusal=refusal,
            written_arguments=written or msgspec.UNSET,
            log_probabilities=_log_probabilities(choice) or msgspec.UNSET,
        )
        return checked_reply(reply)


def _log_probabilities(choice: Any) -> list[float]:
    """Of each token; none at all if that of one cannot be read: a reply is not lost for them."""
    tokens = getattr(getattr(choice, "logprobs", None), "content", None)
    values: list[Any] = [getattr(token, "logprob", None) for token in tokens] if isinstance(tokens, list) else []
    # Some servers send -Infinity, which has no form in stored JSON.
    return [float(v) for v in values] if all(isinstance(v, float | int) and abs(v) < _FAR for v in values) else []


def _written(call: Any) -> str:
    """The arguments of a call as the model wrote them."""
    custom = getattr(call, "custom", None)
    return (call.function.arguments if custom is None else custom.input) or ""


def _call(call: Any) -> ToolCall:
    if getattr(call, "custom", None) is not None:  # its input is any text
        return ToolCall(call.custom.name, call.id, {"_raw": call.custom.input})
    return ToolCall(call.function.name, call.id, arguments_in(call.function.arguments))
