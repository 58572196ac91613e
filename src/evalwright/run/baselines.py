"""Baselines: `<runs>/baselines/<name of the eval>` leads to the run that others are compared with."""

from __future__ import annotations

import os
from pathlib import Path

from evalwright.errors import InputError, StorageError
from evalwright.files.paths import safe_id

__all__ = ["baseline_of", "promote"]

_FOLDER = "baselines"


def promote(run: Path, eval_name: str, runs_root: Path | None = None) -> Path:
    """Make a run the baseline of its eval, replacing the one before atomically; the link that leads to it.

    Raises InputError for a run that is not a folder, StorageError when the link cannot be made.
    """
    if not run.is_dir():
        raise InputError(
            f"{run} is not the folder of a run: only those can be a baseline by name, see drift --baseline"
        )
    link = (runs_root or run.resolve().parent) / _FOLDER / safe_id(eval_name)
    waiting = link.with_name(f"{link.name}.{os.getpid()}.new")
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        waiting.unlink(missing_ok=True)
        waiting.symlink_to(os.path.relpath(run.resolve(), link.parent.resolve()))
        waiting.replace(link)
    except OSError as error:
        raise StorageError(f"{link} cannot be made: {error.strerror}") from error
    return link


def baseline_of(run: Path, eval_name: str, runs_root: Path | None = None) -> Path | None:
    """The run that was promoted last, if one was."""
    link = (runs_root or run.resolve().parent) / _FOLDER / safe_id(eval_name)
    return link.resolve() if link.exists() else None
