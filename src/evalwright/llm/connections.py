"""Connections to models: replies are limited in size and must be valid UTF-8, and redirects are not followed."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

from evalwright.llm.failures import CallFailed

__all__ = ["MOST_BYTES", "bounded", "headers_to", "replies_up_to"]

MOST_BYTES = 10 * 2**20
"""Bytes of one reply; the connection is closed as soon as more arrive."""
Hearing = Callable[[Mapping[str, str]], None]
_heard_by: ContextVar[Hearing | None] = ContextVar("_heard_by", default=None)
"""Receives the headers of the responses to this task's call, as one client serves many calls at a time."""
_most_bytes: ContextVar[int] = ContextVar("_most_bytes", default=MOST_BYTES)


@contextmanager
def replies_up_to(most_bytes: int) -> Iterator[None]:
    """Allow larger replies in the block than elsewhere."""
    token = _most_bytes.set(most_bytes)
    try:
        yield
    finally:
        _most_bytes.reset(token)


@contextmanager
def headers_to(hears: Hearing) -> Iterator[None]:
    """Pass the headers of each response that arrives in the block to `hears`, including those of rejections."""
    token = _heard_by.set(hears)
    try:
        yield
    finally:
        _heard_by.reset(token)


def bounded(client_class: Any) -> Any:
    """A client of an SDK's own class. It follows no redirects, which could send the key to another host.

    Compressed replies are neither requested nor accepted: a few bytes could unpack to any number. Raises CallFailed if
    the environment names a proxy or certificates that cannot be used.
    """
    # imported here: runs that call no model do not need them
    from urllib.request import getproxies

    from evalwright.llm.lanes import lanes

    try:
        # The HTTP library's own pool is kept if it has to find the proxy for an address.
        transport = {} if getproxies() else {"transport": lanes(client_class)}
        return client_class(
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [_bound]},
            follow_redirects=False,
            timeout=None,
            **transport,
        )
    except (OSError, ValueError) as error:
        problem = "*_PROXY, SSL_CERT_FILE or SSL_CERT_DIR of the environment cannot be used"
        raise CallFailed("adapter_error", f"{problem}: {error}") from error


async def _bound(response: Any) -> None:
    """Limit the body of a response; called before it is read."""
    if (hears := _heard_by.get()) is not None:
        hears(response.headers)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise CallFailed("bad_reply", "the reply is compressed although that was not requested")
    response.encoding = "utf-8"  # JSON and events have no other encoding, whatever a header says
    bounded_stream = _stream_class(type(response).__module__.partition(".")[0])
    # The text of a rejection is only shown; its status says what happened.
    response.stream = bounded_stream(response.stream, _most_bytes.get(), response.is_success)


@cache
def _stream_class(library: str) -> Any:
    """A class for the streams of one HTTP library: the SDKs use several, and each accepts only its own class."""
    return type("BoundedStream", (_BoundedStream, import_module(library).AsyncByteStream), {})


class _BoundedStream:
    def __init__(self, stream: Any, most_bytes: int, checked: bool) -> None:
        self._stream, self._most = stream, most_bytes
        self._decoder = getincrementaldecoder("utf-8")("strict" if checked else "replace")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        arrived = 0
        async for piece in self._stream:
            arrived += len(piece)
            if arrived > self._most:
                raise CallFailed("bad_reply", f"the reply is larger than {self._most // 2**20} MiB")
            self._check(piece)
            yield piece
        self._check(b"", final=True)

    def _check(self, piece: bytes, *, final: bool = False) -> None:
        """The HTTP library would replace undecodable bytes by U+FFFD, and that would be judged like an answer."""
        try:
            self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            raise CallFailed("bad_reply", "the reply is not valid UTF-8", retryable=True) from error

    async def aclose(self) -> None:
        await self._stream.aclose()
