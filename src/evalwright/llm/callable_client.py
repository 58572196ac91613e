"""Models behind a user's Python function, a provider of another package, or litellm.

A provider is called with the `ChatRequest` and returns a `ChatReply`, or only its text; it may be asynchronous.
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
from evalwright.llm.failures import CallFailed, failure_of
from evalwright.llm.fitting import Fit
from evalwright.llm.replies import checked_reply, reading_reply
from evalwright.llm.routes import Route
from evalwright.model.chat import ChatReply, ChatRequest
from evalwright.registry import load
from evalwright.user_code import user_place

__all__ = ["CallableClient", "LitellmClient"]

_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
)
"""What mistakes in the code raise: the next attempt would raise the same. Anything else may be a gateway's own word for
an overload. So is a plain ValueError, whose subclasses are raised by replies, too, that are not JSON or UTF-8."""


class CallableClient:
    """The function at `module:attribute`, or the provider that a package registers under a name."""

    def __init__(self, route: Route, function: Callable[[ChatRequest], Any] | None = None) -> None:
        """`function` is the one at that place, if it need not be imported."""
        place = route.base_url or ""
        try:
            self._function: Callable[[ChatRequest], Any] = function or (
                _at(place) if ":" in place else load("providers", place)
            )
        except EvalwrightError as error:
            raise CallFailed("bad_request", str(error)) from error
        except Exception as error:
            raise CallFailed("bad_request", f"the provider {place!r} cannot be imported: {error}") from error

    async def chat(self, model: str, request: ChatRequest, fit: Fit) -> ChatReply:
        started = time.monotonic()
        try:
            is_async = inspect.iscoroutinefunction(self._function)
            response = await self._function(request) if is_async else await asyncio.to_thread(self._function, request)
            # An object with an asynchronous `__call__`, or a partial of one, reveals only now what it is.
            response = await response if inspect.isawaitable(response) else response
        except (CallFailed, asyncio.CancelledError):
            raise
        except Exception as error:
            mistaken = isinstance(error, _MISTAKES) or type(error) is ValueError
            kind = "exception" if mistaken else "connection"
            raise CallFailed(kind, f"the provider raised {_described(error)}", retryable=not mistaken) from error
        if isinstance(response, str):
            response = ChatReply(response, model)
        if not isinstance(response, ChatReply):
            name = type(response).__name__
            raise CallFailed("bad_reply", f"the provider returned {name}, expected a ChatReply or text")
        with reading_reply():
            response = checked_reply(response)
        return msgspec.structs.replace(response, latency_ms=int((time.monotonic() - started) * 1000))

    async def close(self) -> None: ...


def _described(error: Exception) -> str:
    place = user_place(error)
    return f"{type(error).__name__}: {error}" + (f" ({place})" if place else "")


def _at(place: str) -> Any:
    module, _, attribute = place.partition(":")
    value: Any = import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)
    return value


class LitellmClient:
    """Any provider of litellm: `litellm/<litellm's name of the model>`. litellm is not installed with evalwright."""

    def __init__(self, route: Route) -> None:
        self._litellm = import_module("litellm")
        place = {"api_base": route.base_url, "api_key": route.key}
        self._place = {name: value for name, value in place.items() if value is not None}

    async def chat(self, model: str, request: ChatRequest, fit: Fit) -> ChatReply:
        from evalwright.llm.openai_client import reply_of, request_body

        started = time.monotonic()
        try:
            body = request_body(model, request, fit)
            response = await self._litellm.acompletion(**body, **self._place, num_retries=0)
        except Exception as error:
            raise failure_of(error) from error
        return reply_of(response, model, int((time.monotonic() - started) * 1000), fit.max_tokens)

    async def close(self) -> None: ...
