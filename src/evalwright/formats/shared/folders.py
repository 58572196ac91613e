"""Searching folders for suites."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

__all__ = ["files_below"]

_IGNORED = ("node_modules", ".git")
_OF_RUN = "config_hash.txt"
"""A folder with this file contains a run, and a copy of its suite."""


def files_below(folder: Path, suffixes: Collection[str], *, hidden: bool = False) -> Iterator[Path]:
    """Files at any depth, folder by folder, sorted; hidden files and folders only on request."""

    def is_left_out(name: str) -> bool:
        return name in _IGNORED or (name.startswith(".") and not hidden)

    for place, folders, names in os.walk(folder):
        if _OF_RUN in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not is_left_out(name))
        yield from (Path(place, n) for n in sorted(names) if n.endswith(tuple(suffixes)) and not is_left_out(n))
