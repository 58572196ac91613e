"""The clients of one run's models, by route."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from evalwright.llm.choices import ModelChoices
from evalwright.llm.failures import CallFailed
from evalwright.llm.packages import needed_package
from evalwright.llm.routes import Route, load_library

__all__ = ["Clients", "method_of"]


class Clients:
    """Clients that are created at first use, unless the run may not call the model or lacks its key."""

    def __init__(self, choices: ModelChoices) -> None:
        self._choices = choices
        self._made: dict[Route, Any] = {}

    @property
    def keys(self) -> set[str]:
        """The keys of models that they hold."""
        return {route.key for route in self._made if route.key}

    async def of(self, route: Route) -> Any:
        """The client for a route. Raises CallFailed if it may not be called, or needs a key or a package.

        Its package is imported in a thread, so that concurrent calls do not lose seconds of their time limits.
        """
        if self._choices.no_network and not route.is_loopback:
            raise CallFailed("network_refused", f"{route.model!r} is not on this machine, and --no-network is set")
        if route.missing_key is not None:
            raise CallFailed("authentication", route.without_key)
        where = route._replace(model="") if route.interface != "callable" else route
        if where not in self._made:
            await asyncio.to_thread(load_library, route.interface)
            placed = None if self._choices.placed is None else await self._choices.placed(route)
        if where not in self._made:  # checked again: another call may have created it meanwhile
            self._made[where] = placed or _made(route)
        return self._made[where]

    async def close(self) -> None:
        """Close their connections."""
        for client in self._made.values():
            await client.close()
        self._made.clear()


def method_of(client: Any, what: str, route: Route) -> Callable[..., Awaitable[Any]]:
    """What a client embeds or moderates with. Raises CallFailed if its interface cannot do that."""
    method: Callable[..., Awaitable[Any]] | None = getattr(client, what, None)
    if method is None:
        service = "embeddings" if what == "embed" else "moderations"
        raise CallFailed("bad_request", f"{route.model!r} has no {service}: its interface is {route.interface}")
    return method


def _made(route: Route) -> Any:
    try:
        if route.interface in ("callable", "litellm"):
            from evalwright.llm.callable_client import CallableClient, LitellmClient

            return (CallableClient if route.interface == "callable" else LitellmClient)(route)
        if route.interface == "anthropic":
            from evalwright.llm.anthropic_client import AnthropicClient

            return AnthropicClient(route)
        from evalwright.llm.openai_client import OpenAIClient

        return OpenAIClient(route)
    except ImportError as error:
        message = needed_package(route) or f"{route.model!r} cannot be called: {error}"
        raise CallFailed("not_installed", message) from error
