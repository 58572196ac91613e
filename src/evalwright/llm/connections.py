"""Connections to models: replies are bounded in size, and nothing is led elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from importlib import import_module
from typing import Any

from evalwright.llm.failures import CallFailed

__all__ = ["MOST_BYTES", "bounded"]

MOST_BYTES = 10 * 2**20
"""Bytes of one reply; what is longer is cut off while it arrives."""


def bounded(client_class: Any) -> Any:
    """A client of an SDK's own class. It follows no redirect, which could carry a key elsewhere.

    Compression is not asked for and not accepted, so that the bytes that arrive are all there are.
    """
    return client_class(
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [_bound]},
        follow_redirects=False,
        timeout=None,
    )


async def _bound(response: Any) -> None:
    """Called before the body of a response is read."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise CallFailed("bad_reply", "the reply is compressed, which was not asked for")
    response.stream = _stream_class(type(response).__module__.partition(".")[0])(response.stream)


@cache
def _stream_class(library: str) -> Any:
    """The SDKs use different libraries of the same interface, each of which wants streams of its own class."""
    return type("BoundedStream", (_Bounded, import_module(library).AsyncByteStream), {})


class _Bounded:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        arrived = 0
        async for piece in self._stream:
            arrived += len(piece)
            if arrived > MOST_BYTES:
                raise CallFailed("bad_reply", f"the reply has more than {MOST_BYTES // 2**20} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
