"""One writer per run folder: a lock of the kernel's, which is free again when its owner dies however it dies."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from evalwright.errors import RunLockedError
from evalwright.files.durable import storage_error

__all__ = ["LOCK_NAME", "RunLock"]

LOCK_NAME = ".lock"

_held: set[int] = set()


class RunLock:
    """The exclusive right to write to a run, held from construction to `release` by a lock on the file `path`.

    With `remove` the file is gone after `release`.
    Raises RunLockedError that names the owner, and StorageError where the file system cannot lock.
    """

    def __init__(self, path: Path, run: object, *, remove: bool = False) -> None:
        self._path, self._remove = path, remove
        try:
            self._descriptor = _opened(path)
        except OSError as error:
            raise storage_error("lock", path, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            while remove and not _is_at(self._descriptor, path):  # its last owner has just removed it
                os.close(self._descriptor)
                self._descriptor = _opened(path)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {os.uname().nodename}\n".encode(), 0)
        except BlockingIOError:
            owner = os.pread(self._descriptor, 300, 0).decode("utf-8", "replace").split()
            os.close(self._descriptor)
            raise RunLockedError(f"{run} is being written by {_described(owner)}; wait until it ends") from None
        except OSError as error:
            os.close(self._descriptor)
            raise storage_error("lock", path, error) from error
        _held.add(self._descriptor)

    def release(self) -> None:
        """Give the right back; harmless when given back already."""
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            with suppress(OSError):
                if self._remove:
                    self._path.unlink()
                os.ftruncate(self._descriptor, 0)
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _described(owner: list[str]) -> str:
    return f"process {owner[0]} on host {owner[1]}" if len(owner) == 2 else "another process"


def _leave_to_parent() -> None:
    """A forked worker must not keep its parent's locks alive after the parent's death."""
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
