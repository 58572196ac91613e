"""A module `ray` whose workers are in this process and answer as a test says: what the executor does is seen at once.

It has the names that are asked of Ray. Whether they do what Ray's do is for the tests with a real cluster.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec

from evalwright.model.trace import Answer
from evalwright.run.executors.frames import (
    Down,
    DropCall,
    DroppedCall,
    ModelReply,
    SystemCall,
    SystemReply,
    Up,
    WorkerReady,
    encode,
)

DIES = object()
"""What a script gives for a call that ends its worker."""
WAITS = object()
"""What a script gives for a call that is not answered, unless the test does that."""

_down = msgspec.json.Decoder(list[Down])


class DiedError(Exception):
    """What each call of a worker raises that is gone."""


async def _at_once(_: Worker) -> None: ...


class FarEnd(ModuleType):
    """The module. `script(worker, case_id)` gives what becomes of a call: a text, DIES or WAITS."""

    def __init__(self, script: Callable[[Worker, str], object], refused: str | None = None) -> None:
        super().__init__("ray")
        self.__spec__ = ModuleSpec("ray", None)
        self.script, self.refused, self.workers = script, refused, list[Worker]()
        self.has_left = False
        self.most_workers = 100
        self.opening: Callable[[Worker], Awaitable[None]] = _at_once
        """What a worker waits for before it is ready."""
        self.dropped: Callable[[Worker, int], None] = lambda worker, call: worker.say(DroppedCall(call))
        """What a worker does with a call that is cancelled."""

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: object) -> None: ...

    def shutdown(self) -> None:
        threading.Event().wait(0.05)  # whoever leaves a cluster waits for that
        self.has_left = True

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(gcs_address="127.0.0.1:1")

    def nodes(self) -> list[dict[str, object]]:
        return [{"Alive": True}, {"Alive": True}, {"Alive": False}]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "memory": 2.0**30}

    def kill(self, worker: Worker, no_restart: bool) -> None:
        assert no_restart
        worker.die()

    def remote(self, _: type) -> Any:
        return SimpleNamespace(options=lambda **wanted: SimpleNamespace(remote=lambda: self._worker(wanted)))

    def _worker(self, wanted: dict[str, object]) -> Worker:
        worker = Worker(self, len(self.workers), wanted)
        self.workers.append(worker)
        return worker


class Worker:
    """One worker, whose methods have `remote` as those of an actor."""

    def __init__(self, end: FarEnd, number: int, wanted: dict[str, object]) -> None:
        self._end, self.number, self.wanted = end, number, wanted
        self.calls: list[str] = []
        self.heard: list[ModelReply] = []
        """What models have said."""
        self.together: list[int] = []
        """The number of calls in each message."""
        self.at: dict[int, str] = {}
        self.most_at_once = 0
        self._said: asyncio.Queue[Up | None] = asyncio.Queue()
        self.is_alive = True
        for name in ("open", "send", "receive", "close"):
            setattr(self, name, SimpleNamespace(remote=getattr(self, f"_{name}")))

    def die(self) -> None:
        self.is_alive = False
        self._said.put_nowait(None)

    def say(self, said: Up) -> None:
        if isinstance(said, (SystemReply, DroppedCall)):
            self.at.pop(said.id, None)
        self._said.put_nowait(said)

    async def _open(self, _: bytes) -> bytes:
        if self.number >= self._end.most_workers:
            await asyncio.Future()
        await self._end.opening(self)
        return encode(WorkerReady(8, self._end.refused))

    def _send(self, frame: bytes) -> None:
        records = _down.decode(frame)
        self.together.append(sum(isinstance(one, SystemCall) for one in records))
        for record in records:
            if isinstance(record, SystemCall):
                self.at[record.id] = record.case.id
                self.calls.append(record.case.id)
                self.most_at_once = max(self.most_at_once, len(self.at))
                asyncio.get_running_loop().call_soon(self._play, record)
            elif isinstance(record, DropCall):
                self._end.dropped(self, record.id)
            else:
                self.heard.append(record)

    def _play(self, ask: SystemCall) -> None:
        outcome = self._end.script(self, ask.case.id) if self.is_alive else WAITS
        if outcome is DIES:
            self.die()
        elif outcome is not WAITS:
            self.say(SystemReply(ask.id, Answer.of(str(outcome)), 1.0))

    async def _receive(self) -> bytes:
        said = [await self._said.get()] if self.is_alive else [None]
        while not self._said.empty():
            said.append(self._said.get_nowait())
        if None in said:
            raise DiedError("its worker process has died")
        return encode(said)

    async def _close(self) -> None: ...
