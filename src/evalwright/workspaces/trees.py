"""Copies the regular files of an untrusted folder, and lists them as they were copied.

Nothing outside the folder is ever read: symbolic links are not followed, not even one that replaces a file or a folder
during the copy, because each step is opened from the folder above it. Pipes, devices and links are skipped; what cannot
be read, and what exceeds the limits, is named with the reason. Of a growing file, the part is
copied that existed when it was opened.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from evalwright.model.artifact import FileEntry, FileManifest

__all__ = ["DEEPEST", "MOST_ENTRIES", "Mask", "Tree", "Twin", "copy_tree"]

DEEPEST = 64
"""Levels of folders that are copied."""
MOST_ENTRIES = 50_000
"""Files and folders of one tree."""
MOST_BYTES = 2**30
"""Bytes of one tree."""
_CHUNK = 2**20
_MASKABLE = 16 * 2**20
"""Bytes of a file that is masked in memory; a larger one is kept only if it contains no secret."""
_LONGEST_SECRET = 2**16
"""Bytes of overlap when a large file is searched piece by piece."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe would otherwise wait for a writer
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

Mask = Callable[[str], str]


class Tree(NamedTuple):
    """The files of a folder as they were copied, and what was left out, by path with the reason (`.`: all the rest)."""

    manifest: FileManifest
    left_out: dict[str, str]


class Twin(NamedTuple):
    """An earlier copy: files that are equal there are linked instead of copied."""

    folder: Path
    manifest: FileManifest


def copy_tree(
    source: Path, into: Path, *, without: Set[str] = frozenset(), mask: Mask | None = None, twin: Twin | None = None
) -> Tree:
    """Copy the regular files below `source` into the new folder `into`, except entries of its top named in `without`.

    `mask` changes names and contents on the way; the manifest has the sizes and hashes from before. A folder that no
    longer exists counts as empty. Raises OSError if `into` cannot be made.
    """
    into.mkdir(parents=True)
    copying = _CopyInProgress(without, mask, twin)
    with _opened_descriptor(into, _DIRECTORY) as end:
        try:
            with _opened_descriptor(source, _DIRECTORY) as start:
                copying.folder(start, end, "", "", 0)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                copying.left_out["."] = error.strerror or str(error)
    files = dict(sorted(copying.files.items()))
    return Tree(FileManifest(files), dict(sorted(copying.left_out.items())))


class _TooLarge(Exception):
    """A file exceeds the limits."""


class _CopyInProgress:
    """A copy under way, and what is left of its limits."""

    def __init__(self, without: Set[str], mask: Mask | None, twin: Twin | None) -> None:
        self._without, self._mask, self._twin = without, mask, twin
        self._entries, self._bytes = MOST_ENTRIES, MOST_BYTES
        self.files: dict[str, FileEntry] = {}
        self.left_out: dict[str, str] = {}

    def folder(self, source: int, target: int, path: str, stored: str, depth: int) -> None:
        """Copy the contents of an open folder. `stored` is its path in the copy, in the names of the file system."""
        for name in self._names(source):
            if not depth and name in self._without:
                continue
            kept = self._mask(name) if self._mask else name
            place = f"{path}/{_readable(name)}".lstrip("/")
            try:
                self._entry(source, target, name, kept, place, os.path.join(stored, kept), depth)  # noqa: PTH118 - no Path takes every name
            except _TooLarge as error:
                self.left_out[place] = str(error)
            except OSError as error:
                self.left_out[place] = error.strerror or str(error)

    def _names(self, source: int) -> list[str]:
        with os.scandir(source) as entries:
            names = sorted(entry.name for entry in islice(entries, self._entries + 1))
        if len(names) > self._entries:
            self.left_out["."] = f"more than {MOST_ENTRIES:,} files and folders"
            names = names[: self._entries]
        self._entries -= len(names)
        return names

    def _entry(
        self, source: int, target: int, name: str, stored_name: str, place: str, stored: str, depth: int
    ) -> None:
        mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            if depth >= DEEPEST:
                raise _TooLarge(f"more than {DEEPEST} folders deep")
            with _opened_descriptor(name, _DIRECTORY, source) as below:
                os.mkdir(stored_name, dir_fd=target)
                with _opened_descriptor(stored_name, _DIRECTORY, target) as copy:
                    self.folder(below, copy, place, stored, depth + 1)
        elif stat.S_ISREG(mode):
            if place in self.files:
                raise _TooLarge("two names that are not UTF-8 look the same")
            with _opened_descriptor(name, _READ, source) as file:
                facts = os.fstat(file)  # checked again: the name may refer to something else by now
                if stat.S_ISREG(facts.st_mode):
                    self.files[place] = self._file(file, facts, target, stored_name, place, stored)

    def _file(
        self, file: int, facts: os.stat_result, target: int, stored_name: str, place: str, stored: str
    ) -> FileEntry:
        if facts.st_size > self._bytes:
            raise _TooLarge(f"its {facts.st_size:,} bytes exceed what is kept of one workspace")
        entry = self._linked_entry(file, facts, target, stored_name, place, stored)
        if entry is None:
            os.lseek(file, 0, os.SEEK_SET)
            try:
                entry = _entry_of(facts, self._copied_file(file, facts, target, stored_name))
            except (_TooLarge, OSError):
                with suppress(OSError):
                    os.unlink(stored_name, dir_fd=target)
                raise
        self._bytes -= entry.size
        return entry

    def _linked_entry(
        self, file: int, facts: os.stat_result, target: int, stored_name: str, place: str, stored: str
    ) -> FileEntry | None:
        """The entry of a file that the twin also has, linked to it; None if it has not, or if links are impossible."""
        if self._twin is None or (twin := self._twin.manifest.files.get(place)) is None:
            return None
        if (twin.size, _runs(twin.mode)) != (facts.st_size, _runs(facts.st_mode)):
            return None
        entry = _entry_of(facts, _hash_and_size(file, facts.st_size))
        if entry.sha256 != twin.sha256:
            return None
        try:
            os.link(self._twin.folder / stored, stored_name, dst_dir_fd=target, follow_symlinks=False)
        except OSError:
            return None
        return entry

    def _copied_file(self, file: int, facts: os.stat_result, target: int, stored_name: str) -> tuple[str, int]:
        copy = os.open(stored_name, _WRITE, 0o755 if _runs(facts.st_mode) else 0o644, dir_fd=target)
        try:
            if self._mask is None:
                hash_and_size = _hash_and_size(file, facts.st_size, lambda data: _write(copy, data))
            elif facts.st_size > _MASKABLE:
                hash_and_size = _hash_and_size(file, facts.st_size, _SecretSearch(self._mask, copy))
            else:
                pieces: list[bytes] = []
                hash_and_size = _hash_and_size(file, facts.st_size, pieces.append)
                _write(copy, _masked(b"".join(pieces), self._mask))
            os.utime(copy, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        finally:
            os.close(copy)
        return hash_and_size


class _SecretSearch:
    """Writes the chunks that it gets; raises _TooLarge if there is a secret in them."""

    def __init__(self, mask: Mask, copy: int) -> None:
        self._mask, self._copy, self._before = mask, copy, b""

    def __call__(self, chunk: bytes) -> None:
        data = self._before + chunk
        if _masked(data, self._mask) is not data:
            raise _TooLarge("it contains a secret and is too large to be masked")
        _write(self._copy, chunk)
        self._before = data[-_LONGEST_SECRET:]


def _masked(data: bytes, mask: Mask) -> bytes:
    """The masked data; the same object if it contains no secret."""
    text = data.decode("utf-8", "surrogateescape")
    masked = mask(text)
    return data if masked == text else masked.encode("utf-8", "surrogateescape")


@contextmanager
def _opened_descriptor(name: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _chunks(file: int, most: int) -> Iterator[bytes]:
    while most > 0 and (chunk := os.read(file, min(_CHUNK, most))):
        most -= len(chunk)
        yield chunk


def _hash_and_size(file: int, most: int, take: Callable[[bytes], None] = lambda data: None) -> tuple[str, int]:
    """SHA-256 (hex) and size of the first `most` bytes; `take` is called with each piece of them."""
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(file, most):
        digest.update(chunk)
        size += len(chunk)
        take(chunk)
    return digest.hexdigest(), size


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _entry_of(facts: os.stat_result, hash_and_size: tuple[str, int]) -> FileEntry:
    sha256, size = hash_and_size
    return FileEntry(size, stat.S_IMODE(facts.st_mode), facts.st_mtime, sha256)


def _runs(mode: int) -> bool:
    return bool(mode & 0o111)


def _readable(name: str) -> str:
    """The name of a file as valid text; bytes that are not UTF-8 as `\\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
