"""Records spans: of observed functions and blocks, and of model calls that OpenTelemetry reports.

A span goes to the listeners of the context in which it began, so that concurrent runs never see each other's spans, and
to the handlers of the whole process.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from evalwright.capture.spans import LLMSpan, ObserveSpan, StepSpan
from evalwright.capture.telemetry import Telemetry
from evalwright.capture.threads import follow_into_threads
from evalwright.capture.values import stored

__all__ = [
    "Collector",
    "InstrumentationHandler",
    "JsonText",
    "Observation",
    "add_handler",
    "current_span",
    "flush",
    "init",
    "listening",
    "observe",
    "remove_handler",
    "start_observation",
]

F = TypeVar("F", bound=Callable[..., Any])


class Listener(Protocol):
    """Collects the spans of a context while it listens."""

    @property
    def listens(self) -> bool: ...

    def collect(self, span: ObserveSpan | LLMSpan | StepSpan) -> None: ...


_log = logging.getLogger(__name__)
_parent: ContextVar[tuple[str, str] | None] = ContextVar("evalwright_span", default=None)
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("evalwright_listeners", default=())


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
        self.begun = False
        self.handlers: list[Any] = []
        self.telemetry = Telemetry(tell, _listeners.get)
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


def tell(span: ObserveSpan | LLMSpan | StepSpan, listeners: tuple[Listener, ...]) -> None:
    """Hand a finished span to the listeners of its context and to all handlers, which do not receive mere steps."""
    for listener in listeners:
        listener.collect(span)
    if not isinstance(span, StepSpan):
        _process.tell(span)


_process = _Process()


def init(capture_content: bool = True, queue_size: int = 1000) -> None:
    """Start recording; a second call changes nothing.

    Attaches to the application's tracer provider if it has one, and sets one if it has none.
    """
    _process.begin(queue_size)
    _process.telemetry.provide()


def add_handler(handler: Any) -> None:
    """Send every span from now on to this handler. Raises RuntimeError before `init`."""
    if not _process.begun:
        raise RuntimeError("call init() before add_handler()")
    _process.add(handler)


def remove_handler(handler: Any) -> None:
    """Send no more spans to this handler. Raises ValueError if it was not added."""
    if handler not in _process.handlers:
        raise ValueError("this handler was not added")
    _process.handlers.remove(handler)


def flush(timeout_seconds: float = 5.0) -> bool:
    """Wait until all handlers have received all spans; False if that took longer than `timeout_seconds`."""
    return _process.flush(timeout_seconds)


@contextmanager
def listening() -> Iterator[Collector]:
    """Collect the spans that begin in this context. Unlike `init`, it sets no tracer provider.

    Spans of a thread that is started in it are collected when the thread ends. Those of a thread that outlives the
    block are not, as it may work for other cells by then.
    """
    if not _process.begun or "opentelemetry.trace" in sys.modules:  # else there is no provider to attach to
        _process.begin(1000)
    follow_into_threads(_carried_over, _without_listeners)
    handler = Collector()
    token = _listeners.set((*_listeners.get(), handler))
    try:
        yield handler
    finally:
        handler.listens = False
        _listeners.reset(token)


@contextmanager
def _without_listeners() -> Iterator[None]:
    token = _listeners.set(())
    try:
        yield
    finally:
        _listeners.reset(token)


def _carried_over() -> AbstractContextManager[None] | None:
    listeners = _listeners.get()
    return _in_thread(_Held(listeners), _parent.get(), _process.telemetry.carried()) if listeners else None


@contextmanager
def _in_thread(held: _Held, above: tuple[str, str] | None, telemetry: AbstractContextManager[object]) -> Iterator[None]:
    """In another thread: place its spans below the step in which it was started, and hand them over at its end."""
    tokens = _listeners.set((held,)), _parent.set(above)
    try:
        with telemetry:
            yield
    finally:
        _listeners.reset(tokens[0])
        _parent.reset(tokens[1])
        held.hand_over()


class _Held:
    """Holds the spans of a thread until it ends; spans that come later are handed over at once.

    The listener belongs to the thread that waits, and must not change under its hands.
    """

    def __init__(self, listeners: tuple[Listener, ...]) -> None:
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


def current_span() -> tuple[str, str] | None:
    """The ids of the trace and of the current step, None outside of any step."""
    if _process.telemetry.tracer() is None:
        return _parent.get()
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None


class Observation:
    """A step under way."""

    def __init__(self, input: Any) -> None:
        self.input = input
        self.output: Any = None
        self.metadata: dict[str, Any] = {}

    def set_output(self, value: Any) -> None:
        """Set the result of the step."""
        self.output = value

    def set_metadata(self, key: str, value: Any) -> None:
        """Set an attribute of the step."""
        self.metadata[key] = value


@contextmanager
def start_observation(*, input: Any, name: str | None = None) -> Iterator[Observation]:
    """Record a block as a step; nothing is recorded before `init`."""
    observation = Observation(input)
    if not _process.begun:
        yield observation
        return
    name = name or "observe"
    tracer = _process.telemetry.tracer()
    if tracer is not None:
        with tracer.start_as_current_span(name, record_exception=False) as span:
            context, parent = span.get_span_context(), getattr(span, "parent", None)
            ids = (f"{context.trace_id:032x}", f"{context.span_id:016x}")
            with _recorded(observation, name, ids, f"{parent.span_id:016x}" if parent else None):
                yield observation
        return
    above = _parent.get()
    ids = (above[0] if above else secrets.token_hex(16), secrets.token_hex(8))
    token = _parent.set(ids)
    try:
        with _recorded(observation, name, ids, above[1] if above else None):
            yield observation
    finally:
        _parent.reset(token)


@contextmanager
def _recorded(observation: Observation, name: str, ids: tuple[str, str], parent: str | None) -> Iterator[None]:
    listeners, started, tick = _listeners.get(), datetime.now(UTC), time.perf_counter()
    error = None
    try:
        yield
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        span = ObserveSpan(
            span_id=ids[1],
            trace_id=ids[0],
            parent_span_id=parent,
            started_at=started,
            ended_at=datetime.now(UTC),
            duration_ms=(time.perf_counter() - tick) * 1000,
            name=name,
            input=observation.input,
            output=observation.output,
            metadata=observation.metadata,
            error=error,
        )
        tell(span, listeners)


class JsonText(str):
    """A value as JSON text, which is how the decorator keeps arguments and results: the application may change them."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> JsonText:
        """The text of any value."""
        return cls(json.dumps(stored(value), ensure_ascii=False))


def observe(name: str | None = None) -> Callable[[F], F]:
    """Record each call of a function as a step, with its arguments by name and its result."""

    def decorated(function: F) -> F:
        title = name or function.__name__
        signature = inspect.signature(function)
        wrapped: Any

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped(*arguments: Any, **keywords: Any) -> Any:
                if not _process.begun:
                    return await function(*arguments, **keywords)
                with start_observation(
                    input=JsonText.of(_bound(signature, arguments, keywords)), name=title
                ) as observation:
                    result = await function(*arguments, **keywords)
                    observation.set_output(JsonText.of(result))
                    return result
        else:

            @functools.wraps(function)
            def wrapped(*arguments: Any, **keywords: Any) -> Any:
                if not _process.begun:
                    return function(*arguments, **keywords)
                with start_observation(
                    input=JsonText.of(_bound(signature, arguments, keywords)), name=title
                ) as observation:
                    result = function(*arguments, **keywords)
                    observation.set_output(JsonText.of(result))
                    return result

        return wrapped  # type: ignore[no-any-return]

    return decorated


def _bound(signature: inspect.Signature, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name with their defaults, without `self` and `cls`."""
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError:  # the call itself will raise it, where the application expects it
        return {"args": list(arguments), "kwargs": keywords}
    bound.apply_defaults()
    return {key: value for key, value in bound.arguments.items() if key not in ("self", "cls")}
