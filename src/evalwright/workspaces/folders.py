"""A temporary folder that is gone when its run is: removed at the end, or by the next run if this one was killed."""

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
        lock = _lock(path)
        if lock is None or path.exists():
            return path, lock
        os.close(lock)  # another run took it for a leftover before it was locked


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock; None when somebody else does, or the file system knows no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_leftovers(base: Path) -> None:
    for path in base.glob(PREFIX + "*"):
        lock = _lock(path)
        if lock is None:
            continue
        try:
            if os.fstat(lock).st_uid == os.getuid():
                remove_tree(path)
        finally:
            os.close(lock)
