"""What user code has left behind in an event loop when its work is over."""

from __future__ import annotations

import asyncio

__all__ = ["LAST_SECONDS", "end_loose_tasks"]

LAST_SECONDS = 2.0
"""How long tasks that user code left behind may take to end when they are cancelled."""


def end_loose_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks that a loop still has, and wait for a bounded time until they have ended."""
    loop.set_exception_handler(lambda _loop, _context: None)  # what user code left behind is no news at the end
    if leftover := asyncio.all_tasks(loop):
        for task in leftover:
            task.cancel()
        loop.run_until_complete(asyncio.wait(leftover, timeout=LAST_SECONDS))
