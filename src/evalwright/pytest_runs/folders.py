"""Where the processes of a pytest session store their cells: one hidden folder beside the runs, named after the
session."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from evalwright.files.paths import safe_id

__all__ = ["claimed", "new_folder"]


def _prefix() -> str:
    return f".pytest-{safe_id(socket.gethostname())}-"


def new_folder(runs: Path) -> Path:
    """A name for the folder of this session; nothing is created."""
    return runs / f"{_prefix()}{os.getpid()}-{os.urandom(4).hex()}"


def claimed(runs: Path) -> list[Path]:
    """Folders of sessions on this machine whose main process is gone, renamed so that they belong to this session."""
    own = []
    for folder in sorted(runs.glob(f"{_prefix()}*")):
        if not _lives(folder.name):
            with suppress(FileNotFoundError):  # another session was quicker
                own.append(folder.rename(new_folder(runs)))
    return own


def _lives(name: str) -> bool:
    number = name.removeprefix(_prefix()).partition("-")[0]
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:
        return True
    return True
