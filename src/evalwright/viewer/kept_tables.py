"""Tables of the cells of large runs, kept in the user's cache for the next session."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from evalwright.files.temporary import TemporaryFolder
from evalwright.files.user_folder import user_folder
from evalwright.viewer.schema import TABLES_VERSION

__all__ = ["connection", "kept_table"]

_KEPT_SECONDS = 30 * 24 * 3600.0
"""How long a table is kept that no session used: it holds a copy of the answers, and its run may be gone."""


def kept_table(run: str, stamp: str, build: Callable[[Path], None]) -> sqlite3.Connection:
    """The table of the run at a path: the kept one for these records, else a new one. `build` makes a file with the
    stamp among its facts. Raises OSError, sqlite3.Error."""
    named = f"{TABLES_VERSION} {Path(run).absolute()}".encode("utf-8", "replace")
    folder = user_folder("view")
    place = folder / f"{hashlib.sha256(named).hexdigest()[:24]}.sqlite"
    if (file := _known_table(place, stamp)) is not None:
        return file
    _remove_unused(folder)
    with closing(TemporaryFolder(folder)) as making:  # removed, too, if the process is killed while it reads
        build(making.path / place.name)
        (making.path / place.name).replace(place)
    return connection(place)


def _known_table(place: Path, stamp: str) -> sqlite3.Connection | None:
    with suppress(OSError, sqlite3.Error):
        os.utime(place)  # first, as opening a file that is not there would make one
        file = connection(place)
        if file.execute("SELECT value FROM facts WHERE name = 'stamp'").fetchone() == (stamp,):
            return file
        file.close()
    return None


def connection(place: str | Path) -> sqlite3.Connection:
    """To a table that several threads share."""
    return sqlite3.connect(place, check_same_thread=False)


def _remove_unused(folder: Path) -> None:
    oldest = time.time() - _KEPT_SECONDS
    for table in folder.glob("*.sqlite"):
        with suppress(OSError):  # another session may have removed it
            if table.stat().st_mtime < oldest:
                table.unlink()
