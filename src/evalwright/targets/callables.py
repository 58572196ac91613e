"""User code by the name of its place."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from evalwright.errors import InputError, Problem

__all__ = ["named_object"]


def named_object(place: Any, key: str = "target") -> Any:
    """The object at `module.path:name`; whatever importing it raises is the user's mistake, told in one line.

    Raises InputError at `key`.
    """
    module, colon, name = place.partition(":") if isinstance(place, str) else ("", "", "")
    if not (module and colon and name):
        raise InputError(Problem(file="", key=key, message=f"expected 'module.path:callable', found {place!r}"))
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:
        why = f"{place!r} cannot be imported: {type(error).__name__}: {error}"
        absent = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        raise InputError(Problem(file="", key=key, message=why, absent=absent)) from error
    return found
