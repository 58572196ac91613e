"""A worker of one system, in its own process on some machine: calls the system as a run would in its own process.

It knows nothing about the cluster that carries its messages. The target of prints, the working directory and the
variables are the process's: it has no other purpose, and lives as long as its worker.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import tarfile
import tempfile
import threading
import time
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from evalwright.errors import EvalwrightError, InputError
from evalwright.files.masker import Masker
from evalwright.files.temporary import temporary_folder
from evalwright.model.plan import Variant
from evalwright.model.protocols import Prepared, Target, Workspace
from evalwright.model.trace import Answer, TraceError
from evalwright.registry import load
from evalwright.run.call import out_of_files, set_up, target_of
from evalwright.run.executors.frames import (
    HERE,
    LARGEST_FRAME,
    CollectedFiles,
    Down,
    DropCall,
    DroppedCall,
    FailedCall,
    Hello,
    PrintedLines,
    StalledCall,
    SystemCall,
    SystemClosed,
    SystemReply,
    Up,
    WorkerReady,
    encode,
    framed,
    installed_version,
    replaced,
)
from evalwright.run.executors.model_function import ModelFunction
from evalwright.run.executors.stand_ins import ModelsOfRun, Prints, asking
from evalwright.session import Session, hide, returning
from evalwright.session.network import listen
from evalwright.session.open_files import room_for
from evalwright.session.streams import SecretMask
from evalwright.session.workspace import working_in
from evalwright.targets.failures import target_failure
from evalwright.targets.threads import Threads

__all__ = ["Host"]

T = TypeVar("T")

_TOGETHER = 0.004
"""Seconds for which an answer waits for others to go with it: if shorter, fast systems would pay for a message per
call."""
_LARGEST_ANSWER = 256 * 2**20
_BEAT = 0.25
_STALLED = 1.0
"""Seconds for which the calls' event loop may be blocked before that is reported."""
_FILES = 8
"""Files that a call may have open, as in a run's own process."""


class Host:
    """Created by a cluster, opened once, then sent calls; `receive` returns their outcomes."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._dropped: set[int] = set()
        """Calls that the run has cancelled; other cancellations come from the system's own code."""
        self._files: dict[int, Prepared] = {}
        self._archives: dict[int, IO[bytes]] = {}
        self._threads, self._transfers = Threads(), Threads()
        self._context = contextvars.copy_context()
        self._decoder = msgspec.json.Decoder(list[Down])
        self._control: asyncio.AbstractEventLoop
        # Calls have their own loop and thread: one that blocks the loop does not keep this worker from answering.
        self._loop = asyncio.new_event_loop()
        self._beat = 0.0
        self._watching: asyncio.Task[None]
        self._target: Target
        self._workspace: Workspace | None = None
        self._models = ModelsOfRun(self._send)
        self._masker = Masker({})
        self._mask = SecretMask(lambda: self._masker.secrets)
        self._users = returning()
        """Entered for good: all that works here is users' code."""

    async def open(self, hello: bytes) -> bytes:
        """Prepare the system and its workspace; returns a `WorkerReady`."""
        self._control = asyncio.get_running_loop()
        calls = threading.Thread(target=self._loop.run_forever, name="evalwright-calls", daemon=True)
        calls.start()
        try:
            greeting = msgspec.json.decode(hello, type=Hello)
            if greeting.version != (have := installed_version()):
                raise InputError(f"the worker has evalwright {have or '(unknown)'}, this run {greeting.version}")
            places = await self._there(self._open(greeting))
        except BaseException as error:
            # the setup is users' code; what it raises is reported, rather than a dead worker
            failure = str(error) if isinstance(error, EvalwrightError) else target_failure(error).message
            return encode(WorkerReady(refused=failure))
        self._loop.call_soon_threadsafe(self._tick)
        self._watching = asyncio.create_task(self._watch(calls))
        return encode(WorkerReady(places))

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something in the calls' loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _open(self, hello: Hello) -> int:
        here = str(Path.cwd())
        if hello.folder is not None:
            os.chdir(replaced(hello.folder, HERE, here))
        os.environ.update(hello.environment)
        prints = Prints(self._print)
        sys.stdout, sys.stderr = prints, prints
        Session(owns_process=True, stdout="keep", environment=hello.variables, models=lambda: self._models).__enter__()
        self._users.__enter__()
        hide(hello.secrets)
        self._masker = Masker.of(hello.secrets, os.environ)
        if hello.offline:
            listen(lambda: True)
        variant = msgspec.convert(replaced(msgspec.to_builtins(hello.variant), HERE, here), Variant)
        self._context = contextvars.copy_context()
        if hello.workspace is not None:
            plugin, folder = replaced(msgspec.to_builtins(hello.workspace), HERE, here), hello.suite_folder
            self._workspace = load("workspaces", plugin["type"])(plugin["config"], Path(replaced(folder, HERE, here)))
            await self._threads.call(self._workspace.open)
        paths = [replaced(path, HERE, here) for path in hello.import_paths]
        self._target = ModelFunction(hello.model, paths) if hello.model else target_of(variant, paths)
        if opening := getattr(self._target, "open", None):
            await set_up(variant, opening)
        return room_for(hello.places, _FILES)

    async def send(self, frame: bytes) -> None:
        """Calls to make or to give up, and replies of models."""
        self._loop.call_soon_threadsafe(self._take, self._decoder.decode(frame))

    def _take(self, records: list[Down]) -> None:
        for record in records:
            if isinstance(record, SystemCall):
                # Each call has its own context, in which the session is this worker's.
                call = self._loop.create_task(self._answer(record), context=self._context.copy())
                self._calls[record.id] = call
                call.add_done_callback(partial(self._on_call_end, record.id))
            elif isinstance(record, DropCall):
                if record.id in self._calls:
                    self._dropped.add(record.id)
                    self._calls[record.id].cancel()
            else:
                self._models.resolve(record)

    async def receive(self) -> bytes:
        """The next frame of events; waits until there is one."""
        await self._news.wait()
        if self._calls:
            await asyncio.sleep(_TOGETHER)
        # Before the records are taken: one that is added now is in this frame, or sets the event again.
        self._news.clear()
        frame = framed(self._waiting)
        if self._waiting:
            self._news.set()
        return frame

    def _tick(self) -> None:
        self._beat = time.monotonic()
        self._loop.call_later(_BEAT, self._tick)

    async def _watch(self, calls: threading.Thread) -> None:
        """Report which call blocks the others."""
        reported: int | None = None
        while True:
            await asyncio.sleep(_BEAT)
            stalled = _call_in(calls.ident) if time.monotonic() - self._beat > _STALLED else None
            if stalled != reported:
                reported = stalled
                self._send(StalledCall(reported))

    async def _answer(self, ask: SystemCall) -> None:
        begun = time.monotonic()
        asking.set(ask.id)
        try:
            outcome: Answer | TraceError = await self._answer_to(ask)
        except BaseException as error:  # users' code: SystemExit, too, is an error of this call only
            if isinstance(error, asyncio.CancelledError) and ask.id in self._dropped:
                raise
            outcome = out_of_files(error) or target_failure(error)
        took = (time.monotonic() - begun) * 1000
        if isinstance(outcome, TraceError):
            self._send(FailedCall(ask.id, outcome, took))
            return
        try:
            record = encode(SystemReply(ask.id, outcome, took))
            why = (
                f"it has {len(record):,} bytes, more than {_LARGEST_ANSWER:,}" if len(record) > _LARGEST_ANSWER else ""
            )
        except (TypeError, ValueError, RecursionError) as error:
            record, why = b"", f"{type(error).__name__}: {error}"
        if why:
            self._send(FailedCall(ask.id, TraceError("adapter_error", f"the answer cannot be stored: {why}"), took))
        else:
            self._put(record)

    def _on_call_end(self, number: int, call: asyncio.Task[None]) -> None:
        self._calls.pop(number, None)
        self._dropped.discard(number)
        if call.cancelled():  # also before its first step
            self._send(DroppedCall(number))

    async def _answer_to(self, ask: SystemCall) -> Answer | TraceError:
        if self._workspace is None:
            return await self._target.run(ask.case, ask.trial)
        try:
            prepared = await self._threads.call(self._workspace.prepare, ask.case, ask.trial)
        except (OSError, EvalwrightError) as error:
            return out_of_files(error) or TraceError("workspace_error", f"no workspace could be made: {error}")
        self._files[ask.id] = prepared
        with working_in(prepared.path):
            return await self._target.run(ask.case, ask.trial)

    async def collect(self, number: int) -> bytes:
        """What a call did to its files: a `CollectedFiles`. The archive of the files is kept until `discard`."""
        prepared = self._files.pop(number, None)
        if prepared is None:
            return encode(CollectedFiles())
        try:
            return encode(await self._transfers.call(self._packed_changes, number, prepared))
        except OSError as error:
            return encode(
                CollectedFiles(error=TraceError("workspace_error", f"its files cannot be collected: {error}"))
            )

    def _packed_changes(self, number: int, prepared: Prepared) -> CollectedFiles:
        try:
            with temporary_folder() as folder:
                (into := folder / "files").mkdir()
                changes = prepared.collect(into, self._masker.mask_text if self._masker else None)
                archive = self._archives[number] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `discard`
                with tarfile.open(fileobj=archive, mode="w") as tar:
                    tar.add(into, ".")
                return CollectedFiles(changes, archive.tell())
        finally:
            prepared.remove()

    async def piece(self, number: int, start: int) -> bytes:
        """The bytes of an archive from `start` on, as many as one frame holds."""
        archive = self._archives[number]
        archive.seek(start)
        return archive.read(LARGEST_FRAME)

    async def discard(self, number: int) -> None:
        """Forget the files of a call."""
        if (archive := self._archives.pop(number, None)) is not None:
            archive.close()
        if (prepared := self._files.pop(number, None)) is not None:
            await self._transfers.call(prepared.remove)

    async def close(self) -> bytes:
        """End the calls, the system and the workspaces; returns a `SystemClosed`."""
        return encode(SystemClosed(await self._there(self._close())))

    async def _close(self) -> TraceError | None:
        for call in list(self._calls.values()):
            call.cancel()
        raised = None
        if closing := getattr(getattr(self, "_target", None), "close", None):
            try:
                await closing()
            except BaseException as error:  # users' code: SystemExit, too, is no reason to leave files behind
                raised = target_failure(error)
        if self._workspace is not None:
            await self._threads.call(self._workspace.close)
        return raised

    def _send(self, record: Up) -> None:
        self._put(encode(record))

    def _put(self, record: bytes) -> None:
        self._waiting.append(record)
        if not self._news.is_set():
            self._control.call_soon_threadsafe(self._news.set)

    def _print(self, text: str) -> None:
        with suppress(RuntimeError):  # the worker ends
            self._send(
                PrintedLines(self._mask(text))
            )  # here: the run's machine need not know the variables of this one


def _call_in(thread: int | None) -> int | None:
    """The call that a thread is executing: as in a run's watchdog, its frame is on the stack."""
    frame = sys._current_frames().get(thread or 0)
    while frame is not None:
        if frame.f_code is Host._answer.__code__:
            ask = frame.f_locals.get("ask")
            return ask.id if isinstance(ask, SystemCall) else None
        frame = frame.f_back
    return None
