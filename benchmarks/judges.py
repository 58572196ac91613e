"""How much asking judges costs beside the waiting itself: 1,000 calls to a local server that answers in 100 ms.

    python benchmarks/judges.py

Goals: at most 1.15 times the ideal wall time at concurrency 50, and at most 0.05 ms of CPU a call from the cache.
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
from multiprocessing.connection import Connection
from pathlib import Path

from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest

CALLS, WIDTH, SECONDS = 1_000, 50, 0.1
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


async def ask(port: int, cache: Path) -> tuple[float, float, list[ChatReply]]:
    """Wall seconds, CPU seconds and the replies of all calls."""
    environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    models = LiveModels(choices=ModelChoices(cache=cache), environment=environment)
    gate = asyncio.Semaphore(WIDTH)

    async def one(number: int) -> ChatReply:
        async with gate:
            return await models.chat(ChatRequest("gpt-test", [ChatMessage("user", f"question {number}")]))

    await models.chat(ChatRequest("gpt-test", [ChatMessage("user", "warm up")]))
    wall, cpu = time.perf_counter(), time.process_time()
    replies = await asyncio.gather(*map(one, range(CALLS)))
    spent = time.perf_counter() - wall, time.process_time() - cpu
    await models.close()
    return *spent, replies


def main() -> int:
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.sqlite"
        wall, cpu, asked = asyncio.run(ask(port, cache))
        again_wall, again_cpu, kept = asyncio.run(ask(port, cache))
    server.kill()
    sound = not any(reply.cached for reply in asked) and all(reply.cached for reply in kept)
    ideal = CALLS / WIDTH * SECONDS
    print(f"{os.cpu_count()} processors, {sys.version.split()[0]}" + ("" if sound else "  VOID: replies are wrong"))
    print(f"asked   {wall / ideal:6.3f} x ideal wall time (goal 1.15), {cpu / CALLS * 1000:.2f} ms CPU a call")
    print(f"cached  {again_cpu / CALLS * 1000:6.3f} ms CPU a call (goal 0.05), {again_wall:.2f} s wall")
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
