"""The base class for driving an application; any class with `create` and `run` will do."""

from __future__ import annotations

import inspect
import typing
from typing import Any, Generic, TypeVar

__all__ = ["Runnable", "arguments_model", "get_runnable_args_type", "is_runnable", "is_runnable_class"]

T = TypeVar("T")


class Runnable(Generic[T]):
    """Drives the application: created once, `run` once for each entry, several concurrently."""

    @classmethod
    def create(cls) -> Runnable[T]:
        """Create the one instance for a run."""
        return cls()

    async def setup(self) -> None:
        """Called once before all entries."""

    async def run(self, args: T) -> Any:
        """Drive the application with the entry's arguments."""
        raise NotImplementedError

    async def teardown(self) -> None:
        """Called once after all entries."""


def is_runnable(found: Any) -> bool:
    """Whether this is a class with `create` and `run`."""
    return inspect.isclass(found) and callable(getattr(found, "create", None)) and callable(getattr(found, "run", None))


def arguments_model(kind: Any) -> Any:
    """The pydantic model that annotates `args` of `run`. Raises ValueError."""
    from pydantic import BaseModel

    try:
        hints = typing.get_type_hints(kind.run)
    except Exception as error:
        raise ValueError(f"the annotations of {kind.__name__}.run cannot be read: {error}") from error
    model = hints.get("args")
    if not (inspect.isclass(model) and issubclass(model, BaseModel)):
        raise ValueError(f"{kind.__name__}.run needs a parameter args annotated with a pydantic model, found {model!r}")
    return model


def get_runnable_args_type(kind: Any) -> Any:
    """`arguments_model` under the original's name, and with its exception: raises TypeError."""
    try:
        return arguments_model(kind)
    except ValueError as error:
        raise TypeError(str(error)) from error


is_runnable_class = is_runnable
