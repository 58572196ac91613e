"""JSON Lines, streamed: lines end at LF only, blank ones do not count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalwright.errors import InputError, Problem

__all__ = ["lines_of"]

_BOM = b"\xef\xbb\xbf"


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and content of each line that is not blank. Raises InputError."""
    try:
        with path.open("rb", buffering=1 << 20) as file:
            for number, line in enumerate(file, 1):
                content = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
                if content:
                    yield number, content
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from error
