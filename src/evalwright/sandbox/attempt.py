"""Tries in a process that can be killed whether a search ends: for threads, which no signal reaches."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

from evalwright.errors import EvaluatorError
from evalwright.sandbox.workers import ask_worker, python_command

__all__ = ["ends_in_time"]


def ends_in_time(pattern: re.Pattern[str], text: str, seconds: float) -> bool:
    """Whether the pattern finds all its matches in the text within `seconds`."""
    request = {"pattern": pattern.pattern, "flags": pattern.flags, "text": text, "seconds": seconds}
    with ThreadPoolExecutor(1) as thread:  # this thread may be running an event loop, in which asyncio.run fails
        reply = thread.submit(asyncio.run, ask_worker(python_command(), request)).result()
    if reply.get("error") == "timeout":
        return False
    if "error" in reply:
        raise EvaluatorError(reply["message"], "sandbox")
    return True
