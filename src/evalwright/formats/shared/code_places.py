"""Code in users' files, named `file.py:name`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["absolute_place"]


def absolute_place(named: str, folders: Iterable[str]) -> str:
    """The name with the absolute path of its file, links followed; unchanged if no folder has the file."""
    path, colon, name = named.rpartition(":")
    found = next((Path(folder) / path for folder in folders if colon and (Path(folder) / path).is_file()), None)
    return named if found is None else f"{os.path.realpath(found)}:{name}"
