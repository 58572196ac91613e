"""User code by the name of its place; and, for a run started from Python, the objects that were passed to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.session.imports import import_by_name

__all__ = ["named_object", "with_objects"]

_passed: ContextVar[Mapping[str, Any]] = ContextVar("evalwright_objects", default=MappingProxyType({}))


@contextmanager
def with_objects(objects: Mapping[str, Any]) -> Iterator[None]:
    """Let `named_object` find these, by place, in everything called inside and in no other run of this process."""
    token = _passed.set(objects)
    try:
        yield
    finally:
        _passed.reset(token)


def named_object(place: Any, key: str = "target") -> Any:
    """The object at `module.path:name`; whatever importing it raises is the user's mistake, told in one line.

    An object that was passed to the run goes before one that can be imported. Raises InputError at `key`.
    """
    if isinstance(place, str) and place in (passed := _passed.get()):
        return passed[place]
    module, colon, name = place.partition(":") if isinstance(place, str) else ("", "", "")
    if not (module and colon and name):
        raise InputError(Problem(file="", key=key, message=f"expected 'module.path:callable', found {place!r}"))
    if "<" in name:
        why = f"{place!r} is a function without a name to import it by: call evaluate(..., resume=True) with it again"
        raise InputError(Problem(file="", key=key, message=why, absent=True))
    try:
        found: Any = import_by_name(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:
        why = f"{place!r} cannot be imported: {type(error).__name__}: {error}"
        absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        raise InputError(Problem(file="", key=key, message=why, absent=absent)) from error
    return found
