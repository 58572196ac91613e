"""Open files: how many this process may have, and errors that say there were too many."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import suppress

__all__ = ["has_run_out", "limit_of_files", "room_for"]

_SPARE = 32
"""For what is opened now and then: modules, stores, interpreters of checks, the connections of judges."""
_DEEPEST = 30


def room_for(pieces: int, each: int) -> int:
    """How many pieces of work can have `each` open files at the same time; the soft limit is raised as needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = _open_now() + _SPARE
    needed = taken + pieces * each
    if soft != resource.RLIM_INFINITY and needed > soft:
        wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):  # macOS has a limit below the one that it names
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        pieces = min(pieces, max(1, (soft - taken) // each))
    return pieces


def limit_of_files() -> int:
    """The soft limit, as `ulimit -n` shows it."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def has_run_out(error: BaseException) -> bool:
    """Whether an exception came of too many open files, in this process or in the whole system."""
    return any(isinstance(one, OSError) and one.errno in (errno.EMFILE, errno.ENFILE) for one in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and all that led to it, also where `raise ... from None` does not show it."""
    waiting = [error]
    for _ in range(_DEEPEST):
        if not waiting:
            return
        if (one := waiting.pop()) is not None:
            yield one
            waiting += [one.__cause__, one.__context__]
            if isinstance(one, BaseExceptionGroup):
                waiting += one.exceptions


def _open_now() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))  # noqa: PTH208
    return _SPARE
