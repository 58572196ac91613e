"""Open files: how many this process may have, errors saying that there were too many, and who may close them.

Users' code shares the process with a run and must not close its files: the number of a closed file is reused for the
next one opened, and records would then be written into that.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evalwright.user_code import code_of_others

__all__ = ["DescriptorRefused", "descriptors_kept", "has_run_out", "limit_of_files", "room_for"]

_SPARE = 32
"""For files that are opened now and then: modules, stores, interpreters of checks, connections of judges."""
_DEEPEST = 30
_CURE = "run it with isolation: process"
_HIGHEST = 4096
"""Ranges are not searched beyond this number: some callers close all possible numbers, up to millions."""
_Identity = tuple[int, int, int]


def room_for(pieces: int, each: int, *, may_raise: bool = True) -> int:
    """How many tasks can have `each` open files at the same time, at least one.

    The soft limit is raised as needed, if allowed: it applies to the whole process.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = _open_now() + _SPARE
    needed = descriptors + pieces * each
    if soft != resource.RLIM_INFINITY and needed > soft:
        wanted = soft if not may_raise else needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):  # macOS has a limit below the one that it reports
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        pieces = min(pieces, max(1, (soft - descriptors) // each))
    return pieces


def limit_of_files() -> int:
    """The soft limit, as `ulimit -n` shows it."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def has_run_out(error: BaseException) -> bool:
    """Whether an exception was caused by too many open files, in this process or in the whole system."""
    return any(isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and all its causes, even those hidden by `raise ... from None`."""
    waiting = [error]
    for _ in range(_DEEPEST):
        if not waiting:
            return
        if (waiter := waiting.pop()) is not None:
            yield waiter
            waiting += [waiter.__cause__, waiter.__context__]
            if isinstance(waiter, BaseExceptionGroup):
                waiting += waiter.exceptions


def _open_now() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))  # noqa: PTH208
    return _SPARE


class DescriptorRefused(OSError):
    """User code closed a file descriptor that it had not opened."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EBADF, f"{what} would close files of the run itself; {_CURE}")


class _FilesToKeep:
    """The files to keep open for one run or import: those open when it begins, and those a run opens in its folder."""

    def __init__(self, folder: str | None) -> None:
        self._folder, self._kept = folder, _identities()

    def __contains__(self, number: int) -> bool:
        # By identity as well: the number may have been reused for another file since.
        if number in self._kept and _identity(number) == self._kept[number]:
            return True
        if self._folder is None:
            return False
        with suppress(OSError):
            return str(Path(f"/proc/self/fd/{number}").readlink()).startswith(self._folder)
        return False


class _ClosingFunctions:
    """`os.close` and `os.closerange` while runs are going on: replaced by the first, restored after the last.

    Runs in several threads end in any order, so none of them may restore what it found.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: list[_FilesToKeep] = []
        self._pid = 0
        self._close, self._close_range = os.close, os.closerange

    def begin(self, run: _FilesToKeep) -> None:
        with self._lock:
            if not self._runs:
                self._pid, self._close, self._close_range = os.getpid(), os.close, os.closerange
                os.close, os.closerange = self._guarded_close, self._guarded_range
            self._runs = [*self._runs, run]

    def end(self, run: _FilesToKeep) -> None:
        with self._lock:
            self._runs = [known_run for known_run in self._runs if known_run is not run]
            if not self._runs:
                os.close, os.closerange = self._close, self._close_range

    def _keeps(self, number: int) -> bool:
        return os.getpid() == self._pid and any(number in run for run in self._runs)

    def _guarded_close(self, fd: int) -> None:
        # Libraries close what they have opened, as do we, at any time.
        if not sys._getframe(1).f_code.co_filename.startswith(code_of_others()) and self._keeps(fd):
            raise DescriptorRefused(f"os.close({fd})")
        self._close(fd)

    def _guarded_range(self, fd_low: int, fd_high: int, /) -> None:
        if any(map(self._keeps, range(fd_low, min(fd_high, _HIGHEST)))):
            raise DescriptorRefused(f"os.closerange({fd_low}, {fd_high})")
        self._close_range(fd_low, fd_high)


_closing = _ClosingFunctions()


@contextmanager
def descriptors_kept(folder: str | None = None) -> Iterator[None]:
    """Until the end of the block, neither `os.close` nor `os.closerange` closes files that are open now.

    Nor do they close files below a run's `folder`, which it may open later.

    In children that user code has forked, both behave as usual.
    """
    run = _FilesToKeep(folder)
    _closing.begin(run)
    try:
        yield
    finally:
        _closing.end(run)


def _identities() -> dict[int, _Identity]:
    try:
        numbers = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    except OSError:  # this system has no such folder: the run's descriptors are the lowest ones
        numbers = list(range(64))
    return {number: identity for number in numbers if (identity := _identity(number)) is not None}


def _identity(number: int) -> _Identity | None:
    with suppress(OSError):
        status = os.fstat(number)
        return status.st_dev, status.st_ino, status.st_mode
    return None
