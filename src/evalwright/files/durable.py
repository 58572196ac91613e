"""The only ways in which evalwright writes what it must not lose: append a line, replace a file.

Appending: what `append` returned from is with the operating system and survives the death of the process; what
`sync` returned from is on the disk and survives a power cut. After any failure nothing more is written, so that
everything before it stays valid: a failed fsync may have dropped data that a second one would call safe.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from evalwright.errors import StorageError

__all__ = ["AppendFile", "repair_tail", "replace_file", "storage_error", "sync_folder"]

_BLOCK = 1 << 16


class AppendFile:
    """One file that only grows, open for the life of a run. Used by one thread; `sync` may come from another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._failure: StorageError | None = None
        self._unsynced = False
        self._closing = threading.Lock()
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._length = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise storage_error("open", path, error) from error

    def append(self, data: bytes) -> None:
        """Write `data` at the end. Raises StorageError; the file then ends where it ended before."""
        if self._failure is not None:
            raise self._failure
        if self._descriptor is None:
            raise StorageError(f"{self.path} is closed")
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):
                written += os.write(self._descriptor, memoryview(data)[written:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._length)
            self._failure = storage_error("write", self.path, error)
            raise self._failure from error
        self._length += written
        self._unsynced = True

    def follow(self) -> None:
        """Another process has written, whose turn is over: go on from where the file ends now. Raises StorageError."""
        if self._descriptor is None:
            raise StorageError(f"{self.path} is closed")
        try:
            self._length = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise storage_error("look at", self.path, error) from error
        self._unsynced = True

    def sync(self) -> None:
        """Make everything appended so far durable. Raises StorageError; the failure is final."""
        if self._failure is not None:
            raise self._failure
        with self._closing:
            if not self._unsynced or self._descriptor is None:
                return
            self._unsynced = False
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self._failure = storage_error("sync", self.path, error)
                raise self._failure from error

    def close(self) -> None:
        """Close without syncing; harmless when closed already."""
        with self._closing:
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)


def repair_tail(path: Path) -> int:
    """Cut what a crash left after the last whole line of a JSON Lines file; the number of bytes cut.

    A last line that is a whole JSON object and lacks only its line end gets one. A last line that ends but is no
    JSON (blocks of zeros after a power cut) is cut as well. Raises StorageError.
    """
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            good = _good_length(file, size)
            if good > size:
                file.write(b"\n")
            elif good < size:
                file.truncate(good)
            if good != size:
                file.flush()
                os.fsync(file.fileno())
            return max(0, size - good)
    except OSError as error:
        raise storage_error("repair", path, error) from error


def _good_length(file: BinaryIO, size: int) -> int:
    """How long the file should be: up to its last whole record, or one more where only the line end is missing."""
    start = _line_start(file, size)
    if start < size:
        return size + 1 if _is_record(_between(file, start, size)) else start
    last = _line_start(file, max(0, size - 1))
    line = _between(file, last, size)
    return size if not line.strip() or _is_json(line) else last


def _line_start(file: BinaryIO, end: int) -> int:
    """The position after the last LF before `end`, 0 when there is none."""
    while end > 0:
        start = max(0, end - _BLOCK)
        found = _between(file, start, end).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _between(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _is_record(line: bytes) -> bool:
    return line.startswith(b"{") and _is_json(line)


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.ValidationError, RecursionError):
        return True  # well formed as far as it was looked at: too large a number, too deep
    except ValueError:
        return False
    return True


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content at once and durably: readers see the old or the new one. Raises StorageError."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error("replace", path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make renames inside a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(verb: str, path: Path, error: OSError) -> StorageError:
    """What could not be done to which file and why, as the run's last word."""
    return StorageError(f"cannot {verb} {path}: {error.strerror or error}")
