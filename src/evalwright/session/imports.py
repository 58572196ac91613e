"""The import path of the process, which user code is found on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence

__all__ = ["make_importable"]

_lock = threading.Lock()


def make_importable(folders: Sequence[str]) -> None:
    """Put folders at the front of the import path, the first one first, without repeating any."""
    with _lock:
        for folder in reversed(folders):
            if folder in sys.path:
                sys.path.remove(folder)
            sys.path.insert(0, folder)
