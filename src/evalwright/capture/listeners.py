"""Who gets the spans of this process: the listeners of the context in which a span began, and handlers of the process.

Concurrent runs never see each other's spans. Python starts threads without the context variables of the code that
starts them; while something listens, a new thread, and a task that is submitted to a pool, carry the listeners along.
The threads of a pool carry nothing themselves, because they serve many tasks.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from evalwright.capture.telemetry import Telemetry

if TYPE_CHECKING:
    from evalwright.capture.handlers import Delivery
    from evalwright.capture.spans import LLMSpan, ObserveSpan, StepSpan

__all__ = [
    "ABOVE",
    "LISTENERS",
    "PROCESS",
    "Collector",
    "SpanListener",
    "add_handler",
    "distribute",
    "flush",
    "init",
    "listening",
    "remove_handler",
]

ABOVE: ContextVar[tuple[str, str] | None] = ContextVar("evalwright_span", default=None)
"""The ids of the trace and of the step below which the next one begins."""
LISTENERS: ContextVar[tuple[SpanListener, ...]] = ContextVar("evalwright_listeners", default=())


class SpanListener(Protocol):
    """Collects the spans of a context while it listens."""

    @property
    def listens(self) -> bool: ...

    def collect(self, span: ObserveSpan | LLMSpan | StepSpan) -> None: ...


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
        spans: list[Any] = self.steps if _is_step(span) else self.spans
        spans.append(span)


class _Process:
    """The recording of this process and its handlers."""

    def __init__(self) -> None:
        self.begun: bool = False
        self.handlers: list[Any] = []
        self.telemetry: Telemetry = Telemetry(distribute, LISTENERS.get)
        self._queue_size = 0
        self._delivery: Delivery | None = None

    def begin(self, queue_size: int) -> None:
        if not self.begun:
            self.begun = True
            self._queue_size = queue_size  # the first call's arguments count
        self.telemetry.attach()

    def add(self, handler: Any) -> None:
        self.handlers.append(handler)
        if self._delivery is None:
            from evalwright.capture.handlers import Delivery

            self._delivery = Delivery(self._queue_size)

    def notify(self, span: Any) -> None:
        for handler in list(self.handlers):  # a copy: another thread may add or remove one
            if hasattr(handler, "collect"):  # our own, which only keeps the span and needs no thread
                handler.collect(span)
            elif self._delivery is not None:
                self._delivery.put(handler, span)

    def flush(self, seconds: float) -> bool:
        return self._delivery is None or self._delivery.flush(seconds)


def distribute(span: ObserveSpan | LLMSpan | StepSpan, listeners: tuple[SpanListener, ...]) -> None:
    """Hand a finished span to the listeners of its context and to all handlers, which do not receive mere steps."""
    for listener in listeners:
        listener.collect(span)
    if not _is_step(span):
        PROCESS.notify(span)


def _is_step(span: object) -> bool:
    from evalwright.capture.spans import StepSpan  # most applications make no span, and the classes take long to build

    return isinstance(span, StepSpan)


PROCESS = _Process()


def init(queue_size: int = 1000) -> None:
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
        if not PROCESS.begun or "opentelemetry.trace" in sys.modules:  # otherwise there is no provider to attach to
            PROCESS.begin(1000)
        _follow_into_threads()
        self._handler = handler = Collector()
        self._token = LISTENERS.set((*LISTENERS.get(), handler))
        return handler

    def __exit__(self, *_: object) -> None:
        self._handler.listens = False
        LISTENERS.reset(self._token)


@functools.cache
def _follow_into_threads() -> None:
    """From now on, threads and tasks of pools carry their listeners along. A second call has no effect.

    The two methods of the standard library are replaced for the whole process, and stay replaced: no other place sees a
    thread start, and restoring them would remove what a tracer has put on top of ours in the meantime. No run notices
    the replacement: at each start, a context variable says to whom a thread belongs.
    """
    start: Callable[[Thread], None] = Thread.start
    submit: Callable[..., Future[Any]] = ThreadPoolExecutor.submit

    @functools.wraps(start)
    def started(thread: Thread) -> None:
        around = _carried_over()
        if around is not None:
            # Its `run` and not its target: subclasses of Thread have no target.
            thread.run = _inside(around, thread.run)  # type: ignore[method-assign]
        start(thread)

    @functools.wraps(submit)
    def submitted(
        pool: ThreadPoolExecutor, task: Callable[..., Any], /, *arguments: Any, **keywords: Any
    ) -> Future[Any]:
        around = _carried_over()
        if around is None:
            return submit(pool, task, *arguments, **keywords)
        with _without_listeners():  # `submit` may start a thread of the pool, which must not belong to this caller
            return submit(pool, _inside(around, task), *arguments, **keywords)

    Thread.start = started  # type: ignore[assignment, method-assign]
    ThreadPoolExecutor.submit = submitted  # type: ignore[assignment, method-assign]


def _inside(around: AbstractContextManager[object], task: Callable[..., Any]) -> Callable[..., Any]:
    def inside(*arguments: Any, **keywords: Any) -> Any:
        with around:
            return task(*arguments, **keywords)

    return inside


@contextmanager
def _without_listeners() -> Iterator[None]:
    token = LISTENERS.set(())
    try:
        yield
    finally:
        LISTENERS.reset(token)


def _carried_over() -> AbstractContextManager[None] | None:
    listeners = LISTENERS.get()
    return _in_thread(_HeldSpans(listeners), ABOVE.get(), PROCESS.telemetry.carried()) if listeners else None


@contextmanager
def _in_thread(
    held: _HeldSpans, above: tuple[str, str] | None, telemetry: AbstractContextManager[object]
) -> Iterator[None]:
    """In another thread: place its spans below the step in which it was started, and hand them over at its end."""
    tokens = LISTENERS.set((held,)), ABOVE.set(above)
    try:
        with telemetry:
            yield
    finally:
        LISTENERS.reset(tokens[0])
        ABOVE.reset(tokens[1])
        held.hand_over()


class _HeldSpans:
    """Holds the spans of a thread until it ends; later spans are handed over at once.

    The listener belongs to the waiting thread, and must not change meanwhile.
    """

    def __init__(self, listeners: tuple[SpanListener, ...]) -> None:
        self._listeners = listeners
        self._spans: list[Any] = []
        self._over = False

    @property
    def listens(self) -> bool:
        return any(listener.listens for listener in self._listeners)

    def collect(self, span: ObserveSpan | LLMSpan | StepSpan) -> None:
        if self._over:
            self._notify(span)
        # Else the spans of a thread that outlives its cell would pile up for the rest of the run.
        elif self.listens:
            self._spans.append(span)

    def hand_over(self) -> None:
        self._over = True
        for span in self._spans:
            self._notify(span)

    def _notify(self, span: ObserveSpan | LLMSpan | StepSpan) -> None:
        for listener in self._listeners:
            listener.collect(span)
