"""Backends, which answer one message at a time in place of an agent on a Letta server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from evalwright.errors import InputError, Problem, TargetError
from evalwright.formats.letta.conversation import Context
from evalwright.formats.letta.functions import function_at
from evalwright.model.chat import ChatMessage, ChatRequest
from evalwright.model.trace import ToolCall
from evalwright.session import session
from evalwright.targets.threads import Threads

__all__ = ["Backend", "FunctionBackend", "backend_of", "request_of", "turn_of"]


class Backend(Protocol):
    """Answers one user message."""

    async def reply(self, message: str, context: Context) -> Any:
        """None, text, a message, or a list of texts and messages."""


def backend_of(spec: str, folder: Path, threads: Threads) -> Backend:
    """The backend for a specification: `file.py:function`, `http(s)://...` or `openai:MODEL[@BASE_URL]`."""
    kind, _, rest = spec.partition(":")
    if kind in ("http", "https"):
        from evalwright.formats.letta.http_backend import HttpBackend

        return HttpBackend(spec)
    if kind == "openai":
        model, _, base = rest.partition("@")
        return _OpenAI(model, base or None)
    path, colon, name = spec.rpartition(":")
    if not colon or not path.endswith(".py"):
        expected = "expected file.py:function, http(s)://..., openai:MODEL or replay:DIR"
        raise InputError(Problem("", f"backend: {expected}, found {spec!r}", key="backend"))
    script = Path(path) if os.path.isfile(path) else folder / path
    return FunctionBackend(function_at(f"{script}:{name}", None, "backend"), threads)


def request_of(backend: Backend, model: str | None) -> ChatRequest | None:
    """The request that a chat model will get, without the text, so that its key can be checked; None for other
    backends."""
    return backend.asks(model) if isinstance(backend, _OpenAI) else None


def turn_of(reply: Any) -> list[dict[str, Any]]:
    """The messages of one turn. Raises TargetError for a reply of another shape."""
    messages = []
    for item in reply if isinstance(reply, list) else [reply]:
        if isinstance(item, str):
            if item or isinstance(reply, list):
                messages.append({"message_type": "assistant_message", "content": item})
        elif isinstance(item, dict):
            messages.append(item)
        elif item is not None:
            raise TargetError(f"expected text, a message or a list of them, found {type(item).__name__}")
    return messages


class FunctionBackend:
    """A user's function of the message and the context."""

    def __init__(self, function: Callable[..., Any], threads: Threads) -> None:
        """`threads` are the target's, which closes them: factories make a backend for each sample."""
        self._function, self._threads = function, threads

    async def reply(self, message: str, context: Context) -> Any:
        return await self._threads.result_of(self._function, message, context)


class _OpenAI:
    """A chat model; memory blocks are its system message, and the conversation is kept over the turns."""

    def __init__(self, model: str, base_url: str | None) -> None:
        self._model, self._base_url = model, base_url

    def asks(self, model: str | None) -> ChatRequest:
        return ChatRequest(model or self._model, [], provider="openai", base_url=self._base_url)

    async def reply(self, message: str, context: Context) -> Any:
        messages: list[ChatMessage] = context.state.setdefault("openai_messages", [])
        messages.append(ChatMessage("user", message))
        memory = "\n\n".join(f"{label}:\n{value}" for label, value in context.blocks.items() if value)
        request = replace(self.asks(context.model), messages=list(messages), system=memory or None)
        reply = await session().models.chat(request, "system")
        text = reply.text or reply.refusal or ""
        messages.append(ChatMessage("assistant", text))
        for name in ("token_input", "token_output"):
            before, more = context.usage.get(name, 0), getattr(reply.usage, name)
            context.usage[name] = None if before is None or more is None else before + more
        return [*map(_tool_call, reply.tool_calls), *([text] if text else [])]


def _tool_call(call: ToolCall) -> dict[str, Any]:
    import json

    message = {"name": call.name, "arguments": json.dumps(call.arguments), "tool_call_id": call.id}
    return {"message_type": "tool_call_message", "tool_call": message}
