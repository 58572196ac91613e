"""Connections to models: as many as calls at a time, used again while they are whole, and by way of a proxy."""

import asyncio
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from llm.models import Impatient, request

SAID = {
    "openai": {"choices": [{"finish_reason": "stop", "message": {"content": "hello"}}], "model": "m"},
    "anthropic": {"content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "model": "m"},
}


class Server:
    """Answers so many requests on each connection, and breaks off in the middle of the next answer."""

    def __init__(self, answers=None):
        self.answers, self.connections, self.lines = answers, 0, []

    async def handle(self, reader, writer):
        self.connections += 1
        left = self.answers
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0]))
                self.lines.append(head.partition("\r")[0])
                await asyncio.sleep(0)
                body = json.dumps(SAID["anthropic" if "/messages" in self.lines[-1] else "openai"]).encode()
                answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                if left == 0:
                    writer.write(answer + body[:5])
                    break
                left = None if left is None else left - 1
                writer.write(answer + body)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def talk(server, work):
    async def main():
        listener = await asyncio.start_server(server.handle, "127.0.0.1", 0)
        here = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        models = LiveModels(
            None, ModelChoices(no_cache=True), {"OPENAI_BASE_URL": here, "ANTHROPIC_BASE_URL": here}, Impatient()
        )
        try:
            return await work(models, here)
        finally:
            await models.close()
            listener.close()

    return asyncio.run(main())


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])
def test_connections_are_as_many_as_calls_at_a_time_and_stay(model):
    async def work(models, _):
        for _ in range(4):
            replies = await asyncio.gather(*(models.chat(request(f"q{n}", model)) for n in range(6)))
            assert [reply.text for reply in replies] == ["hello"] * 6

    server = Server()
    talk(server, work)
    assert (server.connections, len(server.lines)) == (6, 24)


def test_a_connection_that_broke_is_not_used_again():
    async def work(models, _):
        return [(await models.chat(request(f"q{n}"))).text for n in range(6)]

    server = Server(answers=2)
    assert talk(server, work) == ["hello"] * 6
    assert (server.connections, len(server.lines)) == (3, 8)


def test_calls_after_the_connections_were_closed_open_others():
    async def work(models, _):
        said = [(await models.chat(request("first"))).text]
        await models.close()
        return [*said, (await models.chat(request("second"))).text]

    server = Server()
    assert talk(server, work) == ["hello"] * 2
    assert server.connections == 2


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="the options are those of Linux")
def test_a_connection_is_kept_alive_while_a_model_thinks():
    """As Anthropic's own client does it: a router on the way forgets connections on which nothing is sent."""

    async def work(models, here):
        await models.chat(request("q"))
        port, found = int(here.rpartition(":")[2]), []
        for place in Path("/proc/self/fd").iterdir():
            with suppress(OSError), socket.socket(fileno=os.dup(int(place.name))) as one:
                if one.getpeername()[1:2] == (port,):
                    options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
                    found.append([one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)])
                    found[-1] += [one.getsockopt(socket.IPPROTO_TCP, option) for option in options]
        return found

    assert talk(Server(), work) == [[1, 60, 60, 5]]


def test_a_call_that_is_cancelled_takes_its_connection_along():
    async def work(models, _):
        asking = asyncio.create_task(models.chat(request("q")))
        while not server.lines:
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return [(await models.chat(request(f"q{n}"))).text for n in range(2)]

    server = Server()
    assert talk(server, work) == ["hello"] * 2
    assert server.connections == 2


def test_the_proxy_of_the_environment_is_used(monkeypatch):
    async def work(models, here):
        monkeypatch.setenv("HTTP_PROXY", here)
        return (await models.chat(request(base_url="http://models.invalid/v1"))).text

    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    server = Server()
    assert talk(server, work) == "hello"
    assert server.lines == ["post http://models.invalid/v1/chat/completions http/1.1"]
