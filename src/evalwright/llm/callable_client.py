"""Models behind a function of the user's, another package's provider, or litellm: for gateways of one's own.

A provider is called with the `ChatRequest` and gives a `ChatReply`, or only its text; it may be asynchronous.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from evalwright.errors import EvalwrightError
from evalwright.llm.failures import CallFailed
from evalwright.llm.replies import reading, sound
from evalwright.llm.routes import Route
from evalwright.model.chat import ChatReply, ChatRequest
from evalwright.registry import load

__all__ = ["CallableClient", "LitellmClient"]


class CallableClient:
    """The function at `module:attribute`, or the provider that a package registers under a name."""

    def __init__(self, route: Route) -> None:
        place = route.base_url or ""
        try:
            self._function: Callable[[ChatRequest], Any] = _at(place) if ":" in place else load("providers", place)
        except EvalwrightError as error:
            raise CallFailed("bad_request", str(error)) from error
        except Exception as error:
            raise CallFailed("bad_request", f"the provider {place!r} cannot be imported: {error}") from error

    async def chat(self, model: str, request: ChatRequest) -> ChatReply:
        started = time.monotonic()
        try:
            called = inspect.iscoroutinefunction(self._function)
            said = await self._function(request) if called else await asyncio.to_thread(self._function, request)
            said = await said if inspect.isawaitable(said) else said
        except (CallFailed, asyncio.CancelledError):
            raise
        except Exception as error:
            raise CallFailed(
                "connection", f"the provider raised {type(error).__name__}: {error}", again=True
            ) from error
        if isinstance(said, str):
            said = ChatReply(said, model)
        if not isinstance(said, ChatReply):
            raise CallFailed("bad_reply", f"the provider gave {type(said).__name__}, expected a ChatReply or text")
        with reading():
            said = sound(said)
        return msgspec.structs.replace(said, latency_ms=int((time.monotonic() - started) * 1000))

    async def close(self) -> None: ...


def _at(place: str) -> Any:
    module, _, attribute = place.partition(":")
    found: Any = import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


class LitellmClient:
    """Any of litellm's providers: `litellm/<its name of the model>`. litellm is not installed with evalwright."""

    def __init__(self, route: Route) -> None:
        self._litellm = import_module("litellm")

    async def chat(self, model: str, request: ChatRequest) -> ChatReply:
        from evalwright.llm.failures import failure_of
        from evalwright.llm.openai_client import asked_of, reply_of

        started = time.monotonic()
        try:
            said = await self._litellm.acompletion(**asked_of(model, request), num_retries=0)
        except Exception as error:
            raise failure_of(error) from error
        return reply_of(said, model, int((time.monotonic() - started) * 1000))

    async def close(self) -> None: ...
