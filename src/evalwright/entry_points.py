"""What other packages add: entry points of the groups `evalwright.<kind>`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from evalwright.model.format import Format

__all__ = ["Loader", "first_sentence", "of_group", "of_kind", "suite_formats"]

Loader = tuple[str, Callable[[], Any]]
"""The package that provides a name, and the function that loads it."""
_GROUPS = (b"[evalwright.", b"[eval_harness.")
"""How the names of the groups begin: ours, and those of originals from which a format adopts."""


def of_kind(kind: str) -> dict[str, Loader]:
    """What other packages register of a kind, by name."""
    return of_group(f"evalwright.{kind}")


def of_group(group: str) -> dict[str, Loader]:
    """What packages register in a group of entry points, by name."""
    return {point.name: (_package(point), point.load) for point in _points(group)}


def suite_formats() -> dict[str, Loader]:
    """Suite formats by name."""
    return {point.name: (_package(point), partial(_format, point)) for point in _points("evalwright.formats")}


@cache
def _points(group: str) -> tuple[EntryPoint, ...]:
    if not _are_there(tuple(sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


@cache
def _are_there(places: tuple[str, ...]) -> bool:
    """Whether a package in one of these places may have entry points for us, or for an original that we adopt from.

    Reading these few files takes a tenth of the time that importing `importlib.metadata` and reading all packages would
    take, for which every command would pay.
    """
    if sum(hasattr(finder, "find_distributions") for finder in sys.meta_path) > 1:
        return True  # packages need not be in folders
    for place in places:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - without pathlib
        except NotADirectoryError:
            return True  # packages inside an archive
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and _has_groups(os.path.join(place, name)):  # noqa: PTH118
                return True
    return False


def _has_groups(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123 - without pathlib
            text = file.read()
            return any(group in text for group in _GROUPS)
    except OSError:
        return False


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a plug-in"


def _format(point: EntryPoint) -> Format:
    from evalwright.model.format import Format

    loaded = point.load()
    if not isinstance(loaded, Format):
        raise TypeError(f"expected a Format, found {loaded!r}")
    if loaded.name != point.name:
        raise ValueError(f"its name is {loaded.name!r}, but its entry point is called {point.name!r}")
    return loaded


def first_sentence(thing: object) -> str:
    """The first sentence of the docstring of a class or function, on one line; "" without a docstring."""
    from inspect import getdoc

    paragraph = " ".join((getdoc(thing) or "").partition("\n\n")[0].split())
    sentence, end, _ = paragraph.partition(". ")
    return sentence + end.rstrip()
