"""The models of the run that is going on: set once around a run, found by every judge and chat target in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evalwright.model.chat import Models

__all__ = ["current", "in_use"]

_stack: list[Models] = []


def current() -> Models:
    """The models of the run that is going on. Raises RuntimeError outside of one."""
    if not _stack:
        raise RuntimeError("models are asked within a run only: see evalwright.llm.current.in_use")
    return _stack[-1]


@contextmanager
def in_use(models: Models) -> Iterator[Models]:
    """Make `models` the current ones."""
    _stack.append(models)
    try:
        yield models
    finally:
        _stack.pop()
