"""The processes of our own that do a part of a run's work, and do not outlive it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from evalwright.errors import EvalwrightError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["begin_child", "end_with_parent", "next_message", "processors"]

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl(2)


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end_with_parent(parent: int) -> None:
    """Do not outlive a killed run. Only Linux offers this; elsewhere, idle workers notice the end of file."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def begin_child(parent: int) -> None:
    """Leave Ctrl-C to the parent, which ends its children, and end with it and by any other signal."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):  # inherited handlers are the parent's
        signal.signal(number, signal.SIG_DFL)


def next_message(receiver: Connection) -> Any:
    """The next message of a child. Raises the error that ended it, EvalwrightError if it simply disappeared."""
    try:
        message = receiver.recv()
    except EOFError:
        raise EvalwrightError("a process that judged cells ended without its result") from None
    if isinstance(message, EvalwrightError):
        raise message
    return message
