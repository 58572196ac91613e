"""Whether the cases of a stored run expect what evaluators look for, told by their bytes, without decoding them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from evalwright.model.protocols import RunReader

__all__ = ["expects"]


def expects(reader: RunReader, keys: Collection[str], total: int) -> bool:
    """Whether a case may have anything but an empty list under one of these keys of `expected`.

    Also if there are not `total` cases: whoever looks for the missing ones reports that.
    """
    blocks: Callable[[], Iterable[bytes]] | None = getattr(reader, "case_blocks", None)
    if blocks is None:
        return True
    names = [b'"%s"' % key.encode() for key in keys]
    count, rest = 0, b""
    for block in blocks():
        lines, end, rest = (rest + block).rpartition(b"\n")  # so that no key is in two parts
        if _says(lines + end, names):
            return True
        count += block.count(b"\n")
    return count != total or bool(rest)


def _says(lines: bytes, names: Iterable[bytes]) -> bool:
    # Quotes in a string are escaped, so no text looks like a key; a key elsewhere in a case is taken for one of these.
    return any(lines.count(name) != lines.count(name + b":[]") for name in names)
