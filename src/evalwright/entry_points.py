"""What other packages add: entry points of the groups `evalwright.<kind>`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from evalwright.model.format import Format, Option

__all__ = ["Loader", "input_formats", "of_group", "of_kind", "suite_formats"]

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


def suite_formats(options: Mapping[str, Option]) -> dict[str, Loader]:
    """Suite formats by name.

    Among them are the classes in the group `evalwright.dialects`, where formats were registered before `Format`
    existed; `options` are those that such classes may have, by keyword.
    """
    adapted = {
        point.name: (_package(point), partial(_format_of_class, point, options))
        for point in _points("evalwright.dialects")
    }
    own = {p.name: (_package(p), partial(_named, p)) for p in _points("evalwright.formats") if not _is_importer(p)}
    return {**adapted, **own}


def input_formats() -> dict[str, Loader]:
    """Input formats of `import` by name; before `Format` existed, they were in the group `evalwright.formats`."""
    older = {
        point.name: (_package(point), point.load) for point in _points("evalwright.formats") if _is_importer(point)
    }
    return {**older, **of_kind("importers")}


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


def _is_importer(point: EntryPoint) -> bool:
    from evalwright.model.format import Format

    try:
        return not isinstance(point.load(), Format)
    except Exception:  # any exception of another package's import: loading it as a format will report it
        return False


def _named(point: EntryPoint) -> Format:
    found: Format = point.load()
    if found.name != point.name:
        raise ValueError(f"its name is {found.name!r}, but its entry point is called {point.name!r}")
    return found


def _format_of_class(point: EntryPoint, known: Mapping[str, Option]) -> Format:
    """A class with `detects`, `load`, and possibly `options` and `reads_folders`, as a format."""
    from evalwright.model.format import Format

    kind = point.load()
    return Format(
        name=point.name,
        title=point.name,
        summary=first_sentence(kind),
        suffixes=(),
        detects=lambda path, head: kind().detects(path, head),
        load=lambda *given, **options: kind().load(*given, **options),
        options=tuple(known[name] for name in getattr(kind, "options", ()) if name in known),  # only these have a flag
        reads_folders=getattr(kind, "reads_folders", False),
    )


def first_sentence(thing: object) -> str:
    """The first sentence of the docstring of a class or function, on one line; "" without a docstring."""
    from inspect import getdoc

    paragraph = " ".join((getdoc(thing) or "").partition("\n\n")[0].split())
    sentence, end, _ = paragraph.partition(". ")
    return sentence + end.rstrip()
