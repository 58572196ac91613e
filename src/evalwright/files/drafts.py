"""Files that have a hidden name beside their final one until they are complete.

A writer holds a lock on its draft, which the kernel releases when the process dies, even by SIGKILL. So a draft that is
not locked is what a killed process left, and the next writer of the same file removes it. On a file system without
locks nothing is removed, as it may be in use.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_draft"]


def open_draft(path: Path, mode: int) -> BinaryIO:
    """A new file beside `path`, with `mode` less the umask, to be renamed to it before it is closed. Its `name` is its
    present path.

    Drafts of the same file whose writers were killed are removed. Raises OSError.
    """
    _remove_abandoned(path)
    while True:
        # The random part keeps two writers apart.
        draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        file = open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115 - the caller's
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()  # another writer took it for abandoned before it was locked, and removes it
            continue
        except OSError:
            return file  # no locks here
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _remove_abandoned(path: Path) -> None:
    drafts = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.tmp")
    with suppress(OSError):  # a folder may be writable and not readable
        for neighbour in path.parent.iterdir():
            if drafts.fullmatch(neighbour.name):
                _remove_unlocked(neighbour)


def _remove_unlocked(draft: Path) -> None:
    # A pipe of this name would keep us waiting, and a link lead elsewhere.
    with suppress(OSError):
        descriptor = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink()
        finally:
            os.close(descriptor)
