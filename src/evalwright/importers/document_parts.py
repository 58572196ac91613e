"""A large JSON document in parts, each of which is decoded on its own: only what is decoded takes memory."""

from __future__ import annotations

import io
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from evalwright.files.packed import is_packed, opened
from evalwright.importers.sources import BOM

__all__ = ["document_beginning", "document_bytes", "items_of", "object_parts"]

_SMALL = 64 * 1024
"""Bytes of a part that is decoded whole to look at it."""
_PARTS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw] | None).decode


@contextmanager
def document_bytes(file: Path) -> Iterator[memoryview]:
    """The bytes of a file, which are read when they are used; a packed one is read at once. Raises InputError if the
    file cannot be read."""
    packed = is_packed(file)
    with opened(file) as source:
        if packed or not source.seek(0, io.SEEK_END):
            data = memoryview(source.read())
        else:  # not closed here: parts of it may still be in use, and the last one closes it
            data = memoryview(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ))
        yield data[len(BOM) :] if data[: len(BOM)] == BOM else data


def object_parts(data: memoryview | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The values of an object by key, not decoded. Raises msgspec.DecodeError and RecursionError."""
    return _PARTS(data)


def items_of(part: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The items of a list, not decoded; none if it is absent or null. Raises msgspec.DecodeError and RecursionError."""
    return [] if part is None else _ITEMS(part) or []


def document_beginning(part: memoryview | msgspec.Raw, most: int) -> Any:
    """A value with the first `most` items of its large lists. Raises msgspec.DecodeError and RecursionError."""
    first = bytes(memoryview(part)[:1])
    if first == b"{" and len(part) > _SMALL:
        return {key: document_beginning(value, most) for key, value in _PARTS(part).items()}
    if first == b"[" and len(part) > _SMALL:
        return [document_beginning(item, most) for item in items_of(msgspec.Raw(part))[:most]]
    return msgspec.json.decode(part)
