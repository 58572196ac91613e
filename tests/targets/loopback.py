"""A server on loopback that sends scripted bytes, and one call of an http target against it."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from evalwright.errors import TargetError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.registry import load

CASE = Case(id="c1", input={"user_message": 'say "hi"', "n": 3}, metadata={"k": [1, 2]})
GOOD = {"answer": "fine"}
PATIENCE = 30
"""Seconds after which a test has failed; no test waits that long."""


def reply(body=b"", status=200, headers=(), length=True):
    """A whole response; a body that is not bytes is sent as JSON."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Scripted", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*pieces, end=True, headers=()):
    """A response in chunks, without the last one if it has no `end`."""
    head = "\r\n".join(["HTTP/1.1 200 OK", *headers, "Transfer-Encoding: chunked"]).encode() + b"\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + (b"0\r\n\r\n" if end else b"")


class Server:
    """Answers the n-th request with the n-th script (the last one again and again): bytes, or `async (writer)`.

    A connection ends after a script that is a function.
    """

    def __init__(self, *scripts):
        self._scripts = scripts
        self.requests = []
        self.open = self.most_open = self.connections = 0
        self.port = 0

    async def handle(self, reader, writer):
        self.open += 1
        self.connections += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            self.open -= 1
            writer.close()

    async def _one(self, reader, writer):
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = first.split(" ")
        script = self._scripts[min(len(self.requests), len(self._scripts) - 1)]
        self.requests.append({"method": method, "path": path, "headers": headers, "body": body})
        if isinstance(script, bytes):
            writer.write(script)
            await writer.drain()
            return True
        await script(writer)
        return False


@asynccontextmanager
async def listening(server, tls=None):
    """A server that handles connections to its `port`, with TLS if it has a context for that."""
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


def serving(*scripts):
    return listening(Server(*scripts))


def build(evalh_rules=False, **config):
    return load("targets", "http")(Variant("v", "http", config, evalh_rules=evalh_rules))


@asynccontextmanager
async def opened(**config):
    target = build(**config)
    await target.open()
    try:
        yield target
    finally:
        await target.close()


async def _asked(script, case, config):
    config = {"response_mapping": {"final_answer": "$.answer"}, **config}
    async with serving(script) as server:
        endpoint = config.pop("endpoint", "http://127.0.0.1:{port}/ask").format(port=server.port)
        async with opened(endpoint=endpoint, **config) as target, asyncio.timeout(PATIENCE):
            return await target.run(case, 0), server


def ask(script, case=CASE, **config):
    """The answer to one case."""
    return asyncio.run(_asked(script, case, config))[0]


def failure(script, **config):
    """The error of one case."""
    with pytest.raises(TargetError) as raised:
        ask(script, **config)
    return raised.value


def sending(data, end=True):
    """A script that sends these bytes; without `end` it closes only its half of the connection."""

    async def script(writer):
        writer.write(data)
        await writer.drain()
        if not end:
            writer.write_eof()
            await asyncio.sleep(PATIENCE)

    return script


def sent(case=CASE, **config):
    """The request that one case makes."""
    return asyncio.run(_asked(reply({}), case, {"allow_missing": ["final_answer"], **config}))[1].requests[0]
