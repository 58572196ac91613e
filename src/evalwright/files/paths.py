"""Paths that stand in files."""

from __future__ import annotations

from pathlib import Path

__all__ = ["named_in"]


def named_in(file: Path, name: str) -> Path:
    """The path `name` inside `file`: from the working directory if it is there, else from the file's folder."""
    path = Path(name).expanduser()
    if path.is_absolute() or path.exists():
        return path
    beside = file.parent / path
    return beside if beside.exists() else path
