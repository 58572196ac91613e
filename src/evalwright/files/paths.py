"""Paths that are written in files."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["named_in", "seen_from_here"]


def named_in(file: Path, name: str) -> Path:
    """The path `name` inside `file`: from the working directory if it is there, else from the file's folder."""
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser raises for an unknown user
    beside = file.parent / path
    return beside if not _exists(path) and _exists(beside) else path


def seen_from_here(path: Path) -> Path:
    """The path relative to the working directory, if it is below that."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for any file, or a folder that may not be entered
        return False
