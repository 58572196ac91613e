"""Files that a command writes together: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from evalwright.errors import StorageError
from evalwright.files.durable import replace_file, storage_error

__all__ = ["in_the_way", "write_together"]


def in_the_way(folder: Path, contents: Mapping[str, bytes]) -> list[str]:
    """The names in `contents` that a folder has already, if the files there are not what a killed command left."""
    there = [name for name in contents if (folder / name).exists()]
    begun = len(there) < len(contents) and all(_is(folder / name, contents[name]) for name in there)
    return [] if begun else there


def _is(file: Path, data: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data


def write_together(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, which is created if necessary, unless they are there with the same content.

    Raises StorageError, or InputError for a folder that cannot be one, and leaves nothing then: the next attempt would
    be rejected because of half a suite.
    """
    is_new, written = not folder.exists(), list[Path]()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error("create", folder, error) from error
    try:
        for name, data in contents.items():
            if _is(folder / name, data):
                continue
            replace_file(folder / name, data)
            written.append(folder / name)
    except StorageError:
        for path in written:
            path.unlink()
        with suppress(OSError):
            if is_new:
                folder.rmdir()
        raise
    return written
