"""Handlers that an application adds for the spans of its whole process, and how spans get to them."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from typing import Any

from evalwright.capture.spans import LLMSpan, ObserveSpan

__all__ = ["Delivery", "InstrumentationHandler"]

_log = logging.getLogger(__name__)


class InstrumentationHandler:
    """Receives every finished span; its exceptions are logged."""

    async def on_llm(self, span: LLMSpan) -> None:
        """Called with each finished model call."""

    async def on_observe(self, span: ObserveSpan) -> None:
        """Called with each finished step."""


class Delivery:
    """Hands spans to handlers in a thread of its own, for as long as the process lives.

    Handlers are asynchronous and belong to the application: it must not wait for them, and its event loop may be
    blocked or closed.
    """

    def __init__(self, queue_size: int) -> None:
        self._waiting: queue.Queue[tuple[Any, Any]] = queue.Queue(queue_size)
        # A daemon, so that a hanging handler cannot keep the process from ending; `flush` waits for it, within limits.
        threading.Thread(target=self._deliver, name="evalwright-spans", daemon=True).start()

    def put(self, handler: Any, span: Any) -> None:
        """Give a span to a handler; it is dropped if too many are already waiting."""
        try:
            self._waiting.put_nowait((handler, span))
        except queue.Full:
            _log.warning("a span was dropped: the handlers are too slow")

    def _deliver(self) -> None:
        while True:
            handler, span = self._waiting.get()
            try:
                asyncio.run((handler.on_llm if isinstance(span, LLMSpan) else handler.on_observe)(span))
            except BaseException:  # one that cancels or exits must not end the delivery to all
                _log.exception("a handler of spans failed")
            finally:
                self._waiting.task_done()

    def flush(self, seconds: float) -> bool:
        """Wait until all have received all spans; False if that took longer."""
        until = time.monotonic() + seconds
        while self._waiting.unfinished_tasks:
            if time.monotonic() > until:
                return False
            time.sleep(0.002)  # `queue.join` would wait without a limit
        return True
