"""Files that may be packed: gzip by the standard library, zstd by a package; told by their first bytes."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from evalwright.errors import InputError, Problem

__all__ = ["PACKED", "opened", "unpacked_name"]

PACKED = (".gz", ".zst")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def unpacked_name(file: Path) -> Path:
    """The name of a file without the ending of its packing."""
    return file.with_suffix("") if file.suffix.lower() in PACKED else file


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked while they are read. Raises InputError if it cannot be read or is damaged."""
    try:
        with file.open("rb") as raw:
            magic = raw.read(len(_ZSTD))
            raw.seek(0)
            if magic.startswith(_GZIP):
                yield io.BufferedReader(gzip.GzipFile(fileobj=raw))
            elif magic == _ZSTD:
                yield _of_zstd(file, raw)
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(Problem(str(file), f"cannot be read: {reason}")) from None


def _of_zstd(file: Path, raw: IO[bytes]) -> IO[bytes]:
    try:
        import zstandard
    except ImportError:
        install = "is packed with zstd: pip install 'evalwright[zstd]' reads it"
        raise InputError(Problem(str(file), install)) from None
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(raw))
