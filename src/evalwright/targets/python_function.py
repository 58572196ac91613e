"""A Python callable as the system under test (specification evalh, d.1)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from functools import partial
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.session.workspace import workspace_path
from evalwright.targets.answers import answer_of
from evalwright.targets.callables import named_object
from evalwright.targets.captured import heard
from evalwright.targets.threads import Threads

__all__ = ["PythonFunction"]


class PythonFunction:
    """`target: "module.path:callable"`, called once per cell as `callable(case, variant)` with plain data.

    Asynchronous callables run in the event loop, all others in a thread. With `init_kwargs` the named thing is
    called once with them, and what it returns is the callable.
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

    async def open(self) -> None:
        if self._init_kwargs is not None:
            self._found = await self._threads.call(partial(self._found, **self._init_kwargs))
        self._asynchronous = _is_coroutine_function(self._found)

    @heard
    async def run(self, case: Case, trial: int) -> Answer:
        variant = msgspec.to_builtins(self._variant)
        if (path := workspace_path()) is not None:
            variant["_workspace_path"] = str(path)
        if self._asynchronous:
            return answer_of(await self._found(case.argument(), variant))
        returned = await self._threads.call(self._found, case.argument(), variant)
        while isinstance(returned, Awaitable):
            returned = await returned
        return answer_of(returned)

    async def close(self) -> None:
        self._threads.close()


def _public(variant: Variant) -> dict[str, Any]:
    return {
        "name": variant.name,
        "adapter": variant.adapter,
        "config": variant.config,
        "metadata": variant.metadata,
    }


def _refused(key: str, message: str) -> InputError:
    return InputError(Problem(file="", key=key, message=message))


def _is_coroutine_function(found: Any) -> bool:
    called = found if inspect.isroutine(found) else type(found).__dict__.get("__call__")
    return inspect.iscoroutinefunction(called)
