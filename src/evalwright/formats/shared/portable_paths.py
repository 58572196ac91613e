"""Paths and code of an original, relative to the new folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evalwright.formats.shared.environment import SUITE_FOLDER

__all__ = ["Places", "absolute_place"]


class Places:
    """Absolute paths near the suite, rewritten relative to the new folder."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._folder = os.path.abspath(folder)  # noqa: PTH100 - keeps links as given
        home = source.resolve().parent
        root = next((p for p in (home, *home.parents) if (p / ".git").exists()), home)
        near = sorted({str(root), str(home), str(Path.cwd())} - {"/"})
        self._near = re.compile("(?:" + "|".join(map(re.escape, near)) + r")(?=/|\Z)") if near else None

    def of(self, value: Any) -> Any:
        """The value with such paths written from SUITE_FOLDER, at any depth."""
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if isinstance(value, str) and self._near is not None and self._near.match(value):
            return f"{SUITE_FOLDER}/{os.path.relpath(value, self._folder)}"
        return value

    def near(self, path: str) -> str:
        """A path relative to the new folder; what follows its last colon, the name of a function, stays."""
        return os.path.relpath(path, self._folder) if os.path.isabs(path) else path  # noqa: PTH117


def absolute_place(named: str, folders: Iterable[str]) -> str:
    """The name with the absolute path of its file, links resolved; unchanged if no folder has the file."""
    path, colon, name = named.rpartition(":")
    file = next((Path(folder) / path for folder in folders if colon and os.path.isfile(Path(folder) / path)), None)
    return named if file is None else f"{os.path.realpath(file)}:{name}"
