"""Where the processes of a pytest session leave their cells: one hidden folder beside the runs, named after it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from evalwright.stores.run_ids import safe_id

__all__ = ["abandoned", "new_folder"]


def _prefix() -> str:
    return f".pytest-{safe_id(socket.gethostname())}-"


def new_folder(runs: Path) -> Path:
    """A name for the folder of this session; nothing is made."""
    return runs / f"{_prefix()}{os.getpid()}-{os.urandom(4).hex()}"


def abandoned(runs: Path) -> list[Path]:
    """Folders of sessions of this machine whose main process is gone."""
    return sorted(folder for folder in runs.glob(f"{_prefix()}*") if not _lives(folder.name))


def _lives(name: str) -> bool:
    number = name.removeprefix(_prefix()).partition("-")[0]
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:
        return True
    return True
