"""How much asking judges costs beside the waiting itself: 1,000 calls to a local server that answers in 100 ms.

    python benchmarks/judges.py

Goals: at most 1.15 times the ideal wall time at concurrency 50, and at most 0.05 ms of CPU a call from the cache.
The official client and its HTTP library are measured alone, too, in turns with ours; the best of three rounds counts.
The server is a process of its own, so that its work is not counted.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import openai

from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest

CALLS, WIDTH, SECONDS, ROUNDS = 1_000, 50, 0.1, 3
BODY = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": '{"score": 1}'}}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
}


def serve(ready: Connection) -> None:
    """Answer every request after a while, on connections that stay open."""
    body = json.dumps(BODY).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                await reader.readexactly(length)
                await asyncio.sleep(SECONDS)
                writer.write(answer)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


class Turn(NamedTuple):
    """What so many calls took: wall time as a multiple of the ideal one, and CPU milliseconds a call."""

    wall: float
    cpu: float


async def drive(call: Callable[[int], Awaitable[Any]]) -> tuple[Turn, list[Any]]:
    """Make all calls, `WIDTH` at a time, after a few whose time does not count: connections are made in them."""
    gate = asyncio.Semaphore(WIDTH)

    async def one(number: int) -> Any:
        async with gate:
            return await call(number)

    await asyncio.gather(*map(one, range(-WIDTH, 0)))
    wall, cpu = time.perf_counter(), time.process_time()
    replies = await asyncio.gather(*map(one, range(CALLS)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Turn(wall / (CALLS / WIDTH * SECONDS), cpu / CALLS * 1000), replies


async def ours(port: int, cache: Path) -> tuple[Turn, list[ChatReply]]:
    models = LiveModels(choices=ModelChoices(cache=cache), environment={"OPENAI_BASE_URL": base_url(port)})
    try:
        return await drive(lambda n: models.chat(ChatRequest("gpt-test", [ChatMessage("user", f"question {n}")])))
    finally:
        await models.close()


async def client_alone(port: int) -> Turn:
    """The official client, as its documentation shows it."""
    async with openai.AsyncOpenAI(api_key="none", base_url=base_url(port), max_retries=0) as client:

        async def call(number: int) -> Any:
            messages: Any = [{"role": "user", "content": f"question {number}"}]
            return await client.chat.completions.create(model="gpt-test", messages=messages)

        return (await drive(call))[0]


async def http_alone(port: int) -> Turn:
    """The HTTP library below it."""
    async with openai.DefaultAsyncHttpxClient(timeout=None) as client:

        async def call(number: int) -> Any:
            body = {"model": "gpt-test", "messages": [{"role": "user", "content": f"question {number}"}]}
            return (await client.post(f"{base_url(port)}/chat/completions", json=body)).json()

        return (await drive(call))[0]


def base_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def main() -> int:
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port, sound = here.recv(), True
    turns: dict[str, list[Turn]] = {name: [] for name in ("ours", "cached", "client alone", "HTTP library alone")}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            cache = Path(folder) / f"{number}.sqlite"
            asked, cached = (asyncio.run(ours(port, cache)) for _ in range(2))
            sound &= not any(reply.cached for reply in asked[1]) and all(reply.cached for reply in cached[1])
            found = asked[0], cached[0], asyncio.run(client_alone(port)), asyncio.run(http_alone(port))
            for name, turn in zip(turns, found, strict=True):
                turns[name].append(turn)
    server.kill()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f}, {sys.version.split()[0]}, openai {openai.__version__}")
    if not sound:
        print("VOID: replies are wrong")
    for name, all_of_it in turns.items():
        wall, cpu = min(turn.wall for turn in all_of_it), min(turn.cpu for turn in all_of_it)
        ideal = "" if name == "cached" else f"{wall:6.2f} x ideal wall time"
        print(f"{name:19}{cpu:7.3f} ms CPU a call{ideal}")
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
