"""Who gets the spans of this process: the listeners of the context in which a span began, and handlers of the process.

Concurrent runs never see each other's spans.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from evalwright.capture.spans import LLMSpan, ObserveSpan, StepSpan
from evalwright.capture.telemetry import Telemetry
from evalwright.capture.threads import follow_into_threads

__all__ = [
    "ABOVE",
    "LISTENERS",
    "PROCESS",
    "Collector",
    "InstrumentationHandler",
    "SpanListener",
    "add_handler",
    "distribute",
    "flush",
    "init",
    "listening",
    "remove_handler",
]

_log = logging.getLogger(__name__)
ABOVE: ContextVar[tuple[str, str] | None] = ContextVar("evalwright_span", default=None)
"""The ids of the trace and of the step in which the next one begins."""
LISTENERS: ContextVar[tuple[SpanListener, ...]] = ContextVar("evalwright_listeners", default=())


class SpanListener(Protocol):
    """Collects the spans of a context while it listens."""

    @property
    def listens(self) -> bool: ...

    def collect(self, span: ObserveSpan | LLMSpan | StepSpan) -> None: ...


class InstrumentationHandler:
    """Receives every finished span; exceptions that it raises are logged."""

    async def on_llm(self, span: LLMSpan) -> None:
        """Called with each finished model call."""

    async def on_observe(self, span: ObserveSpan) -> None:
        """Called with each finished step."""


class Collector:
    """Keeps the spans that it receives."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.steps: list[StepSpan] = []
        """Spans of the application's own tracer that are not model calls; trees do not contain them."""
        self.listens = True
        """False once the block in which it listens has ended."""

    def collect(self, span: ObserveSpan | LLMSpan | StepSpan) -> None:
        """Take one finished span."""
        if isinstance(span, StepSpan):
            self.steps.append(span)
        else:
            self.spans.append(span)


class _Process:
    """The recording of this process and its handlers.

    Handlers are asynchronous and belong to the application, so they run in a thread of their own: the application must
    not wait for them, and its event loop may be blocked or closed.
    """

    def __init__(self) -> None:
        self.begun: bool = False
        self.handlers: list[Any] = []
        self.telemetry: Telemetry = Telemetry(distribute, LISTENERS.get)
        self._waiting: queue.Queue[tuple[Any, Any]] = queue.Queue()
        self._delivering = False

    def begin(self, queue_size: int) -> None:
        if not self.begun:
            self.begun = True
            # At the first call only: another queue would drop what waits in this one.
            self._waiting = queue.Queue(queue_size)
        self.telemetry.attach()

    def add(self, handler: Any) -> None:
        self.handlers.append(handler)
        if not self._delivering:
            self._delivering = True
            # A daemon, so that a handler which hangs cannot keep the process from ending; `flush` waits for it in time.
            threading.Thread(target=self._deliver, name="evalwright-spans", daemon=True).start()

    def tell(self, span: Any) -> None:
        for handler in list(self.handlers):  # a copy: another thread may add or remove one
            if hasattr(handler, "collect"):  # ours, which only keeps the span: it needs no thread
                handler.collect(span)
                continue
            try:
                self._waiting.put_nowait((handler, span))
            except queue.Full:
                _log.warning("a span was dropped: the handlers are too slow")

    def _deliver(self) -> None:
        while True:
            handler, span = self._waiting.get()
            try:
                asyncio.run((handler.on_llm if isinstance(span, LLMSpan) else handler.on_observe)(span))
            except Exception:
                _log.exception("a handler of spans failed")
            finally:
                self._waiting.task_done()

    def flush(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._waiting.unfinished_tasks:
            if time.monotonic() > until:
                return False
            time.sleep(0.002)  # `queue.join` would wait without a limit
        return True


def distribute(span: ObserveSpan | LLMSpan | StepSpan, listeners: tuple[SpanListener, ...]) -> None:
    """Hand a finished span to the listeners of its context and to all handlers, which do not receive mere steps."""
    for listener in listeners:
        listener.collect(span)
    if not isinstance(span, StepSpan):
        PROCESS.tell(span)


PROCESS = _Process()


def init(capture_content: bool = True, queue_size: int = 1000) -> None:
    """Start recording; a second call changes nothing.

    Attaches to the application's tracer provider if it has one, and sets one if it has none.
    """
    PROCESS.begin(queue_size)
    PROCESS.telemetry.provide()


def add_handler(handler: Any) -> None:
    """Send every span from now on to this handler. Raises RuntimeError before `init`."""
    if not PROCESS.begun:
        raise RuntimeError("call init() before add_handler()")
    PROCESS.add(handler)


def remove_handler(handler: Any) -> None:
    """Send no more spans to this handler. Raises ValueError if it was not added."""
    if handler not in PROCESS.handlers:
        raise ValueError("this handler was not added")
    PROCESS.handlers.remove(handler)


def flush(timeout_seconds: float = 5.0) -> bool:
    """Wait until all handlers have received all spans; False if that took longer than `timeout_seconds`."""
    return PROCESS.flush(timeout_seconds)


class listening:
    """Collect the spans that begin in this context. Unlike `init`, it sets no tracer provider.

    Spans of a thread that is started in it are collected when the thread ends. Those of a thread that outlives the
    block are not, as it may work for other cells by then.
    """

    # Not a generator: every cell enters this block.
    __slots__ = ("_handler", "_token")

    def __enter__(self) -> Collector:
        if not PROCESS.begun or "opentelemetry.trace" in sys.modules:  # else there is no provider to attach to
            PROCESS.begin(1000)
        follow_into_threads(_carried_over, _without_listeners)
        self._handler = handler = Collector()
        self._token = LISTENERS.set((*LISTENERS.get(), handler))
        return handler

    def __exit__(self, *_: object) -> None:
        self._handler.listens = False
        LISTENERS.reset(self._token)


@contextmanager
def _without_listeners() -> Iterator[None]:
    token = LISTENERS.set(())
    try:
        yield
    finally:
        LISTENERS.reset(token)


def _carried_over() -> AbstractContextManager[None] | None:
    listeners = LISTENERS.get()
    return _in_thread(_Held(listeners), ABOVE.get(), PROCESS.telemetry.carried()) if listeners else None


@contextmanager
def _in_thread(held: _Held, above: tuple[str, str] | None, telemetry: AbstractContextManager[object]) -> Iterator[None]:
    """In another thread: place its spans below the step in which it was started, and hand them over at its end."""
    tokens = LISTENERS.set((held,)), ABOVE.set(above)
    try:
        with telemetry:
            yield
    finally:
        LISTENERS.reset(tokens[0])
        ABOVE.reset(tokens[1])
        held.hand_over()


class _Held:
    """Holds the spans of a thread until it ends; spans that come later are handed over at once.

    The listener belongs to the thread that waits, and must not change under its hands.
    """

    def __init__(self, listeners: tuple[SpanListener, ...]) -> None:
        self._listeners = listeners
        self._spans: list[Any] = []
        self._over = False

    @property
    def listens(self) -> bool:
        return any(one.listens for one in self._listeners)

    def collect(self, span: ObserveSpan | LLMSpan | StepSpan) -> None:
        if self._over:
            self._tell(span)
        # Else the spans of a thread that outlives its cell would pile up for the rest of the run.
        elif self.listens:
            self._spans.append(span)

    def hand_over(self) -> None:
        self._over = True
        for span in self._spans:
            self._tell(span)

    def _tell(self, span: ObserveSpan | LLMSpan | StepSpan) -> None:
        for listener in self._listeners:
            listener.collect(span)
