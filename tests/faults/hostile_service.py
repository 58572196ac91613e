"""An HTTP service that misbehaves in the way that a request asks for, and counts what it is asked."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\n"
CAP = 1_000_000
"""What the suites of these tests allow for a response."""


def whole(body: bytes, status: int = 200, *headers: str) -> bytes:
    """A complete response. It says that it closes: a client might send its next request on a connection that ends."""
    lines = [f"HTTP/1.1 {status} Scripted", *headers, f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def sends(data: bytes) -> Script:
    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return script


def stays(data: bytes, half_closed: bool = False) -> Script:
    """Sends something and then keeps the connection open, or half of it."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if half_closed:
            writer.write_eof()
        await asyncio.sleep(60)

    return script


def goes_on(start: bytes, again: bytes, pause: float = 0.0) -> Script:
    """Sends the same bytes without end."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(pause)

    return script


async def reset(writer: asyncio.StreamWriter) -> None:
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


GZIP = "Content-Encoding: gzip"


async def bomb(writer: asyncio.StreamWriter) -> None:
    await sends(whole(gzip.compress(b" " * 64 * 2**20), 200, GZIP))(writer)


LATE = {
    "silent": stays(b""),
    "half a status line": stays(b"HTTP/1.1 2"),
    "headers only": stays(OK + b"Content-Length: 50\r\n\r\n"),
    "half a body": stays(OK + b'Content-Length: 50\r\n\r\n{"output": "fi'),
    "slow bytes of a body": goes_on(OK + b"\r\n", b" ", 0.05),
    "slow bytes of headers": goes_on(OK, b"X: y\r\n", 0.05),
    "slow chunks": goes_on(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 0.05),
    "informational for ever": goes_on(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.01),
}
"""Kinds that end at the time limit."""
BUSY = {f"status {status}": sends(whole(b"no", status, "Retry-After: 0")) for status in (500, 502, 503, 504, 529)}
"""Kinds that are tried again."""
WRONG = {
    **{f"status {s}": sends(whole(b'{"error": "no"}', s)) for s in (400, 401, 403, 404, 408, 413, 418, 422, 429)},
    **{f"redirect {s}": sends(whole(b"", s, "Location: /again")) for s in (301, 302, 303, 307, 308)},
    "redirect to metadata": sends(whole(b"", 302, "Location: http://169.254.169.254/latest/meta-data/")),
    "redirect to a file": sends(whole(b"", 302, "Location: file:///etc/passwd")),
    "redirect to nothing": sends(whole(b"", 302, "Location: http://[::1")),
    "nothing": sends(b""),
    "reset": reset,
    "another protocol": sends(b"SSH-2.0-OpenSSH\r\n"),
    "no status": sends(b"HTTP/1.1 banana\r\n\r\n"),
    "cut headers": sends(OK + b"Content-Le"),
    "wrong length": sends(OK + b"Content-Length: many\r\n\r\n"),
    "two lengths": sends(OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}"),
    "cut body": sends(OK + b'Content-Length: 500\r\n\r\n{"output": "fine"}'),
    "cut chunks": sends(OK + b'Transfer-Encoding: chunked\r\n\r\n12\r\n{"output": "fine"}\r\n'),
    "no chunks": sends(OK + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n"),
    "half closed": stays(OK + b"Content-Length: 50\r\n\r\n{", half_closed=True),
    "20,000 headers": sends(OK + b"".join(b"X-%d: v\r\n" % i for i in range(20_000)) + b"\r\n{}"),
    "headers without end": goes_on(OK, b"X-Again: " + b"a" * 10_000 + b"\r\n"),
    "body without end": goes_on(OK + b"\r\n", b" " * 65_536),
    "too large": sends(whole(b" " * (CAP + 1))),
    "compressed bomb": bomb,
    "compressed twice": sends(whole(gzip.compress(gzip.compress(b"{}")), 200, "Content-Encoding: gzip, gzip")),
    "cut compression": sends(whole(gzip.compress(b'{"output": "fine"}')[:-9], 200, GZIP)),
    "not compressed": sends(whole(b'{"output": "fine"}', 200, GZIP)),
    "unknown compression": sends(whole(b"abc", 200, "Content-Encoding: br")),
    "empty body": sends(whole(b"")),
    "no content": sends(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    "a page": sends(whole(b"<html><script>alert(1)</script></html>")),
    "cut JSON": sends(whole(b'{"output": "fi')),
    "two documents": sends(whole(b'{"output": "fine"}{"output": "fine"}')),
    "deep JSON": sends(whole(b"[" * 100_000)),
    "bad UTF-8": sends(whole(b'{"output": "\xff\xfe\xc3("}')),
    "UTF-16": sends(whole('{"output": "fine"}'.encode("utf-16"))),
    "wrong charset": sends(whole(b'{"output": "\xff"}', 200, "Content-Type: application/json; charset=base64")),
    "huge number": sends(whole(b'{"output": ' + b"1" * 100_000 + b"}")),
    "success with an error": sends(whole(b'{"error": {"message": "the model is overloaded"}}')),
    "success with errors": sends(whole(b'{"errors": [{"message": "no"}], "output": null}')),
}
"""Kinds that are no answer, and that trying again would not mend."""
KINDS = {**LATE, **BUSY, **WRONG, "fine": sends(whole(b'{"output": "fine"}'))}


class Service:
    """What was asked how often, and how many connections were open at the same time."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.open = self.most_open = self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._notice_ends()
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            body = await reader.readexactly(int(length[1]) if length else 0)
            asked = json.loads(body)
            kind = asked["input"]["kind"] if "input" in asked else asked["messages"][-1]["content"]
            self.asked[kind] += 1
            answering = asyncio.ensure_future(KINDS[kind](writer))
            left = asyncio.ensure_future(reader.read())
            await asyncio.wait([answering, left], return_when=asyncio.FIRST_COMPLETED)
            answering.cancel()
            left.cancel()
            await asyncio.gather(answering, left, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            self.open -= 1
            writer.close()

    async def _notice_ends(self) -> None:
        """Count a connection after those that were closed before it began."""
        for _ in range(50):
            await asyncio.sleep(0)
        self.open += 1
        self.most_open = max(self.most_open, self.open)


@contextmanager
def hostile_service() -> Iterator[Service]:
    """The service, in a thread of its own."""
    service, loop, over, ready = Service(), asyncio.new_event_loop(), asyncio.Event(), threading.Event()

    async def serve() -> None:
        listener = await asyncio.start_server(service.handle, "127.0.0.1", 0)
        service.port = listener.sockets[0].getsockname()[1]
        ready.set()
        await over.wait()
        listener.close()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield service
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
