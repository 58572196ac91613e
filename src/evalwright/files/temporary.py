"""Temporary folders that are gone when their process is: removed at the end, or by the next one if it was killed."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["PREFIX", "TemporaryFolder", "remove_tree"]

PREFIX = "evalwright-run-"
_PATIENCE = 60


class TemporaryFolder:
    """A new folder inside `base` (default: the system's temporary folder), locked for as long as we live.

    Making one removes those in the same place that nobody holds any more. Raises OSError.
    """

    def __init__(self, base: Path | None = None) -> None:
        base = Path(tempfile.gettempdir()) if base is None else base
        base.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(base)
        self.path, self._lock = _locked_folder(base)

    def close(self) -> None:
        remove_tree(self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_tree(path: Path) -> None:
    """Remove a folder, also one whose inner folders were made unwritable, or lie deeper than Python can go."""
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        if not os.path.lexists(path):
            return
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([*command, "--", path], capture_output=True, timeout=_PATIENCE, check=False)


def _locked_folder(base: Path) -> tuple[Path, int | None]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base)).resolve()
        try:
            lock = _lock(path)
        except (BlockingIOError, FileNotFoundError):
            continue  # another run took it for a leftover before it was locked
        if path.exists():
            return path, lock
        if lock is not None:
            os.close(lock)


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock, None where folders cannot be locked. Raises BlockingIOError if it is held."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


def _remove_leftovers(base: Path) -> None:
    for path in base.glob(PREFIX + "*"):
        try:
            lock = _lock(path)
        except OSError:
            continue  # held, of somebody else, or gone
        if lock is None:
            continue
        try:
            if os.fstat(lock).st_uid == os.getuid():
                remove_tree(path)
        finally:
            os.close(lock)
