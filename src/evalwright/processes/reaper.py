"""A small program that ends what another process leaves behind. Imports the standard library only, to start fast.

It reads lines from its standard input: `+` or `-`, a kind and a value. At the end of the input, which the kernel closes
however the other process ends, it ends and removes what was added and not taken back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

__all__ = ["end_all", "main"]

_PAUSE = 0.02
"""Seconds between two reads of the input, so that we do not slow down a process that starts many others."""
_PATIENCE = 30.0
"""Seconds for one command, and for removing one folder."""
_LONGEST = 5.0
"""Seconds after which processes that cannot be killed, as in a hanging file system, are left to the kernel."""


def main() -> None:
    """Read what there is to end, and end it when the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # our time comes with the end of the input, and not earlier
    kept: dict[str, None] = {}
    rest = b""
    while received := os.read(0, 1 << 16):
        *lines, rest = (rest + received).split(b"\n")
        for line in lines:
            entry = line[1:].decode(errors="surrogateescape")
            if line.startswith(b"+"):
                kept[entry] = None
            else:
                kept.pop(entry, None)
        time.sleep(_PAUSE)
    end_all(kept)


def end_all(entries: Iterable[str]) -> None:
    """End sessions and processes that hold files, then run commands, then remove folders."""
    kinds: dict[str, list[str]] = {}
    for entry in entries:
        kind, _, value = entry.partition(" ")
        kinds.setdefault(kind, []).append(value)
    _kill({int(session) for session in kinds.get("session", ())}, set(kinds.get("file", ())))
    for command in kinds.get("command", ()):
        settings = json.loads(command)
        _run(settings["words"], settings["env"])
    for folder in kinds.get("folder", ()):
        for words in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):  # usually the first one is enough
            if os.path.lexists(path := json.loads(folder)):
                _run([*words, "--", path], {"PATH": os.defpath})


def _run(words: list[str], env: dict[str, str]) -> None:
    nothing = subprocess.DEVNULL
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(words, env=env, stdin=nothing, stdout=nothing, stderr=nothing, timeout=_PATIENCE, check=False)


def _kill(sessions: set[int], files: set[str]) -> None:
    if not os.path.isdir("/proc/self"):  # `Path` would make the start of this program slower
        for session in sessions:
            with suppress(OSError):
                os.killpg(session, signal.SIGKILL)
        return
    ends = time.monotonic() + _LONGEST
    # Repeated until none is left: a killed process may have started another one a moment before.
    while (victims := [*_victims(sessions, files)]) and time.monotonic() < ends:
        # We may have lost our process before it could note the session of one that it had just started, whose children
        # may have closed the file.
        sessions |= {pid for pid in victims if _is_of(str(pid), {pid})}
        for pid in victims:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _victims(sessions: set[int], files: set[str]) -> Iterator[int]:
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal() and int(name) != os.getpid() and (_is_of(name, sessions) or _holds(name, files)):
            yield int(name)


def _is_of(pid: str, sessions: set[int]) -> bool:
    """Whether a process is alive and belongs to one of the sessions; a zombie is dead."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        state, _parent, _group, session = file.read().rpartition(b")")[2].split()[:4]
        return int(session) in sessions and state not in (b"Z", b"X")
    return False


def _holds(pid: str, files: set[str]) -> bool:
    with suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd") if files else ():  # noqa: PTH208
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{number}") in files:  # noqa: PTH115
                    return True
    return False


if __name__ == "__main__":
    main()
