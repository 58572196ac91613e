"""One writer per run: a lock held by the kernel, which releases it when its owner dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evalwright.errors import RunLockedError
from evalwright.files.durable import PRIVATE, storage_error

__all__ = ["LOCK_NAME", "RunLock", "is_held", "turn_to_create"]

LOCK_NAME = ".lock"

_held: set[int] = set()
"""Descriptors of this process's locks, to be closed in forked children."""


class RunLock:
    """The exclusive right to write to a run, held from construction to `release` by a lock on the file `path`.

    With `remove`, `release` removes the file. Raises RunLockedError, which names the owner, and StorageError if the
    file system cannot lock.
    """

    def __init__(self, path: Path, run: object, *, remove: bool = False) -> None:
        self._path, self._remove = path, remove
        try:
            self._descriptor = _open(path)
        except OSError as error:
            raise storage_error("lock", path, error) from error
        ours = False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, the last owner may have removed the file: this lock then excludes no one.
            while remove and not _is_at(self._descriptor, path):
                os.close(self._descriptor)
                self._descriptor = _open(path)
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = True
            # Only for the message to others; the kernel's lock is what counts, so a stale text does no harm.
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {os.uname().nodename}\n".encode(), 0)
        except BlockingIOError:
            owner = os.pread(self._descriptor, 300, 0).decode("utf-8", "replace").split()
            os.close(self._descriptor)
            raise RunLockedError(f"{run} is being written by {_owner_name(owner)}; wait until it ends") from None
        except OSError as error:
            if ours and remove:  # while it is still locked, as in `release`
                with suppress(OSError):
                    path.unlink()
            os.close(self._descriptor)
            raise storage_error("lock", path, error) from error
        _held.add(self._descriptor)

    def release(self) -> None:
        """Release the lock; does nothing if it is already released, or in a forked child."""
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            with suppress(OSError):
                if self._remove:  # while it is still locked, so that the next owner's file is not removed
                    self._path.unlink()
                os.ftruncate(self._descriptor, 0)
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            with suppress(OSError):  # user code may have closed it, which released the lock
                os.close(self._descriptor)


@contextmanager
def turn_to_create(folder: Path, name: str, run: object) -> Iterator[None]:
    """The right to look in a folder for a run and to create it there: of two processes that look at once, both would
    find none. `name` identifies the run, and `run` describes it. Raises as `RunLock` does."""
    folders = [missing for missing in (folder, *folder.parents) if not missing.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error("create a run in", folder, error) from error
    lock = RunLock(folder / f".{name}{LOCK_NAME}", run, remove=True)
    try:
        yield
    finally:
        lock.release()
        with suppress(OSError):  # there is a run in it
            for made_folder in folders:
                made_folder.rmdir()


def is_held(path: Path) -> bool:
    """Whether a process is writing the run, according to the owner named in the lock file: readers take no lock.

    An owner on another host is assumed to be alive.
    """
    try:
        owner = path.read_text("utf-8", "replace").split()
    except OSError:
        return False
    if len(owner) != 2:
        return False
    if owner[1] != os.uname().nodename:
        return True
    try:
        os.kill(int(owner[0]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _owner_name(owner: list[str]) -> str:
    return f"process {owner[0]} on host {owner[1]}" if len(owner) == 2 else "another process"


def _leave_to_parent() -> None:
    """Close the locks in a forked worker, which would otherwise keep them held after its parent's death."""
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)  # not LOCK_UN, which would take the lock from the parent as well
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
