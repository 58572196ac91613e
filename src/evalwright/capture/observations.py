"""Records observed functions and blocks as steps of an application."""

from __future__ import annotations

import functools
import inspect
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from evalwright.capture.listeners import ABOVE, LISTENERS, PROCESS, distribute
from evalwright.capture.spans import ObserveSpan
from evalwright.capture.values import JsonText

__all__ = ["Observation", "current_span", "observe", "start_observation"]

F = TypeVar("F", bound=Callable[..., Any])


def current_span() -> tuple[str, str] | None:
    """The ids of the trace and of the current step, None outside of any step."""
    if PROCESS.telemetry.tracer() is None:
        return ABOVE.get()
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
    if not PROCESS.begun:
        yield observation
        return
    name = name or "observe"
    tracer = PROCESS.telemetry.tracer()
    if tracer is not None:
        with tracer.start_as_current_span(name, record_exception=False) as span:
            context, parent = span.get_span_context(), getattr(span, "parent", None)
            ids = (f"{context.trace_id:032x}", f"{context.span_id:016x}")
            with _recording(observation, name, ids, f"{parent.span_id:016x}" if parent else None):
                yield observation
        return
    above = ABOVE.get()
    ids = (above[0] if above else secrets.token_hex(16), secrets.token_hex(8))
    token = ABOVE.set(ids)
    try:
        with _recording(observation, name, ids, above[1] if above else None):
            yield observation
    finally:
        with suppress(ValueError):  # a generator may end in another context than it began in
            ABOVE.reset(token)


@contextmanager
def _recording(observation: Observation, name: str, ids: tuple[str, str], parent: str | None) -> Iterator[None]:
    listeners, started, tick = LISTENERS.get(), datetime.now(UTC), time.perf_counter()
    error = None
    try:
        yield
    except BaseException as raised:  # a step that was cancelled did not succeed either
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
        distribute(span, listeners)


def observe(name: str | None = None) -> Callable[[F], F]:
    """Record each call of a function as a step, with its arguments by name and its result."""

    def decorated(function: F) -> F:
        title = name or function.__name__
        signature = inspect.signature(function)
        wrapped: Any

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped(*arguments: Any, **keywords: Any) -> Any:
                if not PROCESS.begun:
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
                if not PROCESS.begun:
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
