"""The other side of `workers`: a clean interpreter that forks a child for each piece of foreign code.

A child knows nothing of earlier pieces. Request and reply are JSON, each preceded by its length. Only the standard
library is imported here, so that it starts fast and its children contain nothing of the run.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import json
import os
import re
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from evalwright.sandbox.walls import Walls

__all__ = ["main"]

_LARGEST_REPLY = 64_000
"""Bytes; less than a pipe of Linux holds (64 KiB), so that a child writes its reply at once and can end."""
_LONGEST = 2000
"""Characters that are kept of printed text and of messages."""
_CODE = "<code>"


def main(descriptor: int) -> None:
    """Answer requests from a socket until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which closes the socket
    walls = Walls()
    missing = walls.raise_up()
    # Existing objects are never collected again: the collector would touch, and so copy, their pages in every child.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=descriptor) as connection:
        while (request := _frame(connection.fileno())) is not None:
            task = json.loads(request)
            reply = _run_in_child(request, task["seconds"], walls, connection)
            body = json.dumps({**reply, "missing_walls": missing, "nonce": task["nonce"]}).encode()
            connection.sendall(len(body).to_bytes(8, "big") + body)


def _run_in_child(request: bytes, seconds: float, walls: Walls, connection: socket.socket) -> dict[str, Any]:
    """The reply of a new child to the request; nothing of the child is left afterwards."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            connection.close()
            os.close(reading)
            walls.enter(seconds)
            _answer(request, writing)
        except BaseException as error:  # SystemExit, too: a child must never get back to the loop of `main`
            _write(writing, {"error": "sandbox", "message": f"{type(error).__name__}: {error}"[:_LONGEST]})
        finally:
            os._exit(0)
    os.close(writing)  # otherwise the end of the child would not be seen as the end of the pipe
    reply: dict[str, Any] | None = {}
    try:
        reply = _read_reply(reading, seconds, connection)
    finally:
        os.close(reading)
        status = _end(child, at_once=reply is not None)
    if reply is not None:
        return reply
    if os.WIFSIGNALED(status):
        return {"error": "exit", "message": f"ended with {signal.Signals(os.WTERMSIG(status)).name}"}
    return {"error": "exit", "message": f"ended with exit code {os.WEXITSTATUS(status)} before it gave a verdict"}


def _read_reply(reading: int, seconds: float, connection: socket.socket) -> dict[str, Any] | None:
    """The reply of a child, or the error `timeout`; None if it ended without a reply."""
    deadline = time.monotonic() + seconds
    received = b""
    while len(received) < 8 or len(received) < 8 + int.from_bytes(received[:8], "big"):
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([reading, connection.fileno()], [], [], left)
        if not ready:
            return {"error": "timeout", "message": f"took more than {seconds:g} s and was stopped"}
        if connection.fileno() in ready:
            raise SystemExit  # the run has closed the socket and no longer waits for the reply
        chunk = os.read(reading, 65_536)
        received += chunk
        if not chunk:
            return None
        if len(received) > 8 + 2 * _LARGEST_REPLY:
            return {"error": "too_much_output", "message": f"gave more than {_LARGEST_REPLY} bytes"}
    return _known_fields(received[8 : 8 + int.from_bytes(received[:8], "big")])


def _known_fields(body: bytes) -> dict[str, Any]:
    """The fields of a reply that we know: the code can write to the pipe too, and may have written anything."""
    with contextlib.suppress(ValueError, RecursionError):
        reply = json.loads(body)
        if isinstance(reply, dict):
            return {key: reply[key] for key in ("value", "error", "message", "printed") if key in reply}
    return {"error": "exit", "message": "gave no verdict"}


def _end(child: int, *, at_once: bool) -> int:
    """Kill a child and everything it started, and return its exit status.

    On Linux its orphans become our children, as this process is their reaper.
    """
    ended, status = 0, 0
    for _ in range(0 if at_once else 50):  # a child that closed its end is about to exit
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.001)
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    with contextlib.suppress(ChildProcessError):  # raised when there is no child left
        while True:  # an orphan that is killed may leave orphans of its own
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                for orphan in _child_pids():
                    os.kill(orphan, signal.SIGKILL)
                time.sleep(0.0005)
    return status


def _child_pids() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return []


def _answer(request: bytes, writing: int) -> None:
    """Do the task in a child, with nothing to read and nowhere to print."""
    task = json.loads(request)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    printed = io.StringIO()
    sys.stdout = sys.stderr = printed
    if "pattern" in task:
        re.compile(task["pattern"], task["flags"]).findall(task["text"])
        _write(writing, {"value": None})
        return
    try:
        reply = {"value": _value(task["code"], task["arguments"])}
        json.dumps(reply, default=str)  # tried in here, because it calls `__str__` of the code's objects
    except BaseException as error:
        # SystemExit, too: code that ends itself has given no verdict, which must be reported.
        reply = {"error": "exception", "message": _message_of(error)}
    _write(writing, {**reply, "printed": printed.getvalue()[-_LONGEST:]})


def _value(code: str, arguments: list[Any]) -> Any:
    names: dict[str, Any] = {"__name__": "check"}
    exec(compile(code, _CODE, "exec"), names)  # noqa: S102 - it is what this process is for
    validate = names.get("validate")
    if not callable(validate):
        raise NameError("the code defines no function 'validate'")
    value = validate(*arguments)
    if not inspect.isawaitable(value):
        return value

    import asyncio

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())


def _message_of(error: BaseException) -> str:
    places = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _CODE]
    message = f"{type(error).__name__}: {error}"[:_LONGEST]
    return f"{message} (line {places[-1]})" if places else message


def _write(descriptor: int, reply: dict[str, Any]) -> None:
    body = json.dumps(reply, default=str).encode()
    if len(body) > _LARGEST_REPLY:
        message = f"gave {len(body)} bytes, at most {_LARGEST_REPLY} are read"
        body = json.dumps({"error": "too_much_output", "message": message}).encode()
    os.write(descriptor, len(body).to_bytes(8, "big") + body)


def _frame(descriptor: int) -> bytes | None:
    head = _exactly(descriptor, 8)
    return None if head is None else _exactly(descriptor, int.from_bytes(head, "big"))


def _exactly(descriptor: int, size: int) -> bytes | None:
    received = bytearray()
    while len(received) < size:
        chunk = os.read(descriptor, min(65_536, size - len(received)))
        if not chunk:
            return None
        received += chunk
    return bytes(received)
