"""What user code prints on both streams, without the secrets that suites took from variables."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from evalwright.files.masker import Masker

__all__ = ["Hiding", "MaskedStream"]


class Hiding:
    """Masks a text by the secrets that are known when it is written; they are few, and are learned one by one."""

    def __init__(self, secrets: Callable[[], Mapping[str, str]]) -> None:
        self._secrets = secrets
        self._known: Mapping[str, str] = {}
        self._masker: Masker | None = None

    def __call__(self, text: str) -> str:
        secrets = self._secrets()
        if not secrets:
            return text
        if self._masker is None or secrets != self._known:
            from evalwright.files.masker import Masker

            self._known, self._masker = dict(secrets), Masker.of(secrets, os.environ)
        return self._masker.mask_text(text)


class MaskedStream(io.TextIOBase):
    """A `sys.stderr` that masks what is written; it may be kept beyond its session, as by a logging handler."""

    def __init__(self, before: TextIO, mask: Callable[[str], str]) -> None:
        self.before: TextIO = before
        self._mask = mask

    def write(self, text: str) -> int:
        self.before.write(self._mask(text))
        return len(text)

    def flush(self) -> None:
        self.before.flush()

    def close(self) -> None:
        self.flush()

    def fileno(self) -> int:
        return self.before.fileno()

    def isatty(self) -> bool:
        return self.before.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.before.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.before.errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self.before, name)
