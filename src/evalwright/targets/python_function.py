"""A Python callable as the system under test."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator
from functools import partial
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, TargetError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.session.objects import named_object
from evalwright.session.workspace import workspace_path
from evalwright.targets.answers import answer_of
from evalwright.targets.captured import traced
from evalwright.targets.failures import target_failure, user_place
from evalwright.targets.signatures import Arguments, arguments_for
from evalwright.targets.streams import collected, collected_async
from evalwright.targets.threads import Threads

__all__ = ["PythonFunction"]


class PythonFunction:
    """`target: "module.path:callable"`, called once per cell with plain data: `signatures` says with which.

    Asynchronous callables run in the event loop, all others in a thread. With `init_kwargs` the named thing is
    called once with them, and what it returns is the callable. What a generator yields is joined.
    """

    def __init__(self, variant: Variant) -> None:
        self._found = named_object(variant.config.get("target"))
        self._init_kwargs = variant.config.get("init_kwargs")
        if self._init_kwargs is not None and not isinstance(self._init_kwargs, dict):
            raise _refused("init_kwargs", f"expected a mapping, found {type(self._init_kwargs).__name__}")
        if self._init_kwargs is None and not callable(self._found):
            raise _refused("target", f"{variant.config['target']!r} is not callable")
        self._variant: dict[str, Any] = {"schema_version": "1.0", **_public(variant)}
        self._threads = Threads()
        self._asynchronous = False
        self._arguments: Arguments | None = None if self._init_kwargs is not None else arguments_for(self._found)

    async def open(self) -> None:
        if self._init_kwargs is not None:
            self._found = await self._threads.call(partial(self._found, **self._init_kwargs))
        if self._arguments is None:
            self._arguments = arguments_for(self._found)
        self._asynchronous = _runs_in_loop(self._found)

    @traced
    async def run(self, case: Case, trial: int) -> Answer:
        try:
            return await self._answer(case, trial)
        except TargetError:
            raise
        except Exception as error:
            return Answer(error=target_failure(error, user_place(error)))

    async def _answer(self, case: Case, trial: int) -> Answer:
        assert self._arguments is not None  # open() comes first
        variant = msgspec.to_builtins(self._variant)
        if (path := workspace_path()) is not None:
            variant["_workspace_path"] = str(path)
        positional, keywords = self._arguments(case, variant, trial)
        if self._asynchronous:
            returned = self._found(*positional, **keywords)
        else:
            returned = await self._threads.call(_called, self._found, positional, keywords)
        while isinstance(returned, Awaitable):
            returned = await returned
        if isinstance(returned, AsyncIterator):
            returned = await collected_async(returned)
        return answer_of(returned, self._found)

    async def close(self) -> None:
        self._threads.close()


def _called(function: Any, positional: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """In the thread of the call: a generator does its work while it is read, so it is read here, too."""
    returned = function(*positional, **keywords)
    return collected(returned) if isinstance(returned, Iterator) else returned


def _public(variant: Variant) -> dict[str, Any]:
    return {
        "name": variant.name,
        "adapter": variant.adapter,
        "config": variant.config,
        "metadata": variant.metadata,
    }


def _refused(key: str, message: str) -> InputError:
    return InputError(Problem(file="", key=key, message=message))


def _runs_in_loop(found: Any) -> bool:
    """Whether calling it only makes something to be awaited or iterated in the event loop."""
    called = found if inspect.isroutine(found) or isinstance(found, partial) else type(found).__dict__.get("__call__")
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
