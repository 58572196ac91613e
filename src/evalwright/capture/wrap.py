"""Marked points of an application: during a test, inputs are replaced by those of the case, outputs and states
captured.

Both follow the context, so that they reach child tasks and `asyncio.to_thread`, and never another entry that runs at
the same time.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from evalwright.capture.values import served, stored

__all__ = [
    "WrapRegistryMissError",
    "WrapTypeMismatchError",
    "Wrapped",
    "clear_eval_input",
    "clear_eval_output",
    "get_eval_input",
    "get_eval_output",
    "init_eval_output",
    "set_eval_input",
    "watch_all_wraps",
    "watch_wraps",
    "wrap",
]

T = TypeVar("T")

_PURPOSES = ("input", "output", "state")
_inputs: ContextVar[Mapping[str, Any] | None] = ContextVar("evalwright_inputs", default=None)
_outputs: ContextVar[list[dict[str, Any]] | None] = ContextVar("evalwright_outputs", default=None)


@dataclass(frozen=True)
class Wrapped:
    """A value that passed a marked point, as JSON."""

    name: str
    purpose: str
    value: Any
    description: str | None


Watcher = Callable[[Wrapped], None]

_watcher: ContextVar[Watcher | None] = ContextVar("evalwright_watcher", default=None)
_watcher_of_all: Watcher | None = None  # for the process, and only used if a context has none: runs have their own


def watch_wraps(watcher: Watcher) -> None:
    """Send `watcher` the values that pass the marked points in this context, including inputs that are not replaced."""
    _watcher.set(watcher)


def watch_all_wraps(watcher: Watcher) -> None:
    """Send `watcher` the values that pass marked points of the process, except in contexts with their own watcher."""
    global _watcher_of_all
    _watcher_of_all = watcher


class WrapRegistryMissError(KeyError):
    """The application needs an input that the entry does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"wrap(purpose='input', name={self.name!r}) has no value: the entry's eval_input needs {self.name!r}"


class WrapTypeMismatchError(TypeError):
    """A value of the entry does not have the type that the application needs."""


def set_eval_input(values: Mapping[str, Any]) -> None:
    """Make `wrap(purpose="input")` return these values in this context."""
    _inputs.set(values)


def get_eval_input() -> Mapping[str, Any] | None:
    """The inputs of this context; None outside a test."""
    return _inputs.get()


def clear_eval_input() -> None:
    """Make `wrap(purpose="input")` return the application's own values again."""
    _inputs.set(None)


def init_eval_output() -> list[dict[str, Any]]:
    """Start capturing in this context; the returned list grows with each output and state."""
    captured: list[dict[str, Any]] = []
    _outputs.set(captured)
    return captured


def get_eval_output() -> list[dict[str, Any]] | None:
    """The values captured in this context, each {name, value, purpose}; None if nothing is being captured."""
    return _outputs.get()


def clear_eval_output() -> None:
    """Stop capturing in this context."""
    _outputs.set(None)


def wrap(data: T, *, purpose: str, name: str, description: str | None = None) -> T:
    """Mark a point of the application; `purpose` is `input`, `output` or `state`.

    In a test, an input is replaced by the entry's value, and a callable by one that returns it. Outputs and states are
    captured and returned unchanged; of a callable, each result is captured, and of an asynchronous one what it awaits.
    Raises WrapRegistryMissError for an input without a value, ValueError for an unknown purpose.
    """
    if purpose not in _PURPOSES:
        raise ValueError(f"unknown purpose {purpose!r}, expected input, output or state")
    if purpose == "input" and (registry := _inputs.get()) is not None:
        return cast(T, _from_registry(data, registry, name))
    if callable(data):
        return cast(T, _observing(data, purpose, name, description))
    _capture(data, purpose, name, description)
    return data


def _from_registry(data: Any, registry: Mapping[str, Any], name: str) -> Any:
    if name not in registry:
        raise WrapRegistryMissError(name)
    value = served(registry[name])
    if not callable(data):
        return value
    if not _is_async(data):
        return lambda *_arguments, **_keywords: value

    async def given(*_arguments: Any, **_keywords: Any) -> Any:
        return value

    return given


def _observing(function: Callable[..., Any], purpose: str, name: str, description: str | None) -> Callable[..., Any]:
    if _is_async(function):

        @functools.wraps(function, updated=())
        async def awaited(*arguments: Any, **keywords: Any) -> Any:
            result = await function(*arguments, **keywords)
            _capture(result, purpose, name, description)
            return result

        return awaited

    @functools.wraps(function, updated=())
    def observed(*arguments: Any, **keywords: Any) -> Any:
        result = function(*arguments, **keywords)
        _capture(result, purpose, name, description)
        return result

    return observed


def _is_async(function: Callable[..., Any]) -> bool:
    is_async = inspect.iscoroutinefunction
    return is_async(function) or is_async(getattr(type(function), "__call__", None))  # noqa: B004 - of an object


def _capture(value: Any, purpose: str, name: str, description: str | None) -> None:
    captured, watcher = _outputs.get(), _watcher.get() or _watcher_of_all
    if watcher is not None:
        watcher(Wrapped(name, purpose, stored(value), description))
    if captured is not None and purpose != "input":
        captured.append({"name": name, "value": stored(value), "purpose": purpose})
