"""Processes as Linux lists them: which belong to a session, which hold a pipe; and their end, always by SIGKILL."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["kill", "kill_session", "writers"]


def kill_session(leader: int) -> None:
    """Kill the processes of a session; none need be left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    # Shells with job control give each job a process group of its own; the session is still the same.
    kill(pid for pid in _processes() if _session(pid) == leader)


def _processes() -> Iterator[int]:
    with suppress(FileNotFoundError), os.scandir("/proc") as entries:
        yield from [int(entry.name) for entry in entries if entry.name.isdecimal()]


def _session(pid: int) -> int | None:
    with suppress(OSError):
        return os.getsid(pid)
    return None


def kill(pids: Iterator[int]) -> None:
    """Kill processes, as far as they are there and ours to kill."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def writers(pipes: set[int]) -> Iterator[int]:
    """Processes outside our session that can write to pipes with these inode numbers."""
    ours, names = os.getsid(0), {f"pipe:[{inode}]" for inode in pipes}
    return (pid for pid in _processes() if _session(pid) != ours and _writes_to(pid, names))


def _writes_to(pid: int, names: set[str]) -> bool:
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if str(link.readlink()) in names and link.lstat().st_mode & stat.S_IWUSR:
                    return True
    return False
