"""Folders that appear with everything in them, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalwright.errors import InputError
from evalwright.files.durable import make_folder, storage_error, sync_folder
from evalwright.processes.ties import folder, tie, untie

__all__ = ["complete_folder"]


@contextmanager
def complete_folder(path: Path) -> Iterator[Path]:
    """A folder to write to, which gets the name `path` when the block ends; after an exception, and after the end of
    the process, nothing is left of it.

    Raises InputError if there is something at `path` already, even an empty folder, whose access rights a new one would
    not have, and StorageError.
    """
    if os.path.lexists(path):
        raise InputError(f"{path} exists already, and nothing is overwritten: name a new folder")
    path = path.absolute()
    make_folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    tied = folder(draft)
    try:
        tie(tied)
        draft.mkdir()
        yield draft
        draft.rename(path)
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error("make", path, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        untie(tied)
