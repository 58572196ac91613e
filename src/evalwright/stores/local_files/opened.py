"""The files of a run folder, opened for reading: what goes wrong then names the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from evalwright.errors import InputError, Problem
from evalwright.files.durable import storage_error

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["open_if_there", "read_errors"]

_BUFFER = 1 << 20


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turns errors of the system into a StorageError, or an InputError for what this user cannot read as a file."""
    try:
        yield
    except (PermissionError, IsADirectoryError) as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from error
    except OSError as error:
        raise storage_error("read", path, error) from error


def open_if_there(path: Path) -> BinaryIO | None:
    """The file, every read of which raises as `read_errors` does; None if there is none."""
    with read_errors(path):
        try:
            return io.BufferedReader(_File(str(path)), _BUFFER)
        except FileNotFoundError:
            return None


class _File(io.FileIO):
    """Below the buffer, so called only for large blocks."""

    name: str

    def readinto(self, buffer: WriteableBuffer) -> int:
        with read_errors(Path(self.name)):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with read_errors(Path(self.name)):
            return super().readall()
