"""Runs a command so that it can neither flood us, nor outlive us, nor make us wait.

Each command leads a session of its own. When it has ended, or the call is cancelled, the whole session is killed, and
so are processes that left the session but still hold our pipes; should we be killed, `ties` does that. Only SIGKILL is
used: waiting for a process that ignores SIGTERM would only cost time. A process that left the session and closed its
pipes, as daemons do, is beyond reach.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evalwright.processes import ties
from evalwright.processes.process_table import kill, kill_session, writers

__all__ = ["OUTPUT_LIMIT", "CapturedOutput", "FinishedCommand", "finished", "run_command"]

OUTPUT_LIMIT = 10 * 2**20
"""Bytes of each stream that are kept; the rest is read, so that the command is not blocked, but only counted."""
_LAST_WORDS = 4_000
"""Bytes kept from the end of each stream: an error message comes last, and may lie beyond the limit."""
_CHUNK = 65_536
_MOMENT = 0.5
"""Seconds that pipes may stay open once the session is dead; after that, a process outside it must be holding them."""
_DEATH = 3.0
"""Seconds to wait for a killed process; below the time after which the runner abandons a cancelled call."""


@dataclass(slots=True)
class CapturedOutput:
    """What a command wrote to one stream."""

    kept: bytearray = field(default_factory=bytearray)
    """The beginning, up to the limit."""
    size: int = 0
    """Total number of bytes written."""
    last: bytes = b""
    """The end."""

    @property
    def cut(self) -> bool:
        return self.size > len(self.kept)

    def add(self, chunk: bytes, limit: int) -> None:
        self.size += len(chunk)
        self.kept += chunk[: limit - len(self.kept)]
        self.last = (self.last + chunk[-_LAST_WORDS:])[-_LAST_WORDS:]


@dataclass(slots=True)
class FinishedCommand:
    """How a command ended and what it wrote."""

    exit_code: int
    """Negative: the number of the signal that ended it."""
    stdout: CapturedOutput
    stderr: CapturedOutput

    def how(self) -> str:
        """`exit code 3` or `signal SIGSEGV`."""
        if self.exit_code >= 0:
            return f"exit code {self.exit_code}"
        with suppress(ValueError):
            return f"signal {signal.Signals(-self.exit_code).name}"
        return f"signal {-self.exit_code}"


async def run_command(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: bytes = b"",
    output_limit: int = OUTPUT_LIMIT,
    on_stdout: Callable[[bytes], None] | None = None,
) -> FinishedCommand:
    """Run `command`, found on the PATH of `env`, to its end. `env` is its whole environment.

    `on_stdout` gets all output on stdout as it arrives, whatever the limit; it must not raise. Limit the time by
    cancelling the call: however the call ends, even by the death of this process, nothing of the command is left.
    Raises OSError if it cannot be started.
    """
    running = _RunningCommand(command, env, cwd, stdin, output_limit, on_stdout)
    try:
        await running.ended.wait()
    finally:
        running.kill()
        # A task of its own behind a shield: a second cancellation must not leave a zombie and open pipes behind.
        ending = asyncio.create_task(running.clear_up())
        _endings.add(ending)
        ending.add_done_callback(_endings.discard)
        await asyncio.shield(ending)
    return FinishedCommand(running.exit_code(), running.stdout, running.stderr)


def finished(command: Sequence[str], *, env: Mapping[str, str], patience: float) -> FinishedCommand:
    """Like `run_command`, for a short command, in code that may block; its output is held as a whole.

    Raises OSError if it cannot be started, and TimeoutError after `patience` seconds.
    """
    stdin, end = os.pipe()
    os.close(end)  # so the command reads nothing, as from /dev/null, and no other process holds this file
    try:
        process, tied = ties.start(
            command, mark=stdin, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    finally:
        os.close(stdin)
    try:
        streams = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if process.returncode is None:
            _end(process)
        ties.untie(*tied)
    outputs = [CapturedOutput(bytearray(text), len(text), text[-_LAST_WORDS:]) for text in streams]
    return FinishedCommand(process.returncode, *outputs)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that writes to its pipes, which are not read: who has left the session may hold them."""
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None and not pipe.closed]
    kill_session(process.pid)
    kill(writers({os.fstat(pipe.fileno()).st_ino for pipe in pipes}))
    for pipe in pipes:
        pipe.close()
    process.wait()


_endings: set[asyncio.Task[None]] = set()
"""Keeps the tasks alive, as the event loop holds only weak references to them."""


class _RunningCommand:
    """A started command and our ends of its pipes."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        stdin: bytes,
        limit: int,
        on_stdout: Callable[[bytes], None] | None,
    ) -> None:
        self._process, self._pipes, self._ties = _start_command(command, env, cwd, with_stdin=bool(stdin))
        _die_first(self._process.pid)
        self._loop = asyncio.get_running_loop()
        self.stdout, self.stderr = CapturedOutput(), CapturedOutput()
        self._on_stdout = on_stdout
        self.ended, self._silent = asyncio.Event(), asyncio.Event()
        self._stdin = memoryview(stdin)
        self._watching: asyncio.Task[None] | None = None
        self._pidfd: int | None = None
        self._outputs = set[int]()
        try:
            self._connect(limit)
        except BaseException:  # KeyboardInterrupt included: the process has started, and only this code knows of it
            self.kill()
            self._process.wait()
            self._let_go()
            raise

    def _connect(self, limit: int) -> None:
        for pipe, captured in zip(self._pipes, (self.stdout, self.stderr), strict=True):
            os.set_blocking(pipe, False)
            self._outputs.add(pipe)
            self._loop.add_reader(pipe, self._read, pipe, captured, limit)
        if self._process.stdin is not None:
            descriptor = self._process.stdin.fileno()
            os.set_blocking(descriptor, False)
            self._loop.add_writer(descriptor, self._write, descriptor)
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
            self._loop.add_reader(self._pidfd, self._on_end)
        except (AttributeError, OSError):  # not on Linux, or not on this kernel
            self._watching = asyncio.create_task(self._poll())

    def _read(self, descriptor: int, captured: CapturedOutput, limit: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            captured.add(chunk, limit)
            if self._on_stdout is not None and captured is self.stdout:
                self._on_stdout(chunk)
            return
        self._loop.remove_reader(descriptor)
        self._outputs.discard(descriptor)
        if not self._outputs:
            self._silent.set()

    def _write(self, descriptor: int) -> None:
        try:
            self._stdin = self._stdin[os.write(descriptor, self._stdin[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._stdin = self._stdin[:0]  # the command does not want the rest
        if not self._stdin:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._loop.remove_writer(self._process.stdin.fileno())
            self._process.stdin.close()

    def _on_end(self) -> None:
        assert self._pidfd is not None
        self._loop.remove_reader(self._pidfd)
        self.ended.set()

    async def _poll(self) -> None:
        while self._process.poll() is None:
            await asyncio.sleep(0.01)
        self.ended.set()

    def kill(self) -> None:
        """Kill the session. Its leader is reaped only afterwards, so that no other process can get its number."""
        kill_session(self._process.pid)

    async def clear_up(self) -> None:
        """Reap the killed process, read what is left in its pipes and close them."""
        try:
            self._close_stdin()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), _DEATH)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0)
            await self._read_the_rest()
        finally:
            self._let_go()

    async def _read_the_rest(self) -> None:
        for attempt in range(2):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._silent.wait(), _MOMENT)
                return
            if attempt == 0:  # after the second wait the pipes are closed, whoever holds their other ends
                kill(writers({os.fstat(descriptor).st_ino for descriptor in self._outputs}))

    def _let_go(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        self._close_stdin()
        for pipe in self._pipes:
            self._loop.remove_reader(pipe)
            os.close(pipe)
        self._pipes = ()
        ties.untie(*self._ties)

    def exit_code(self) -> int:
        code = self._process.poll()
        return -signal.SIGKILL if code is None else code


class _Started(NamedTuple):
    """A process, our ends of its output and errors, and its ties."""

    process: subprocess.Popen[bytes]
    pipes: tuple[int, ...]
    ties: tuple[str, ...]


def _start_command(command: Sequence[str], env: Mapping[str, str], cwd: str | None, *, with_stdin: bool) -> _Started:
    """Start a command. Raises OSError."""
    (output, its_output), (errors, its_errors) = pairs = _pipes(2)
    try:
        process, tied = ties.start(
            command,
            mark=output,
            env=env,
            cwd=cwd,
            bufsize=0,
            stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL,
            stdout=its_output,
            stderr=its_errors,
        )
    except BaseException:  # nothing else knows these ends yet
        os.close(output)
        os.close(errors)
        raise
    finally:  # if ours stayed open, reading the pipes would never end
        for _, its_end in pairs:
            os.close(its_end)
    return _Started(process, (output, errors), tied)


def _pipes(count: int) -> list[tuple[int, int]]:
    """This many pipes, or none if too many files are open. Raises OSError."""
    pipes: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            pipes.append(os.pipe())  # noqa: PERF401 - what was made before a failure has to be closed
    except OSError:
        for pair in pipes:
            for end in pair:
                os.close(end)
        raise
    return pipes


def _die_first(pid: int) -> None:
    """Make Linux kill this process rather than ours when memory runs out."""
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
