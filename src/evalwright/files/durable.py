"""The only ways in which evalwright writes what it must not lose: append lines to a file, or replace a file.

Promise. Once `append` has returned, the data is with the operating system and survives the death of the process. Once
`sync` has returned, it is on the disk and survives a power cut. A reader of a file that `replace_file` writes sees
the old content or the new one, never a part of either, and once it has returned the new one survives a power cut.

Steps. Append: write at the end (O_APPEND); if that fails, cut the file back to where it ended. Sync: fsync. Replace:
write a temporary file in the same folder, fsync it, rename it over the old one, fsync the folder.

Cost. An append is one system call, and waits for no disk. A sync waits for the disk, so callers sync in batches and
before they report something as stored. A replacement waits for the disk twice and is meant for small files.

Limits. After a failure nothing more is written, so that everything before it stays valid: Linux reports a lost page to
only one fsync, and the next one would call the same data safe. If cutting back fails too, or the process dies during a
write, an incomplete last line is left, which `repair_tail` removes when the file is next opened for writing. A disk
that lies about fsync, or a network file system that does not lock, voids the promise.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from evalwright.errors import InputError, StorageError
from evalwright.files.drafts import open_draft
from evalwright.files.paths import is_there

__all__ = [
    "PRIVATE",
    "PRIVATE_FOLDER",
    "SHARED",
    "AppendFile",
    "create_file",
    "make_folder",
    "must_be_a_file",
    "must_be_writable",
    "private_file",
    "private_folder",
    "repair_tail",
    "replace_file",
    "replace_lines",
    "storage_error",
    "sync_folder",
    "write_output",
]

PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
"""Modes of files and folders that may contain answers or keys: only the owner can read them, whatever the umask is."""
SHARED = 0o666
_BLOCK, _NO_PLACE = 1 << 16, (errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)


class AppendFile:
    """One file that only grows, open for the life of a run. Used by one thread; `sync` may be called from another."""

    def __init__(self, path: Path, mode: int = SHARED) -> None:
        self.path = path
        self._failure: StorageError | InputError | None = None
        self._unsynced = False
        self._closing = threading.Lock()
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
            opened = os.fstat(self._descriptor)
            self.length: int = opened.st_size  # as far as it was written or followed here
            self._is_a_file = stat.S_ISREG(opened.st_mode) and opened.st_nlink > 0  # some systems count no links
        except OSError as error:
            raise storage_error("open", path, error) from error

    def append(self, data: bytes | bytearray) -> None:
        """Write `data` at the end. Raises StorageError; the file then ends where it ended before."""
        if self._failure is not None:
            raise self._failure
        if self._descriptor is None:
            raise StorageError(f"{self.path} is closed")
        try:
            # One call for a whole line, so that readers of the growing file seldom see half of one.
            written = os.write(self._descriptor, data)
            while written < len(data):  # a disk that is filling up accepts a part first, and then refuses
                written += os.write(self._descriptor, memoryview(data)[written:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.length)
            self._failure = storage_error("write", self.path, error)
            raise self._failure from error
        self.length += written
        self._unsynced = True

    def follow(self) -> None:
        """Continue at the present end of the file, after another process has appended to it. Raises StorageError."""
        if self._descriptor is None:
            raise StorageError(f"{self.path} is closed")
        try:
            self.length = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise storage_error("look at", self.path, error) from error
        self._unsynced = True  # what the other process appended must be durable as well

    def sync(self) -> None:
        """Make everything appended so far durable. Raises StorageError, also if it is gone; the failure is final."""
        if self._failure is not None:
            raise self._failure
        with self._closing:  # a descriptor closed meanwhile may already belong to another file
            if not self._unsynced or self._descriptor is None:
                return
            self._unsynced = False  # before the call: an append during it must request the next one
            least = self.length
            try:
                os.fsync(self._descriptor)
                self._must_have(least, self._descriptor)  # afterwards: a network's disk may not know its size before
            except OSError as error:
                self._failure = storage_error("sync", self.path, error)
                raise self._failure from error

    def _must_have(self, least: int, descriptor: int) -> None:
        """Raises OSError if the file has fewer bytes, or no name any more: only readers would notice."""
        cut = least - (now := os.fstat(descriptor)).st_size
        if self._is_a_file and now.st_nlink == 0:
            raise OSError(errno.ESTALE if self.path.parent.exists() else errno.ENOENT, "it was deleted or replaced")
        if self._is_a_file and cut > 0:
            raise OSError(errno.ESTALE, f"it was cut by {cut:,} bytes")

    def close(self) -> None:
        """Close without syncing; does nothing if the file is closed already."""
        with self._closing:
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)


def repair_tail(path: Path) -> int:
    """Remove what a crash left after the last whole line of a JSON Lines file; returns the number of bytes removed.

    A last line that is a whole JSON object and lacks only its line end gets one. A last line that ends but is not
    JSON (blocks of zeros after a power cut) is removed as well. Raises StorageError.
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
    """How long the file should be: up to its last whole record, or one more that only lacks its line end."""
    start = _line_start(file, size)
    if start < size:
        return size + 1 if _is_record(_bytes_between(file, start, size)) else start
    last = _line_start(file, max(0, size - 1))
    line = _bytes_between(file, last, size)
    return size if not line.strip() or _is_json(line) else last


def _line_start(file: BinaryIO, end: int) -> int:
    """The position after the last LF before `end`; 0 if there is none."""
    while end > 0:  # backwards, so that the cost does not grow with the file
        start = max(0, end - _BLOCK)
        position = _bytes_between(file, start, end).rfind(b"\n")
        if position >= 0:
            return start + position + 1
        end = start
    return 0


def _bytes_between(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _is_record(line: bytes) -> bool:
    return line.startswith(b"{") and _is_json(line)


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.ValidationError, RecursionError):
        return True  # well formed as far as it was parsed: too large a number, or too deep
    except ValueError:
        return False
    return True


def private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, readable only by the owner. Raises OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):  # `parents=True` would give those above the usual mode
        folder.mkdir(PRIVATE_FOLDER, exist_ok=True)


def must_be_a_file(path: Path, *, terminal: bool = False, pipe: bool = False) -> None:
    """Raises InputError for what is neither a file nor missing: opening a pipe would wait for another process for ever.

    With `terminal`, character devices are allowed, such as /dev/null; with `pipe`, pipes are.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    kinds = {stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder"}
    kinds |= {} if terminal else {stat.S_IFCHR: "a device"}
    kinds |= {} if pipe else {stat.S_IFIFO: "a pipe"}
    if (kind := kinds.get(stat.S_IFMT(mode))) is not None:
        raise InputError(f"{path}: expected a file, found {kind}")


def private_file(path: Path) -> None:
    """Make sure that a file exists which only its owner may read; missing folders are made likewise. Raises OSError."""
    private_folder(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):  # root could close a device, such as /dev/null, to everyone else
            with suppress(OSError):  # it may belong to another user
                os.fchmod(descriptor, PRIVATE)
    finally:
        os.close(descriptor)


def create_file(path: Path, data: bytes) -> None:
    """Make a file that only its owner may read, complete from the start; an existing one stays. Raises OSError."""
    private_folder(path.parent)
    with open_draft(path, PRIVATE) as file:
        try:
            file.write(data)
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)  # unlike a rename it replaces nothing that another process has just made
        finally:
            _remove(file.name)


def replace_file(path: Path, data: bytes, mode: int = SHARED) -> None:
    """Replace a file's content at once and durably: readers see the old or the new one. Raises StorageError."""
    replace_lines(path, (data,), mode)


def replace_lines(path: Path, lines: Iterable[bytes], mode: int = SHARED) -> None:
    """Like `replace_file`, for pieces that need not be held together. If `lines` raises, the file stays as it was."""
    try:
        with open_draft(path, mode) as file:  # in the same folder: a rename is atomic only within one file system
            try:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
                # After the fsync: otherwise a power cut could leave the new name on an empty file.
                Path(file.name).replace(path)
            finally:
                _remove(file.name)
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error("replace", path, error) from error


def _remove(draft: str) -> None:
    """Remove a draft that has not become a file."""
    with suppress(OSError):
        Path(draft).unlink()


def write_output(path: Path, lines: Iterable[bytes]) -> None:
    """Like `replace_lines`, for a path that the user named: a device or a pipe is written to.

    As root, replacing /dev/null would take it from every program on the machine. What lies in a run folder is always
    replaced: a link there may be another user's. Raises InputError for a folder, a socket or a disk, and StorageError.
    """
    must_be_a_file(path, terminal=True, pipe=True)
    if not _is_stream(path):
        replace_lines(path, lines)
        return
    try:
        # Not to wait until another process reads the pipe; once one does, writing may wait for it.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(descriptor, True)
        with open(descriptor, "wb") as file:  # noqa: PTH123
            file.writelines(lines)
    except OSError as error:
        raise storage_error("write", path, error) from error


def _is_stream(path: Path) -> bool:
    """Whether a path leads to something that is written to and has no content to be replaced: /dev/stdout, too, if it
    is redirected to a file."""
    try:
        mode = path.stat().st_mode
        return not stat.S_ISREG(mode) or (path.is_symlink() and str(path.readlink()).startswith("/proc/"))
    except OSError:
        return False


def sync_folder(path: Path) -> None:
    """Make renames inside a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make the folder of a file that is to be written, and those above it. Raises InputError and StorageError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error("make", path, error) from error


def must_be_writable(path: Path) -> None:
    """Reject a file at `path` that could not be written, before there is anything to write. Raises InputError."""
    try:
        there = next(place for place in (path, *path.absolute().parents) if is_there(place))
    except OSError as error:  # a name too long for any file
        raise storage_error("write", path, error) from error
    if there.is_dir() == (there == path):
        raise InputError(f"cannot write {path}: {there} is a {'folder' if there == path else 'file, not a folder'}")
    if not os.access(there, os.W_OK):
        raise InputError(f"cannot write {path}: {there} is not writable")


def storage_error(verb: str, path: Path, error: OSError) -> StorageError | InputError:
    """What could not be done to which file, and why; an InputError if no disk could have anything at that path."""
    if error.errno not in _NO_PLACE:
        return StorageError(f"cannot {verb} {path}: {error.strerror or error}")
    in_the_way = next((str(place) for place in (path, *path.parents) if os.path.isfile(place)), None)
    why = error.strerror if in_the_way is None else f"{in_the_way} is a file, not a folder"
    return InputError(f"cannot {verb} {path}: {why}")
