"""Names for functions that are passed to a run: by them the plan notes a function, and the run finds it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Passed", "name_of"]


class Passed:
    """The functions of one run, each under a place that no other one has."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def add(self, function: Callable[..., Any]) -> str:
        """`module:qualname` if the function is found there again, by any process; else a place with `<` in its name."""
        for known, other in self.objects.items():
            if other is function:
                return known
        place = _importable(function) or _unnamed(function)
        free, number = place, 1
        while free in self.objects:
            number += 1
            free = f"{place}#{number}"
        self.objects[free] = function
        return free


def name_of(function: Callable[..., Any]) -> str:
    """The name under which results show a function; that of a lambda is `lambda`."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name).strip("<>")


def _importable(function: Callable[..., Any]) -> str | None:
    """A place that `import` leads to. A script's own `__main__` is none: importing it would run the script again."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is function and getattr(sys.modules[module], "__file__", None) else None


def _unnamed(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', None) or '__main__'}:<{name_of(function)}>"
