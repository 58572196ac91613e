"""Paths that are written in files, and names that are safe for folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["named_in", "numbered", "safe_id", "seen_from_here"]


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


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
"""Characters of an id: file systems allow 255 bytes in a name, and `-2` or a suffix may follow."""


def safe_id(run_id: str) -> str:
    """The id as a folder name: at most 120 letters, digits, `.`, `_` and `-`, without `.` or `-` at the start."""
    return _UNSAFE.sub("-", run_id).lstrip(".-")[:_LONGEST].rstrip("-") or "run"


def numbered(run_id: str) -> Iterator[str]:
    """The id itself, then the id with `-2`, `-3` and so on."""
    yield run_id
    number = 2
    while True:
        yield f"{run_id}-{number}"
        number += 1
