"""Connections for many concurrent calls, below the HTTP library that an SDK uses."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

__all__ = ["lanes"]

_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 60, "TCP_KEEPCNT": 5}
"""Seconds and counts, as Anthropic's client sets them: a model may think for minutes without sending a byte."""


def lanes(client_class: Any) -> Any:
    """A transport for clients of a class: as many connections as there are concurrent calls, each in its own pool.

    The libraries' own pools look at all their connections at the beginning and end of each request, which is a quarter
    of the cost of a call if 50 are made at a time.
    """
    module: str = next(base.__module__ for base in client_class.__mro__ if base.__name__ == "AsyncClient")
    return _lanes_class(module.partition(".")[0])()


@cache
def _lanes_class(library: str) -> Any:
    """The libraries accept only streams of their own classes."""
    http = import_module(library)
    known = [(socket.IPPROTO_TCP, getattr(socket, name), n) for name, n in _KEEPALIVE.items() if hasattr(socket, name)]
    transport = partial(
        http.AsyncHTTPTransport,
        verify=http.create_ssl_context(),
        limits=http.Limits(max_connections=1),
        socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *known],
    )
    stream = type("LentStream", (_LentBody, http.AsyncByteStream), {})
    return type("Lanes", (_Lanes, http.AsyncBaseTransport), {"_made": staticmethod(transport), "_stream": stream})


class _Lanes:
    _made: Callable[[], Any]
    _stream: Callable[..., Any]

    def __init__(self) -> None:
        self._idle: list[Any] = []

    async def handle_async_request(self, request: Any) -> Any:
        # A connection whose request or response fails is closed by its pool and not used again.
        lane = self._idle.pop() if self._idle else self._made()
        response = await lane.handle_async_request(request)
        response.stream = self._stream(response.stream, partial(self._idle.append, lane))
        return response

    async def aclose(self) -> None:
        for lane in self._idle:
            await lane.aclose()


class _LentBody:
    """The body of a response; its end returns the connection."""

    def __init__(self, stream: Any, give_back: Callable[[], None]) -> None:
        self._stream, self._give_back = stream, give_back

    def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: AsyncIterator[bytes] = self._stream.__aiter__()
        return pieces

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._give_back()
