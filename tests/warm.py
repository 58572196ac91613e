"""Run what `python` runs without waiting for imports: forked from a process that has made them.

`run` takes the words behind `python` and otherwise what `subprocess.run` takes. What it starts is a process like any
other, with a working directory, an environment, descriptors and a process group of its own. What depends on the start
of an interpreter is proved by tests that are marked `cold`: in those, `run` starts one.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

__all__ = ["Parent", "forking", "parent", "run", "starting_cold"]

AT_START = dict(os.environ)
"""The parent has nothing of what a test puts into the environment."""
GIVEN_TO_CHILDREN = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
"""The variables of Python that a child can be given; it is too late for the others."""
_cold = False


class Parent:
    """The process that is forked from."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        """What its children have used."""
        self._sending = threading.Lock()
        self._control, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, str(Path(__file__).with_name("warm_parent.py")), str(theirs.fileno())]
            self.process = subprocess.Popen(
                command, env=AT_START, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def close(self) -> None:
        """End it, and the children that it still has."""
        self._control.close()
        self.process.wait()

    def run(
        self, words: list[str], folder: Path, environment: Mapping[str, str], given: bytes, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr of a child; `TimeoutExpired` and its end when it takes too long."""
        asked = {"words": words, "folder": str(folder), "environment": dict(environment)}
        with (
            _holding(json.dumps(asked).encode()) as request,
            _holding(given) as stdin,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            ours, theirs = socket.socketpair()
            with ours:
                with theirs, self._sending:
                    files = [file.fileno() for file in (request, stdin, out, err, theirs)]
                    socket.send_fds(self._control, [b"x"], files)
                code = self._ended(ours, words, timeout)
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def _ended(self, status: socket.socket, words: list[str], timeout: float) -> int:
        status.settimeout(60)  # a busy machine takes long to import everything for the first child
        with status.makefile() as lines:
            pid = int(lines.readline())
            status.settimeout(timeout)
            try:
                code, seconds = lines.readline().split()
            except TimeoutError:
                with suppress(ProcessLookupError):  # it has just ended
                    os.killpg(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout) from None
        self.cpu_seconds += float(seconds)
        return int(code)


@contextmanager
def _holding(data: bytes) -> Iterator[tempfile._TemporaryFileWrapper[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file  # type: ignore[misc]


@cache
def parent() -> Parent:
    """The parent of this process's commands, started when it is first asked for."""
    made = Parent()
    atexit.register(made.close)
    return made


def run(
    words: list[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: str = "",
    timeout: float = 120,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """`python WORDS` in a folder, where the words begin with `-m`, `-c` or the name of a file.

    Raises ValueError for an environment that an interpreter would have to be started with.
    """
    environment = os.environ if env is None else env
    if _cold:
        return subprocess.run(
            [sys.executable, *words], cwd=cwd, env=environment, input=input, capture_output=True, encoding="utf-8",
            timeout=timeout, check=check,
        )  # fmt: skip
    _refuse_what_counts_at_a_start(environment)
    code, out, err = parent().run(words, cwd, environment, input.encode(), timeout)
    if check and code:
        raise subprocess.CalledProcessError(code, words, out, err)
    return subprocess.CompletedProcess(words, code, _text(out), _text(err))


def _refuse_what_counts_at_a_start(environment: Mapping[str, str]) -> None:
    changed = {name for name, _ in {*environment.items()} ^ {*AT_START.items()}} - GIVEN_TO_CHILDREN
    late = sorted(name for name in changed if name.startswith(("PYTHON", "LC_", "LANG")))
    folders = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    late += [str(path) for folder in folders if (path := Path(folder, "sitecustomize.py")).exists()]
    if late:
        raise ValueError(f"{', '.join(late)} counts when an interpreter starts: mark the test `cold`")


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n")


@contextmanager
def starting_cold() -> Iterator[None]:
    """Meanwhile `run` starts interpreters."""
    yield from _with(cold=True)


@contextmanager
def forking() -> Iterator[None]:
    """Meanwhile `run` forks, in a test that is marked `cold` too."""
    yield from _with(cold=False)


def _with(*, cold: bool) -> Iterator[None]:
    global _cold
    before, _cold = _cold, cold
    try:
        yield
    finally:
        _cold = before
