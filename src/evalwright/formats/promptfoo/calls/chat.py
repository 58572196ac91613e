"""Providers that are models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from evalwright.formats.promptfoo.calls import Caller, ProviderCall, ProviderReply
from evalwright.formats.promptfoo.models import request_of, settings_of
from evalwright.formats.promptfoo.providers import Provider
from evalwright.formats.promptfoo.values import as_javascript, compact_json
from evalwright.model.chat import ChatReply, ChatRequest
from evalwright.session import session

__all__ = ["Chat"]

_ENDINGS = {
    "function_call": "tool_calls", "tool_use": "tool_calls", "end_turn": "stop", "stop_sequence": "stop",
    "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter",
}  # fmt: skip
_FILTERED = "Content filtered by provider"
"""promptfoo's output of a reply that a filter left without text."""


class Chat(Caller):
    """Calls a model with a chat interface."""

    def __init__(self, provider: Provider, folder: str) -> None:
        self._provider, self._folder = provider, folder

    async def __call__(self, call: ProviderCall) -> ProviderReply:
        context = call.context
        more = context["prompt"]["config"]
        request = request_of(self._provider, call.prompt, more, self._folder, call.trial, context["vars"])
        reply = await session().models.chat(request, "system")
        tokens = {"prompt": reply.usage.token_input, "completion": reply.usage.token_output}
        remarks = _remarks(reply)
        output = _output(reply, request, remarks, parses=self._parses(request, more))
        return ProviderReply(output, reply.cost_usd, tokens, {"model": reply.model}, remarks=remarks)

    def _parses(self, request: ChatRequest, more: Mapping[str, Any]) -> bool:
        """Whether a reply by a schema is parsed. As in promptfoo, chat completions stay text if the format is in a
        file."""
        if request.api == "responses":
            wanted = (request.extra.get("text") or {}).get("format")
        else:
            wanted = settings_of(self._provider, more).get("response_format")
        return isinstance(wanted, dict) and wanted.get("type") == "json_schema"

    def asks(self) -> Iterator[ChatRequest]:
        yield request_of(self._provider, "", {}, self._folder)


def _remarks(reply: ChatReply) -> dict[str, Any]:
    """Why a reply ended, in OpenAI's words as in promptfoo, whether the model or its filter refused to answer, and how
    likely its tokens were."""
    reason = (reply.finish_reason or "").strip().lower()
    ended = _ENDINGS.get(reason, reason)
    flagged = reply.refusal is not None or ended == "content_filter"
    remarks = {"guardrails": {"flagged": flagged}, **({"finishReason": ended} if ended else {})}
    return {**remarks, **({"logProbs": reply.log_probabilities} if reply.log_probabilities else {})}


def _output(reply: ChatReply, request: ChatRequest, remarks: Mapping[str, Any], *, parses: bool) -> Any:
    """The text, or what it holds; with calls of tools, what promptfoo makes of them: Anthropic's blocks as text, or the
    list of calls, in the whole message if there is text as well."""
    text = reply.text or reply.refusal or (_FILTERED if remarks.get("finishReason") == "content_filter" else "")
    if reply.tool_calls and request.provider == "anthropic":
        blocks = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in reply.tool_calls
        ]
        return "\n\n".join([*filter(None, [reply.text]), *map(compact_json, blocks)])
    if reply.tool_calls:
        written = reply.written_arguments or [compact_json(call.arguments) for call in reply.tool_calls]
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
            for call, arguments in zip(reply.tool_calls, written, strict=True)
        ]
        return {"role": "assistant", "content": reply.text, "tool_calls": calls} if reply.text else calls
    if parses and not reply.refusal:
        with suppress(ValueError):  # a reply that is not what was asked for is for the assertions to judge
            return as_javascript(json.loads(text))
    return text
