"""The standard streams while sessions are open: printed text is masked and, where asked, leads to stderr."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from evalwright.files.masker import Masker

__all__ = ["DivertedOutput", "MaskedStream", "Router", "SecretMask", "open_closed_streams"]


class MaskedStream(io.TextIOBase):
    """A standard stream that masks its text; it may be kept beyond its session, as by a logging handler.

    User code that closes it closes nothing of ours.
    """

    def __init__(self, before: TextIO, hiding: SecretMask | None) -> None:
        self.before: TextIO = before
        self._hiding = hiding
        self._pieces: dict[TextIO, _Pieces] = {}
        """What is held back of the text for each stream underneath."""
        self._in_bytes = _Pieces(hiding)

    def end(self) -> None:
        """Write what is still held back."""
        held = [(stream, pieces.rest()) for stream, pieces in self._pieces.items()]
        for stream, text in (*held, (self._stream, self._in_bytes.rest())):
            with suppress(OSError, ValueError):  # it may be closed by then
                stream.write(text)

    @property
    def _stream(self) -> TextIO:
        return self.before

    def write(self, text: str) -> int:
        stream = self._stream
        pieces = self._pieces.get(stream) or self._pieces.setdefault(stream, _Pieces(self._hiding))
        stream.write(pieces.masked(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        with suppress(ValueError):  # the underlying stream may be closed by then
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
        """The bytes underneath."""
        return _MaskedBytes(self._stream.buffer, self._in_bytes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Router(MaskedStream):
    """A `sys.stdout` that decides at each write where the text goes: to stderr, or to the original stream.

    A router that is kept beyond its end writes where output went `before`.
    """

    def __init__(self, before: TextIO, goes_to_stderr: Callable[[], bool], hiding: SecretMask | None = None) -> None:
        super().__init__(before, hiding)
        self._goes_to_stderr = goes_to_stderr
        sys.stderr.flush()
        # a descriptor of its own, as user code may close sys.stderr
        self._bytes = _Unclosable(io.FileIO(os.dup(2), "wb"))
        self._prints = io.TextIOWrapper(self._bytes, encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def end(self) -> None:
        """Give the descriptor back."""
        super().end()
        self._goes_to_stderr = _never
        self._bytes.ended = True
        with suppress(OSError, ValueError):  # user code may have closed the descriptor all the same
            self._prints.close()

    @property
    def _stream(self) -> TextIO:
        return self._prints if self._goes_to_stderr() else self.before


def _never() -> bool:
    return False


class _Unclosable(io.BufferedWriter):
    """Bytes with several writers: when one of them closes it, the others can still write."""

    ended = False

    def close(self) -> None:
        super().close() if self.ended else self.flush()


class _MaskedBytes(io.BufferedIOBase):
    """The bytes underneath a masked stream, masked as text in UTF-8; closing them closes nothing of ours."""

    def __init__(self, before: Any, pieces: _Pieces) -> None:
        self._before, self._pieces = before, pieces

    def write(self, data: Any) -> int:
        written = bytes(data)
        text = written.decode("utf-8", "surrogateescape")
        self._before.write(self._pieces.masked(text).encode("utf-8", "surrogateescape"))
        return len(written)

    def flush(self) -> None:
        self._before.flush()

    def close(self) -> None:
        with suppress(ValueError):  # the underlying bytes may be closed by then
            self.flush()

    def fileno(self) -> int:
        return int(self._before.fileno())

    def isatty(self) -> bool:
        return bool(self._before.isatty())

    def writable(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._before, name)


_lock = threading.RLock()
"""For the ends of all streams. A thread may have it twice: signal handlers print, too."""
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class _Pieces:
    """Masks text that is written piece by piece: its end is held back while it may be the beginning of a secret."""

    def __init__(self, hiding: SecretMask | None) -> None:
        self._hiding, self._held = hiding, ""

    def masked(self, text: str) -> str:
        """What can be written once this piece has come."""
        with _lock:
            if self._hiding is None or (text.isspace() and not self._held):  # each print writes its end by itself
                return text
            text, self._held = self._hiding.masker().mask_begun(self._held + text)
            return text

    def rest(self) -> str:
        """What is held back, after the last piece."""
        with _lock:
            held, self._held = self._held, ""
            return self._hiding(held) if self._hiding is not None and held else held


class SecretMask:
    """Masks a text with the secrets known when it is written: those of suites, and of the environment, to which user
    code may add."""

    def __init__(self, secrets: Callable[[], Mapping[str, str]]) -> None:
        self._secrets = secrets
        self._known: tuple[Mapping[str, str], Mapping[Any, Any]] | None = None
        self._masker: Masker | None = None

    def __call__(self, text: str) -> str:
        return self.masker().mask_text(text)

    def masker(self) -> Masker:
        """The one that knows all secrets of this moment."""
        known = dict(self._secrets()), _variables()
        if self._masker is None or known != self._known:
            from evalwright.files.masker import Masker

            self._known, self._masker = known, Masker.of(known[0], dict(os.environ))
        return self._masker


def _variables() -> Mapping[Any, Any]:
    """The environment as `os.environ` holds it: decoding all of it at each print costs far more than masking a line."""
    return dict(getattr(os.environ, "_data", os.environ))


class DivertedOutput:
    """Standard output itself leads to stderr: writes that bypass Python would corrupt a document printed later."""

    def __init__(self) -> None:
        self._kept: int | None = None
        with suppress(OSError):  # there may be no standard output
            self._kept = os.dup(1)
            os.dup2(2, 1)

    def end(self) -> None:
        if self._kept is not None:
            os.dup2(self._kept, 1)
            os.close(self._kept)


def open_closed_streams() -> None:
    """Connect standard streams that the caller closed (`2>&-`) to nowhere, for the whole life of a process of ours.

    Python has no objects for them then, and the next files opened get their numbers: output of a child of ours would
    end up in a file of the run.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
