"""When a process of ours searches for garbage: hardly ever before the first user code, and as usual from then on."""

from __future__ import annotations

import gc
import sys
from itertools import takewhile

__all__ = ["end_without_search", "only_ours", "users_begin"]

_WHILE_OURS = 50_000
"""Objects made before the next garbage collection, as long as no user code has been imported."""
_usual: tuple[int, int, int] | None = None
"""The usual collection thresholds, kept until user code is imported; None afterwards."""
_newest = ""
"""The module that had been imported last when this process was declared ours."""


def only_ours() -> None:
    """Spare this process, which is ours and has imported no user code yet, most garbage collections.

    The objects made at first are modules and a suite, which stay: searching them takes a tenth of a small run.
    """
    global _newest, _usual
    _newest = next(reversed(sys.modules))
    _usual = gc.get_threshold()
    gc.set_threshold(_WHILE_OURS)


def users_begin() -> None:
    """From now on collect garbage as users' code expects, but never search the objects that exist already."""
    global _usual
    if _usual is not None:
        gc.freeze()
        gc.set_threshold(*_usual)
        _usual = None


def end_without_search() -> None:
    """Spare the interpreter the final garbage collection of this process, which is ours: a fifth of a small run.

    If users' code was imported since it became ours, the objects it left are still searched: their finalisers may have
    something to do.
    """
    from evalwright.errors import code_of_others

    since = [*takewhile(lambda name: name != _newest, reversed(sys.modules))]
    files = [getattr(sys.modules[name], "__file__", None) for name in since]
    if all(file is None or file.startswith(code_of_others()) for file in files):
        gc.freeze()
