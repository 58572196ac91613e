"""What user code prints: apart from our own output, and safe from user code that closes its standard output."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

__all__ = ["prints_to_stderr"]


class _Unclosable(io.TextIOWrapper):
    """Text that several callers write to: one of them closing it must not take it from the others."""

    def close(self) -> None:
        self.flush()


@contextlib.contextmanager
def prints_to_stderr() -> Iterator[None]:
    """What user code prints must not mix with our own output, which others parse."""
    sys.stderr.flush()
    with io.BufferedWriter(io.FileIO(os.dup(2), "wb")) as raw:
        prints = _Unclosable(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        with contextlib.redirect_stdout(prints):
            yield
        prints.detach()
