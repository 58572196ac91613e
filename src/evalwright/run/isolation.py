"""A target in processes of its own: what it does to its process (exit, abort, memory, descriptors) ends there.

Each call in flight has a worker process to itself. Request and answer are JSON, each preceded by its length,
over a socket that the target's code does not see; its output goes to a pipe, the end of which is kept for errors.
An empty request closes the target.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence

import msgspec

from evalwright.errors import TargetError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, TraceError
from evalwright.processes import ties
from evalwright.session import environment, is_offline
from evalwright.session.workspace import workspace_path
from evalwright.targets.build import build_target
from evalwright.targets.failures import target_error, target_failure

__all__ = ["IsolatedTarget", "Request"]

_LAST_WORDS = 2_000
# The length comes from the target's process: a wrong one must not make ours use all memory.
_LARGEST_ANSWER = 256 * 2**20


class Request(msgspec.Struct):
    """One call, as sent to a worker."""

    case: Case
    trial: int
    workspace: str | None = None
    """The folder of the cell, if it has one."""


class IsolatedTarget:
    """Runs a variant's target in worker processes; a worker that dies or is late is replaced."""

    def __init__(self, variant: Variant, import_paths: Sequence[str]) -> None:
        checked = build_target(variant, import_paths)  # a mistake in the configuration is reported before anything runs
        hello = {"variant": variant, "import_paths": list(import_paths), "offline": is_offline()}
        self._hello = msgspec.json.encode(hello)
        self.address: str | None = getattr(checked, "address", None)
        self._idle: list[_Worker] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, case: Case, trial: int) -> Answer:
        worker = self._idle.pop() if self._idle else await _Worker.start(self._hello)
        try:
            path = workspace_path()
            request = Request(case, trial, None if path is None else str(path))
            reply = await worker.ask(msgspec.json.encode(request))
        except BaseException:
            # A cancelled call, too: its worker is still busy, and would answer the next request with this one's reply.
            self._end(worker)
            raise
        self._idle.append(worker)
        if isinstance(reply, TraceError):
            raise target_error(reply)
        return reply

    async def close(self) -> None:
        """Close the target in each worker. Raises TargetError for what that raises there."""
        idle, self._idle = self._idle, []
        raised = await asyncio.gather(*(worker.close() for worker in idle))
        await asyncio.gather(*self._ending)
        if failed := next(filter(None, raised), None):
            raise target_error(failed)

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        ending = asyncio.create_task(worker.gone())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


class _Worker:
    """One process and the socket to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        # It dies with us by itself; this is for what the target starts in it.
        self._tie = ties.session(process.pid)
        ties.tie(self._tie)
        self._printed = b""
        self._drain = asyncio.create_task(self._keep_last_words())

    @classmethod
    async def start(cls, hello: bytes) -> _Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # modules of the working directory must not take the place of libraries
                "-m",
                "evalwright.run.worker",
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env=dict(environment()),
                start_new_session=True,
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=_LARGEST_ANSWER)
        worker = cls(process, reader, writer)
        await worker._send(hello)
        return worker

    async def ask(self, request: bytes) -> Answer | TraceError:
        try:
            await self._send(request)
            size = int.from_bytes(await self._reader.readexactly(8), "big")
            if size > _LARGEST_ANSWER:
                raise TargetError(f"the answer has {size} bytes, more than {_LARGEST_ANSWER}")
            reply = await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise TargetError(await self._how_it_ended()) from None
        if reply[:1] == b"E":
            return msgspec.json.decode(reply[1:], type=TraceError)
        return msgspec.json.decode(reply[1:], type=Answer)

    async def close(self) -> TraceError | None:
        """Let the target be closed, and end the process. Returns what closing it raised."""
        try:
            reply = await self.ask(b"")
        except TargetError as error:
            return target_failure(error)
        finally:
            self.kill()
            await self.gone()
        return reply if isinstance(reply, TraceError) else None

    def kill(self) -> None:
        """End the process and whatever it started."""
        self._writer.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Wait until a killed process and its pipes are gone."""
        await self._process.wait()
        ties.untie(self._tie)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self._drain, self._writer.wait_closed())

    async def _send(self, data: bytes) -> None:
        self._writer.write(len(data).to_bytes(8, "big") + data)
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def _how_it_ended(self) -> str:
        code = await self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        printed = self._printed.decode(errors="replace").strip()
        return f"the target's process ended with {how}" + (f"; it had printed: {printed}" if printed else "")

    async def _keep_last_words(self) -> None:
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(65_536):
            self._printed = (self._printed + chunk)[-_LAST_WORDS:]
