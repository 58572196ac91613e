"""A module `ray` whose workers are processes of this machine, each with a real `Host`: what a system meets there."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import warm
from evalwright.run.executors.host import Host
from run.executors.far_end import WAITS, DiedError, FarEnd

TESTS = Path(__file__).parents[2]
SECRET = "sesame-canary-77"
"""The value of the variable KEY_HERE, where a test has the fixture `near`."""
METHODS = ("open", "send", "receive", "collect", "piece", "discard", "close")


class NearEnd(FarEnd):
    """The module. As Ray does, it copies the folder that is sent; workers start in the copy, or else above it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(lambda *_: WAITS)
        self.copy, self.options = folder, dict[str, Any]()
        self._head = socket.create_server(("127.0.0.1", 0))

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address=f"127.0.0.1:{self._head.getsockname()[1]}")

    def close(self) -> None:
        """After the run: wait until no worker is left."""
        self._head.close()
        for worker in self.workers:
            worker.must_be_gone()  # type: ignore[attr-defined]

    def init(self, **options: Any) -> None:
        self.options = options
        if sent := options.get("runtime_env", {}).get("working_dir"):
            left_out = [name.strip("/") for name in options["runtime_env"]["excludes"]]
            shutil.copytree(sent, self.copy, ignore=shutil.ignore_patterns(*left_out))

    def _worker(self, wanted: dict[str, object]) -> Any:
        variables = self.options.get("runtime_env", {}).get("env_vars", {})
        worker = Near(self.copy if self.copy.exists() else self.copy.parent, variables, wanted)
        self.workers.append(worker)  # type: ignore[arg-type]
        return worker


class Near:
    """One worker. Messages are pickles, each preceded by its length (8 bytes)."""

    def __init__(self, folder: Path, variables: Mapping[str, str], wanted: Mapping[str, object]) -> None:
        self.wanted = wanted
        self._server = socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.get_running_loop()
        self._numbers = count()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._there = self._loop.create_task(self._live())
        self._writer: asyncio.StreamWriter | None = None
        self.is_alive = True
        environment = {**os.environ, **variables, "PYTHONPATH": str(TESTS)}
        program = "import sys; from run.executors.near_end import serve; serve(int(sys.argv[1]))"
        words = ["-c", program, str(self._server.getsockname()[1])]
        self.process = threading.Thread(target=self._run, args=(words, folder, environment), daemon=True)
        self.process.start()
        for name in METHODS:
            setattr(self, name, SimpleNamespace(remote=lambda *given, name=name: self._asked(name, given)))

    def _run(self, words: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.ended = warm.run(words, cwd=folder, env=environment)
        with suppress(RuntimeError):  # the run is over
            self._loop.call_soon_threadsafe(self.die)

    async def _live(self) -> None:
        self._server.setblocking(False)
        connection, _ = await self._loop.sock_accept(self._server)
        self._server.close()
        reader, self._writer = await asyncio.open_connection(sock=connection)
        self._hearing = self._loop.create_task(self._hear(reader))

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                number, given, failure = await _message(reader)
                answer = self._answers.pop(number)
                if answer.done():
                    continue
                if failure is None:
                    answer.set_result(given)
                else:
                    answer.set_exception(RuntimeError(failure))
        self.die()

    def _asked(self, name: str, given: tuple[object, ...]) -> asyncio.Future[Any]:
        number = next(self._numbers)
        answer = self._answers[number] = self._loop.create_future()
        answer.add_done_callback(lambda one: one.cancelled() or one.exception())  # not all are awaited
        sending = self._loop.create_task(self._send(number, name, given))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)
        return answer

    async def _send(self, number: int, name: str, given: tuple[object, ...]) -> None:
        await self._there
        if self._writer is None or not self.is_alive:
            self.die()
        else:
            _write(self._writer, (number, name, given))

    def must_be_gone(self) -> None:
        self._server.close()
        self.process.join(60)
        assert not self.process.is_alive()

    def die(self) -> None:
        """End the process, and with it all that is awaited of it."""
        self.is_alive = False
        if self._writer is not None:
            self._writer.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(DiedError("its worker process has died"))


def serve(port: int) -> None:
    """What a worker's process does until the other side is gone."""
    asyncio.run(_serve(port))


async def _serve(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    host = Host()

    async def call(number: int, name: str, given: tuple[Any, ...]) -> None:
        try:
            _write(writer, (number, await getattr(host, name)(*given), None))
        except Exception as error:
            _write(writer, (number, None, repr(error)))

    calls = set()
    while True:
        try:
            calls.add(asyncio.create_task(call(*await _message(reader))))
        except (asyncio.IncompleteReadError, ConnectionError):
            os._exit(0)  # whatever a call is at


async def _message(reader: asyncio.StreamReader) -> Any:
    return pickle.loads(  # noqa: S301 - the other side is ours
        await reader.readexactly(int.from_bytes(await reader.readexactly(8)))
    )


def _write(writer: asyncio.StreamWriter, message: object) -> None:
    data = pickle.dumps(message)
    writer.write(len(data).to_bytes(8) + data)
