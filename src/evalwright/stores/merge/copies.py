"""What a merged run copies from its shards unchanged: cases, artifacts, and the records of runs in databases."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.durable import PRIVATE, PRIVATE_FOLDER, storage_error
from evalwright.model.protocols import RunReader
from evalwright.stores.local_files.reader import RESULTS, TRACES, VERDICTS

__all__ = ["case_blocks", "copy_artifacts", "created_file", "spool", "write_lines"]

_BUFFER = 1 << 20


@contextmanager
def created_file(path: Path) -> Iterator[BinaryIO]:
    """A new file to write, which only the user may read; it is on disk when the block ends. Raises StorageError."""
    try:
        # Closing writes what is still buffered, and that may fail like any other write.
        with open(path, "xb", buffering=_BUFFER, opener=lambda name, flags: os.open(name, flags, PRIVATE)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise storage_error("write", path, error) from error


def copy_artifacts(source: Path, target: Path) -> list[Problem]:
    """Copy the files of a shard's artifacts, durably; a file that already exists with other bytes is a problem."""
    problems: list[Problem] = []
    for path in sorted(source.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue  # links are not followed: a run folder may come from anyone
        copy = target / path.relative_to(source)
        try:
            if copy.exists():
                if copy.read_bytes() != path.read_bytes():
                    problems.append(Problem(str(path), "is in another shard, too, with other bytes"))
                continue
            copy.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            with path.open("rb") as original, created_file(copy) as file:
                shutil.copyfileobj(original, file, _BUFFER)
        except OSError as error:
            raise storage_error("copy", path, error) from error
    return problems


def spool(reader: RunReader, folder: Path) -> None:
    """Write the records of a run that is not in a folder into one, as lines. Raises StorageError."""
    for name, records in (
        (TRACES, reader.traces(msgspec.Raw)),
        (RESULTS, reader.results(msgspec.Raw)),
        (VERDICTS, reader.verdicts(msgspec.Raw)),
    ):
        write_lines(folder / name, (bytes(record) + b"\n" for record in records))


def case_blocks(reader: RunReader) -> Iterator[bytes]:
    """The cases of a run as stored, in blocks. Raises InputError for a store that does not provide them."""
    blocks = getattr(reader, "case_blocks", None) or getattr(reader, "case_lines", None)
    if blocks is None:
        raise InputError(f"{reader.location} is in a store of another package, whose runs cannot be merged")
    first_blocks: Iterator[bytes] = blocks()
    return first_blocks


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write a new file, durably. Raises StorageError."""
    with created_file(path) as file:
        file.writelines(lines)
