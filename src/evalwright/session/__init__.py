"""The models of the run that is going on: set once around a run, found by every judge and chat target in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evalwright.model.chat import Models

__all__ = ["InUse", "close_models", "current", "in_use"]

_stack: list[InUse] = []


class InUse:
    """The models of one run, made when they are first asked: most runs ask none."""

    def __init__(self, models: Models | Callable[[], Models]) -> None:
        self._make = models if callable(models) else None
        self._models = None if callable(models) else models

    def get(self) -> Models:
        if self._models is None:
            assert self._make is not None
            self._models = self._make()
        return self._models

    async def close(self) -> None:
        """Close what was made here; in the event loop in which it was used."""
        closing = getattr(self._models, "close", None)
        if self._make is not None and closing is not None:
            await closing()
            self._models = None


def current() -> Models:
    """The models of the run that is going on. Raises RuntimeError outside of one."""
    if not _stack:
        raise RuntimeError("models are asked within a run only: see evalwright.session.in_use")
    return _stack[-1].get()


async def close_models() -> None:
    """Close what the current models hold open in this event loop."""
    if _stack:
        await _stack[-1].close()


@contextmanager
def in_use(models: Models | Callable[[], Models]) -> Iterator[InUse]:
    """Make `models`, or what a call of it gives, the current ones."""
    _stack.append(InUse(models))
    try:
        yield _stack[-1]
    finally:
        _stack.pop()
