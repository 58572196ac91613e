"""Folders of runs that are built under a hidden name and appear under their own by a single rename: complete, or not
at all.

A draft contains a lock, which the kernel releases when its writer dies, even by SIGKILL. The next writer of a run in
the same folder removes the drafts that nobody holds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from evalwright.errors import RunLockedError, StorageError
from evalwright.files.durable import PRIVATE_FOLDER, storage_error, sync_folder
from evalwright.files.paths import numbered
from evalwright.stores.lock import LOCK_NAME, RunLock

__all__ = ["draft_in", "free_places", "publish"]

_DRAFT = ".new-"
_DRAFTS = re.compile(rf"{re.escape(_DRAFT)}[0-9]+-[0-9a-f]{{8}}")
"""Only names that are made here: a folder of the user that merely begins alike must not be removed."""
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""The errors of rename(2) if the name is taken by a file, or by a folder with content; they depend on the system."""


@contextmanager
def draft_in(runs: Path) -> Iterator[tuple[Path, RunLock]]:
    """A new draft in a folder, which is made if it is missing, and the draft's lock; if the block ends with an
    exception, no trace of them is left. Raises StorageError."""
    folders = [folder for folder in (runs, *runs.parents) if not os.path.exists(folder)]
    with ExitStack() as undone:
        undone.callback(_remove_empty, folders)
        yield _new_draft(runs, undone)  # Ctrl-C while a long dataset is read must not leave a locked draft behind
        undone.pop_all()


def free_places(runs: Path, name: str) -> Iterator[Path]:
    """The folders of that name, and with a number, that nothing is at: rename would replace an empty folder."""
    return (runs / free for free in numbered(name) if not os.path.lexists(runs / free))


def publish(draft: Path, folder: Path) -> bool:
    """Give a draft its name, durably; False if the name has been taken meanwhile: what has content is never replaced.

    Raises StorageError.
    """
    try:
        draft.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise storage_error("create", folder, error) from error
    return True


def _new_draft(runs: Path, undone: ExitStack) -> tuple[Path, RunLock]:
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with _turn(runs) as alone:
            if alone:
                _remove_leftovers(runs)
            draft = runs / f"{_DRAFT}{os.getpid()}-{os.urandom(4).hex()}"
            draft.mkdir(PRIVATE_FOLDER)
            undone.callback(_remove, draft)  # even if it cannot be locked
            lock = RunLock(draft / LOCK_NAME, draft)
            undone.callback(lock.release)
            return draft, lock
    except OSError as error:
        raise storage_error("create a run in", runs, error) from error


def _remove_empty(folders: Iterable[Path]) -> None:
    with suppress(OSError):  # another process has a run there by now
        for folder in folders:
            folder.rmdir()


@contextmanager
def _turn(folder: Path) -> Iterator[bool]:
    """Only one process at a time makes or removes drafts, so that none is removed before its owner has locked it.

    Yields False after 5 seconds without a turn, and if folders cannot be locked: nothing may be removed then, but the
    run can start. Cleaning up is not worth a longer wait.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _lock_until(descriptor, time.monotonic() + 5)
    finally:
        os.close(descriptor)


def _lock_until(descriptor: int, deadline: float) -> bool:
    while time.monotonic() < deadline:  # flock itself waits either without a limit or not at all
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.002)
        except OSError:
            return False
    return False


def _remove_leftovers(folder: Path) -> None:
    """Remove the drafts of processes that have died."""
    for draft in folder.glob(f"{_DRAFT}*"):
        if not _DRAFTS.fullmatch(draft.name) or draft.is_symlink():
            continue
        with suppress(RunLockedError, StorageError, FileNotFoundError):
            lock = RunLock(draft / LOCK_NAME, draft)
            _remove(draft)
            lock.release()


def _remove(draft: Path) -> None:
    import shutil

    shutil.rmtree(draft, ignore_errors=True)
