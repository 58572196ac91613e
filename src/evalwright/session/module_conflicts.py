"""Finds imports that got another module than the one a run means, because the process had imported that already."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Collection, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from evalwright.session.imports import file_in, home_of
from evalwright.user_code import code_of_others

__all__ = ["must_belong"]

_HELPS = "rename one of them, or run the suite in a process of its own (`evalwright run`)"


def must_belong(name: str, loaded: Collection[str], own: Collection[str], held: Collection[str]) -> None:
    """Check what was imported for `name`, and by the modules that were `loaded` for it.

    `own` are the folders of the run, `held` those of other runs still going on. Raises ImportError for a module of
    another run, and for one of the program where a file in the run's own folders is meant.
    """
    folders = [folder for folder in sys.path if folder in own]
    for user, wanted in [("", name.partition(".")[0]), *_imports(loaded, own)]:
        home, file = _module_place(wanted)
        if not file or home in own or file.startswith(code_of_others()):
            continue
        what = f"{user} imports {wanted!r}" if user else f"{wanted!r}"
        meant = file_in(folders, wanted)
        if meant is not None and os.path.realpath(file) != os.path.realpath(meant):
            raise ImportError(f"{what}: {meant} is meant, but this program has imported {file}: {_HELPS}")
        if meant is None and home in held:
            raise ImportError(f"{what}, which only another run of this process has ({file}): {_HELPS}")


def _module_place(wanted: str) -> tuple[str | None, str]:
    """The folder and file of a module: the one that is loaded, or that would be."""
    if wanted in sys.modules:
        return home_of(wanted), getattr(sys.modules[wanted], "__file__", None) or ""
    spec = PathFinder.find_spec(wanted)
    if spec is None or spec.origin is None or not spec.has_location:
        return None, ""
    folder = os.path.dirname(spec.origin)  # noqa: PTH120
    return os.path.dirname(folder) if spec.submodule_search_locations else folder, spec.origin  # noqa: PTH120


def _imports(loaded: Collection[str], own: Collection[str]) -> Iterator[tuple[str, str]]:
    """The files of the run's own modules, and the names that they import, wherever in the file."""
    for name in loaded:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if not file.endswith(".py") or home_of(name) not in own:
            continue
        for node in ast.walk(ast.parse(Path(file).read_bytes())):
            if isinstance(node, ast.Import):
                yield from ((Path(file).name, alias.name.partition(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield Path(file).name, node.module.partition(".")[0]
