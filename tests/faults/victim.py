"""Run a suite in a forked process that fails at one exact write, sync or rename inside its runs folder.

The fault is made where Python hands over to the operating system, so that the process really dies there: nothing
of it runs afterwards. Forking from a process that has everything imported makes each of hundreds of points cheap.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

STORAGE_EXIT = 5


@dataclass
class Fault:
    """What to do at the `at`-th call of `operation` that touches the runs folder; `at` 0 only counts.

    `how` is `die` (before the call), `die_half` (a write: after half of its bytes), or an errno to fail with from
    there on (`heal` further failures later the disk works again).
    """

    operation: str = "write"
    at: int = 0
    how: str | int = "die"


@dataclass
class Outcome:
    status: int
    """Exit code, or minus the signal."""
    calls: int
    """Calls of the operation that were seen, when the process lived to tell."""


def in_child(work: Callable[[], int], fault: Fault, runs: Path) -> Outcome:
    """Call `work` in a child with the fault armed; its return value is the exit code."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        code = 4
        try:
            os.close(receive)
            seen = _arm(fault, runs)
            code = work()
            os.write(send, str(seen[0]).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(send)
    told = os.read(receive, 20)
    os.close(receive)
    _, status = os.waitpid(child, 0)
    return Outcome(os.waitstatus_to_exitcode(status), int(told or b"0"))


def _arm(fault: Fault, runs: Path) -> list[int]:
    """Wrap the operation; the list holds the number of calls seen."""
    real = getattr(os, fault.operation)
    folder, seen = str(runs.resolve()), [0]

    def wrapped(*args: object, **kwargs: object) -> object:
        if not _touches(args, folder):
            return real(*args, **kwargs)
        seen[0] += 1
        if not fault.at or seen[0] < fault.at or (isinstance(fault.how, str) and seen[0] > fault.at):
            return real(*args, **kwargs)
        if fault.how == "die_half":
            descriptor, data = args[0], memoryview(args[1])  # type: ignore[arg-type]
            real(descriptor, data[: len(data) // 2])
        if isinstance(fault.how, str):
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(fault.how, os.strerror(fault.how))  # type: ignore[arg-type]

    setattr(os, fault.operation, wrapped)
    return seen


def _touches(args: tuple[object, ...], folder: str) -> bool:
    for argument in args[:2]:
        if isinstance(argument, int):
            try:
                place = str(Path(f"/proc/self/fd/{argument}").readlink())
            except OSError:
                continue
        elif isinstance(argument, (str, os.PathLike)):
            place = str(Path(argument).absolute())
        else:
            continue
        if place.startswith(folder):
            return True
    return False
