"""What must not outlive this process, however it ends: noted by a reaper, which ends it once we are gone.

The reaper is a small process in a session of its own. The kernel closes our end of a pipe to it when we die, even by
SIGKILL. A parent's death signal would do less: it is bound to the thread that started the child, and does not reach
what the child itself starts.

A process is tied twice: before it starts by a file that it alone inherits (nothing can come between), and after that by
its session, which its own children share.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["command", "file", "folder", "session", "start", "tie", "untie"]

_IN_BACKGROUND = ("/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh")
"""Not a child of ours: user code that waits for all children would wait for it for ever."""


def session(pid: int) -> str:
    """All processes of the session that a process leads."""
    return f"session {pid}"


def file(descriptor: int) -> str:
    """All processes that hold a pipe or a socket."""
    status = os.fstat(descriptor)
    return f"file {'socket' if stat.S_ISSOCK(status.st_mode) else 'pipe'}:[{status.st_ino}]"


def folder(path: Path) -> str:
    """A folder with everything in it."""
    return f"folder {json.dumps(str(path))}"


def command(words: Sequence[str], env: Mapping[str, str]) -> str:
    """Something that a command ends, such as a container."""
    return f"command {json.dumps({'words': [*words], 'env': dict(env)})}"


def tie(*entries: str) -> None:
    """From now on, these end with this process. Raises OSError if the reaper cannot be started."""
    _reaper.note(entries, add=True)


def untie(*entries: str) -> None:
    """These have ended, or may live on."""
    with suppress(OSError):
        _reaper.note(entries, add=False)


def start(words: Sequence[str], *, mark: int, **options: Any) -> tuple[subprocess.Popen[bytes], tuple[str, ...]]:
    """Start a program as the leader of a session, tied; returns also its ties. Raises OSError.

    Through `options` (of `subprocess.Popen`) it inherits the file behind the descriptor `mark`; no other process does.
    """
    ties = [file(mark)]
    tie(*ties)
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(words, start_new_session=True, **options)
    except BaseException as error:
        untie(*ties)
        if isinstance(error, ValueError):  # NUL, or half of a surrogate pair, which no argument can contain
            raise OSError(errno.EINVAL, f"it cannot be passed to a program: {error}") from None
        raise
    ties.append(session(process.pid))
    tie(ties[-1])
    return process, tuple(ties)


class _Reaper:
    """Our end of the pipe; the reaper is started with the first tie."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, None] = {}
        self._pipe: int | None = None
        self._inode = 0

    def note(self, entries: Sequence[str], *, add: bool) -> None:
        sign = "+" if add else "-"
        with self._lock:
            for entry in entries:
                if add:
                    self._kept[entry] = None
                else:
                    self._kept.pop(entry, None)
            if self._is_open() and self._send("".join(f"{sign}{entry}\n" for entry in entries)):
                return
            # Not started yet, or user code has ended it or closed our end: a new one gets everything that is tied.
            if self._kept:
                self._start()
                self._send("".join(f"+{entry}\n" for entry in self._kept))

    def _is_open(self) -> bool:
        """Whether the descriptor is still our pipe, and not another file that was opened after user code closed it."""
        with suppress(OSError):
            return self._pipe is not None and os.fstat(self._pipe).st_ino == self._inode
        return False

    def _send(self, lines: str) -> bool:
        assert self._pipe is not None
        data = memoryview(lines.encode(errors="surrogateescape"))
        try:
            while data:
                data = data[os.write(self._pipe, data) :]
        except BrokenPipeError:
            return False
        return True

    def _start(self) -> None:
        self.let_go()
        reading, self._pipe = os.pipe()
        self._inode = os.fstat(self._pipe).st_ino
        program = [sys.executable, "-I", "-S", str(Path(__file__).with_name("reaper.py"))]
        nothing = subprocess.DEVNULL
        try:
            subprocess.run(
                [*_IN_BACKGROUND, *program],
                stdin=reading,
                stdout=nothing,
                stderr=nothing,
                env={},
                cwd="/",
                start_new_session=True,
                check=False,
            )
        except OSError:
            self.let_go()
            raise
        finally:
            os.close(reading)

    def let_go(self) -> None:
        if self._is_open() and self._pipe is not None:
            os.close(self._pipe)
        self._pipe = None


_reaper = _Reaper()


def _leave_to_parent() -> None:
    """A forked child has nothing tied yet, and its copy of the pipe would hide the death of its parent."""
    global _reaper
    _reaper.let_go()
    _reaper = _Reaper()


os.register_at_fork(after_in_child=_leave_to_parent)
