"""What user code prints: apart from our own output, and safe from user code that closes its standard output."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["Router"]


class _Unclosable(io.BufferedWriter):
    """Bytes that several callers write: one of them closing it must not take it from the others."""

    ended = False

    def close(self) -> None:
        super().close() if self.ended else self.flush()


class Router(io.TextIOBase):
    """A `sys.stdout` that decides at each write where the text goes: to stderr, or to the stream that was there.

    It may be kept beyond its end, as by a logging handler or `redirect_stdout`; all goes where it went `before` then.
    """

    def __init__(self, before: TextIO, goes_to_stderr: Callable[[], bool]) -> None:
        self.before = before
        self._goes_to_stderr = goes_to_stderr
        sys.stderr.flush()
        # a descriptor of its own, as user code may close sys.stderr
        self._bytes = _Unclosable(io.FileIO(os.dup(2), "wb"))
        self._prints = io.TextIOWrapper(self._bytes, encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def end(self) -> None:
        """Give the descriptor back."""
        self._goes_to_stderr = _never
        self._prints.flush()
        self._bytes.ended = True
        self._prints.close()

    @property
    def _stream(self) -> TextIO:
        return self._prints if self._goes_to_stderr() else self.before

    def write(self, text: str) -> int:
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    @property
    def buffer(self) -> Any:
        """The bytes beneath."""
        return self._stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _never() -> bool:
    return False
