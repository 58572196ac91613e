"""Processes that a test has started, found by a word that only they have among their arguments."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path


def living(mark: str) -> list[int]:
    """The processes with a word in their command line, without our own."""
    seen = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            try:
                if mark.encode() in (folder / "cmdline").read_bytes():
                    seen.append(int(folder.name))
            except OSError:
                continue
    return seen


def left_after_a_moment(mark: str) -> list[int]:
    """Those that are still there after five seconds: a killed process may take an instant to go."""
    ends = time.monotonic() + 5
    while (found := living(mark)) and time.monotonic() < ends:
        time.sleep(0.02)
    return found


def wait_for(reached: Callable[[], bool], seconds: float) -> bool:
    """Whether something becomes true within a time."""
    until = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
