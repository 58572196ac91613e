"""Files that may be packed, recognised by their first bytes: gzip with the standard library, zstd with a package."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from evalwright.errors import InputError, Problem
from evalwright.files.paths import unreadable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

__all__ = ["PACKED", "is_packed", "opened", "unpacked_name"]

PACKED = (".gz", ".zst")
_BUFFER = 1 << 16
"""Bytes that are read at once: with the default, a line of some kilobytes takes several reads and copies."""
_AT_ONCE = 1 << 14
"""Bytes that are unpacked at once; they may expand a thousandfold."""
_MOST = 1 << 27
"""Bytes of one line or document of a packed file: a file of some kilobytes may unpack to more than the memory holds."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpacked_name(file: Path) -> Path:
    """The name of a file without the suffix of its packing."""
    return file.with_suffix("") if file.suffix.lower() in PACKED else file


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked while they are read.

    Raises InputError if it cannot be read or is damaged, and where 128 MiB of a packed file were to be read at once.
    """
    try:
        with file.open("rb", _BUFFER) as raw:
            magic = raw.read(len(_ZSTD))
            raw.seek(0)
            if magic.startswith(_GZIP):
                yield _UnpackedFile(file, gzip.GzipFile(fileobj=raw))
            elif magic == _ZSTD:
                yield _unpacked_zstd(file, raw)
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(Problem(str(file), unreadable(file, error))) from None


def is_packed(file: Path) -> bool:
    """Whether the file is unpacked while it is read. Raises InputError if it cannot be read."""
    with opened(file) as source:
        return isinstance(source, _UnpackedFile)


def _unpacked_zstd(file: Path, raw: IO[bytes]) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        install = "is packed with zstd: pip install 'evalwright[zstd]' reads it"
        raise InputError(Problem(str(file), install)) from None
    return _UnpackedFile(file, _Frames(raw, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError))


class _UnpackedFile(io.BufferedReader):
    """The content of a packed file, of which no line and no document may be too long."""

    def __init__(self, file: Path, content: Any) -> None:
        super().__init__(content, _BUFFER)
        self._file = file

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(size) if size is not None and size >= 0 else self._within_limit(super().read(_MOST + 1))

    def readline(self, size: int | None = -1, /) -> bytes:
        return (
            super().readline(size)
            if size is not None and size >= 0
            else self._within_limit(super().readline(_MOST + 1))
        )

    def _within_limit(self, data: bytes) -> bytes:
        if len(data) > _MOST:
            problem = f"has a line or document of more than {_MOST >> 20} MiB when unpacked: unpack it first"
            raise InputError(Problem(str(self._file), problem))
        return data


class _Frames(io.RawIOBase):
    """The contents of zstd frames, one after the other. The package's own reader accepts a truncated file as
    complete."""

    def __init__(self, raw: IO[bytes], begin: Callable[[], Any], damaged: type[Exception]) -> None:
        self._raw, self._begin, self._damaged = raw, begin, damaged
        self._frame: Any = None
        self._packed = self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        while not self._ready and self._more():
            pass
        view = memoryview(buffer)
        chunk = self._ready[: len(view)]
        self._ready = self._ready[len(chunk) :]
        view[: len(chunk)] = chunk
        return len(chunk)

    def _more(self) -> bool:
        """Whether more will follow. Raises EOFError for an incomplete frame, OSError for a damaged one."""
        packed = self._packed or self._raw.read(_AT_ONCE)
        self._packed = b""
        if not packed:
            if self._frame is not None:
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            return False
        self._frame = self._frame or self._begin()
        try:
            self._ready = self._frame.decompress(packed)
        except self._damaged as error:
            raise OSError(str(error)) from None
        if self._frame.eof:
            self._packed, self._frame = self._frame.unused_data, None
        return True
