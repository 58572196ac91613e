"""Temporary folders that do not outlive their process, even if it is killed.

They are tied to it; if no reaper is left to remove them, as after the end of a container, the next process does.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evalwright.files.durable import PRIVATE_FOLDER
from evalwright.processes.ties import folder, tie, untie

__all__ = ["PREFIX", "TemporaryFolder", "remove_tree", "temporary_folder"]

PREFIX = "evalwright-run-"
_FOLDERS = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")
"""Only names that are made here: a folder of the user that merely begins alike must not be removed."""
_PATIENCE = 60
"""Seconds for one command that removes a folder: a hanging network disk must not hang the run."""


class TemporaryFolder:
    """A new folder inside `base` (default: the system's temporary folder), locked until it is closed.

    Creating one removes those in the same place whose processes are gone. Raises OSError.
    """

    path: Path

    def __init__(self, base: Path | None = None) -> None:
        base = Path(tempfile.gettempdir()) if base is None else base
        base.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(base)
        self.path, self._lock = _locked_folder(base)
        tie(folder(self.path))

    def close(self) -> None:
        remove_tree(self.path)
        untie(folder(self.path))
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder for the duration of a block. Raises OSError."""
    # Unlike PREFIX: this folder has no lock, and would be taken for a leftover.
    with tempfile.TemporaryDirectory(prefix="evalwright-") as name:
        tied = folder(Path(name))
        tie(tied)
        try:
            yield Path(name)
        finally:
            untie(tied)


def remove_tree(path: Path) -> None:
    """Remove a folder, even if folders in it are unwritable or nested too deeply for Python's recursion."""
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):  # usually the first one is enough
        if not os.path.lexists(path):
            return
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([*command, "--", path], capture_output=True, timeout=_PATIENCE, check=False)


def _locked_folder(base: Path) -> tuple[Path, int | None]:
    while True:
        path = base.resolve() / f"{PREFIX}{os.urandom(8).hex()}"
        path.mkdir(PRIVATE_FOLDER)
        try:
            lock = _lock(path)
        except (BlockingIOError, FileNotFoundError):
            continue  # another run took it for a leftover before it was locked
        if path.exists():  # not removed between its creation and its locking
            return path, lock
        if lock is not None:
            os.close(lock)


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock; None if folders cannot be locked. Raises BlockingIOError if it is taken."""
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
    for path in base.glob(f"{PREFIX}*"):
        if not _FOLDERS.fullmatch(path.name):
            continue
        try:
            lock = _lock(path)
        except OSError:
            continue  # in use, owned by another user, or gone
        if lock is None:
            continue  # without locks, whether it is in use cannot be known
        try:
            if os.fstat(lock).st_uid == os.getuid():
                remove_tree(path)
        finally:
            os.close(lock)
