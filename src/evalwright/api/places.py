"""Names for functions that are passed to a run: the plan stores a function by its name, and the run finds it by
that."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Passed", "name_of"]


class Passed:
    """The functions of one run, each under a unique place."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def add(self, function: Callable[..., Any]) -> str:
        """`module:qualname` if any process finds the function there; else a place with `<` in its name."""
        for other_place, other in self.objects.items():
            if other is function:
                return other_place
        place = _importable(function) or _unnamed_place(function)
        free, number = place, 1
        while free in self.objects:
            number += 1
            free = f"{place}#{number}"
        self.objects[free] = function
        return free


def name_of(function: Callable[..., Any]) -> str:
    """The name under which results show a function; `lambda` for a lambda."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name).strip("<>")


def _importable(function: Callable[..., Any]) -> str | None:
    """A place that can be imported, or None. A script's `__main__` cannot: importing it would run the script again."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or "<" in name:
        return None
    loaded: Any = sys.modules.get(module)
    for part in name.split("."):
        loaded = getattr(loaded, part, None)
    return f"{module}:{name}" if loaded is function and getattr(sys.modules[module], "__file__", None) else None


def _unnamed_place(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', None) or '__main__'}:<{name_of(function)}>"
