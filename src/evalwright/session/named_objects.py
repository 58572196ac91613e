"""The objects that suites name as `module.path:name`, and those passed to a run instead."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.session.imports import import_by_name, offered_instead, users_folders
from evalwright.user_code import user_place

__all__ = ["is_unnamed", "named_object", "passed_object", "with_objects"]

_passed: ContextVar[Mapping[str, Any]] = ContextVar("evalwright_objects", default=MappingProxyType({}))


@contextmanager
def with_objects(objects: Mapping[str, Any]) -> Iterator[None]:
    """Let `named_object` find these, by place, in everything called inside and in no other run of this process."""
    token = _passed.set(objects)
    try:
        yield
    finally:
        _passed.reset(token)


def passed_object(place: str) -> Any:
    """The object that was passed to the run under this place; None if there is none."""
    return _passed.get().get(place)


def is_unnamed(place: Any) -> bool:
    """Whether a place is that of a function which only the process that it was passed to has."""
    return isinstance(place, str) and "<" in place.partition(":")[2]


def named_object(place: Any, key: str = "target") -> Any:
    """The object at `module.path:name`; whatever importing it raises is the user's mistake, reported in one line.

    An object passed to the run takes precedence over one that can be imported. Raises InputError at `key`.
    """
    if isinstance(place, str) and place in (passed := _passed.get()):
        return passed[place]
    module, colon, name = place.partition(":") if isinstance(place, str) else ("", "", "")
    if not (module and colon and name):
        raise InputError(Problem(file="", key=key, message=f"expected 'module.path:callable', found {place!r}"))
    if is_unnamed(place):
        why = f"{place!r} is a function without a name to import it by: call evaluate(..., resume=True) with it again"
        raise InputError(Problem(file="", key=key, message=why, absent=True))
    try:
        loaded: Any = import_by_name(module)
        for part in name.split("."):
            loaded = getattr(loaded, part)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may call `sys.exit` when it is imported
        where = user_place(error)
        why = f"{place!r} cannot be imported: {type(error).__name__}: {error}" + (f" in {where}" if where else "")
        why += _near_place(module, name, error) or offered_instead(error)
        absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        raise InputError(Problem(file="", key=key, message=why, absent=absent)) from error
    return loaded


def _near_place(module: str, name: str, error: BaseException) -> str:
    """How to write the place correctly, or the module or name that may be meant."""
    from pathlib import Path  # here, like the other imports inside functions: only needed for a mistake

    if isinstance(error, ModuleNotFoundError) and error.name is not None and f"{module}.".startswith(f"{error.name}."):
        plain = module.removesuffix(".py").replace("\\", ".").replace("/", ".").strip(".")
        if plain != module:
            return f'; did you mean "{plain}:{name}"?'
        own = map(Path, users_folders())
        beside = {file.stem for folder in own if folder.is_dir() for file in folder.glob("*.py")}
        return did_you_mean(module.partition(".")[0], sorted(beside))
    if isinstance(error, AttributeError):
        if name.endswith(")"):
            return "; leave out the parentheses"
        return did_you_mean(
            name, [attribute for attribute in dir(sys.modules.get(module)) if not attribute.startswith("_")]
        )
    return ""
