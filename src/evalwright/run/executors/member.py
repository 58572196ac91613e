"""One worker of a system, as its run sees it: its calls, and what happens to them if it is lost."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import deque
from contextlib import suppress
from itertools import count
from typing import IO, TYPE_CHECKING, Protocol

import msgspec

from evalwright.errors import InputError, TargetError, UnsentCall, counted
from evalwright.model.plan import Placement
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, TraceError
from evalwright.run.call import GRACE, WORKER_LOST, Call
from evalwright.run.executors.frames import (
    CollectedFiles,
    DropCall,
    DroppedCall,
    FailedCall,
    ModelCall,
    ModelReply,
    PrintedLines,
    StalledCall,
    SystemCall,
    SystemClosed,
    SystemReply,
    Up,
    WorkerReady,
    encode,
    framed,
)
from evalwright.session import session
from evalwright.targets.failures import target_error, target_failure

if TYPE_CHECKING:
    from evalwright.run.executors.cluster import Handle, RayCluster

__all__ = ["CrewMember", "Errand", "Home"]

_log = logging.getLogger(__name__)

_up = msgspec.json.Decoder(list[Up])


class Home(Protocol):
    """The crew of a worker: what it is started with, and what it notifies about free places."""

    name: str
    cluster: RayCluster
    placement: Placement
    hello: bytes
    may_be_silent: bool

    def arrived(self) -> None:
        """A worker is ready."""

    def freed(self) -> None:
        """A worker has room."""

    def lost(self) -> None:
        """A worker is gone."""


class CrewMember:
    """One worker: started, opened, then called until it is lost or the run is over."""

    def __init__(self, crew: Home, name: str) -> None:
        self._crew, self._name = crew, name
        self._handle: Handle = None
        self._outbox: deque[bytes] = deque()
        self._answers: dict[int, asyncio.Future[SystemReply | FailedCall]] = {}
        self._dropped: dict[int, float] = {}
        self._calls: dict[int, Call] = {}
        self._held: dict[int, float] = {}
        """Remaining seconds of calls that another call blocks."""
        self._numbers = count(1)
        self._asking: set[asyncio.Task[None]] = set()
        self.places: int = 0
        """Concurrent calls; 0 while it is not ready."""
        self.busy: int = 0
        """Its errands, including those that were given up but have not ended yet."""

    async def work(self) -> str:
        """Start, open and receive messages; returns why it is gone. Raises InputError if its setup fails."""
        cluster = self._crew.cluster
        try:
            self._handle = cluster.start(self._crew.placement)
            opened = msgspec.json.decode(await self._handle.open.remote(self._crew.hello), type=WorkerReady)
        except Exception as error:
            return self._loss_message(error)
        if opened.refused is not None:
            cluster.end(self._handle)
            raise InputError(opened.refused)
        self.places, self.busy = opened.places, 0
        self._crew.arrived()
        try:
            while True:
                self._handle_records(_up.decode(await self._handle.receive.remote()))
        except Exception as error:
            return self._loss_message(error)

    async def close(self) -> TraceError | None:
        """Close its system, and end it. Returns what closing the system raised; that of a lost worker cannot be
        closed."""
        closed = SystemClosed()
        try:
            if self._handle is not None and self.places:
                with suppress(Exception):
                    closed = msgspec.json.decode(await self._handle.close.remote(), type=SystemClosed)
        finally:
            if self._handle is not None:
                self._crew.cluster.end(self._handle)
            for task in self._asking:
                task.cancel()
        return closed.raised

    def errand(self, call: Call, alone: bool) -> Errand:
        """A call to be made here; `alone`: without any other at the same time."""
        places = self.places if alone else 1
        self.busy += places
        return Errand(self, call, next(self._numbers), self._handle, places, self._crew.may_be_silent)

    async def ask(self, number: int, case: Case, trial: int, handle: Handle, call: Call) -> SystemReply | FailedCall:
        """The system's reply, or how it fails. Raises TargetError if the worker is lost."""
        if handle is not self._handle or not self.places:
            raise TargetError("the worker was lost before the call", WORKER_LOST)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._calls[number] = call
        self._send(encode(SystemCall(number, case, trial)))
        try:
            reply: SystemReply | FailedCall = await answer
            return reply
        except (asyncio.CancelledError, UnsentCall):
            if self._answers.pop(number, None) is not None and handle is self._handle and self.places:
                self._dropped[number] = time.monotonic()
                self.busy += 1  # its place stays taken until it has ended
                self._send(encode(DropCall(number)))
            raise
        finally:
            self._answers.pop(number, None)
            self._calls.pop(number, None)
            self._held.pop(number, None)

    def left(self, handle: Handle, places: int) -> None:
        """An errand is over; its worker may have been replaced by now."""
        if handle is self._handle and self.places:
            self.busy -= places
            self._crew.freed()

    def look(self, now: float) -> None:
        """Give the worker up if a cancelled call does not end."""
        if any(now - since > GRACE for since in self._dropped.values()):
            self._crew.cluster.end(self._handle)
            self._dropped.clear()

    def _loss_message(self, error: Exception) -> str:
        from evalwright.run.executors.cluster import reason_of

        return self.leave(reason_of(error))

    def leave(self, why: str) -> str:
        """The worker is gone; its calls are lost."""
        self.places = 0
        self._crew.lost()
        if self._handle is not None:
            self._crew.cluster.end(self._handle)  # one that cannot be reached may be alive, and would continue calling
        self._handle = None
        lost, self._answers = self._answers, {}
        self._dropped.clear()
        for answer in lost.values():
            if not answer.done():
                answer.set_exception(TargetError(f"the worker was lost: {why}", WORKER_LOST))
        if lost:
            _log.warning("a worker of %r was lost with %s: %s", self._crew.name, counted(len(lost), "call"), why)
        return why

    def _send(self, record: bytes) -> None:
        if not self._outbox:
            # Once the tasks that are now ready have run: their calls go into the same message.
            asyncio.get_running_loop().call_soon(self._flush)
        self._outbox.append(record)

    def _flush(self) -> None:
        while self._outbox:
            frame = framed(self._outbox)
            with suppress(Exception):  # the worker is lost: `receive` fails as well, and reports why
                self._handle.send.remote(frame)

    def _handle_records(self, records: list[Up]) -> None:
        for record in records:
            if isinstance(record, (SystemReply, FailedCall)):
                answer = self._answers.get(record.id)
                if answer is not None and not answer.done():
                    answer.set_result(record)
                else:
                    self._over(record.id)  # a late answer no longer concerns this run
            elif isinstance(record, DroppedCall):
                self._over(record.id)
            elif isinstance(record, StalledCall):
                self._hold(record.id)
            elif isinstance(record, PrintedLines):
                sys.stderr.write("".join(f"[{self._name}] {line}\n" for line in record.text.split("\n")))
            else:
                task = asyncio.create_task(self._call_model(record))
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)

    def _hold(self, culprit: int | None) -> None:
        """Calls that another one blocks lose no time; if they end with the worker, they are made again."""
        now = time.monotonic()
        for number, call in self._calls.items():
            if culprit is None and number in self._held:
                call.deadline = now + self._held.pop(number)
            elif culprit not in (None, number) and call.deadline is not None:
                self._held[number] = call.deadline - now
                call.deadline = None

    def _over(self, number: int) -> None:
        if self._dropped.pop(number, None) is not None:
            self.busy -= 1
            self._crew.freed()

    async def _call_model(self, model_call: ModelCall) -> None:
        asking = self._handle
        try:
            reply = ModelReply(model_call.id, await session().models.chat(model_call.request, model_call.purpose))
        except UnsentCall as unsent:
            if (answer := self._answers.get(model_call.by)) is not None and not answer.done():
                answer.set_exception(unsent)
            return
        except Exception as error:
            reply = ModelReply(model_call.id, error=target_failure(error))
        if asking is self._handle:  # the replacement of a lost worker also numbers its own calls from 1
            self._send(encode(reply))


class Errand:
    """One call at one worker, as a target that is called once."""

    __slots__ = ("_call", "_handle", "_number", "_places", "_worker", "latency", "may_be_silent")

    def __init__(
        self, worker: CrewMember, call: Call, number: int, handle: Handle, places: int, may_be_silent: bool
    ) -> None:
        self._call = call
        self._worker, self._number, self._handle, self._places = worker, number, handle, places
        self.may_be_silent: bool = may_be_silent
        self.latency: float | None = None
        """Seconds that the system took, without the transport; None if it did not answer."""

    async def run(self, case: Case, trial: int) -> Answer:
        reply = await self._worker.ask(self._number, case, trial, self._handle, self._call)
        self.latency = reply.latency_ms / 1000
        if isinstance(reply, FailedCall):
            raise target_error(reply.error)
        return reply.answer

    async def files(self, archive: IO[bytes]) -> CollectedFiles:
        """What the call did to its files, which are written to `archive` piece by piece.

        Raises TargetError if the worker is lost.
        """
        from evalwright.run.executors.cluster import reason_of

        try:
            files = msgspec.json.decode(await self._handle.collect.remote(self._number), type=CollectedFiles)
            have = 0
            while have < files.bytes:
                piece = await self._handle.piece.remote(self._number, have)
                archive.write(piece)
                have += len(piece)
            if files.bytes:
                self._handle.discard.remote(self._number)
        except OSError:
            raise
        except Exception as error:
            raise TargetError(f"the worker was lost: {reason_of(error)}", WORKER_LOST) from error
        return files

    def over(self) -> None:
        """The worker has room for another."""
        self._worker.left(self._handle, self._places)
