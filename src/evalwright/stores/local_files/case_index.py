"""The cases of a run folder by position, without reading those before."""

from __future__ import annotations

import os
import weakref
from array import array
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from evalwright.stores.local_files.opened import read_errors

__all__ = ["CaseIndex"]

_AHEAD = 1 << 13
"""Bytes that are read with a case: usually the next cases are wanted next, and reading them for nothing costs
little."""


class CaseIndex:
    """The start of each line of the cases, at 8 bytes per case, and the open file.

    It is read by `pread`, so that threads share no file position, and closed when the last user drops the index.
    """

    def __init__(self, file: BinaryIO | None) -> None:
        """Read `file` to its end and close it; without one there are no cases."""
        self._starts = array("Q", [0])
        self._block = (0, b"")
        """What was read last, and where it starts: usually a case is asked for after the one before it."""
        self._closing: weakref.finalize[..., CaseIndex] | None = None
        if file is not None:
            self._path = Path(file.name)
            with file:
                self._starts = array("Q", accumulate(map(len, file), initial=0))
                self._descriptor = os.dup(file.fileno())
                self._closing = weakref.finalize(self, os.close, self._descriptor)

    def start_of(self, index: int) -> int:
        return self._starts[min(index, len(self._starts) - 1)]

    def line(self, index: int) -> bytes | None:
        if not 0 <= index < len(self._starts) - 1:
            return None
        start, end = self._starts[index], self._starts[index + 1]
        at, block = self._block  # in one assignment: other threads replace it
        if not at <= start <= end <= at + len(block):
            with read_errors(self._path):
                at, block = self._block = start, os.pread(self._descriptor, max(end - start, _AHEAD), start)
        return block[start - at : end - at]

    def close(self) -> None:
        if self._closing is not None:
            self._closing()
