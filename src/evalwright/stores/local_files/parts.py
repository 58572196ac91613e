"""Parts of a file of lines, which several processes read: ranges of bytes that start and end where lines do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from evalwright.model.protocols import Part

__all__ = ["cut_at_lines", "line_number", "lines_within"]

_BUFFER = 1 << 20


def cut_at_lines(file: BinaryIO, count: int) -> list[Part]:
    """About `count` parts of equal size; fewer if lines are longer than that, none for an empty file."""
    size = file.seek(0, os.SEEK_END)
    cuts = [0]
    for number in range(1, count):
        # One byte before the cut: if a line starts exactly there, `readline` reads only the LF before it.
        file.seek(max(size * number // count - 1, 0))
        file.readline()
        cuts.append(file.tell())
    ends = [*cuts[1:], size]
    return [(start, end) for start, end in zip(cuts, ends, strict=True) if start < end]


def lines_within(file: BinaryIO, part: Part) -> Iterator[bytes]:
    """The lines that start in a part of a file."""
    position, end = part
    file.seek(position)
    for line in file:
        if position >= end:
            return
        position += len(line)
        yield line


def line_number(file: BinaryIO, position: int) -> int:
    """The number of the line that starts at a byte position; the file must have just been opened."""
    number = 1
    while position > 0 and (block := file.read(min(_BUFFER, position))):
        number += block.count(b"\n")
        position -= len(block)
    return number
