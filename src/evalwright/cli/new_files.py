"""Files that a command writes together: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from evalwright.errors import StorageError
from evalwright.files.durable import replace_file, storage_error

__all__ = ["write_together"]


def write_together(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files that are not there yet into a folder, which is created if necessary.

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
