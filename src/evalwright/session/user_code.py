"""Finds the user's own code on a stack: only they can fix it."""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from pathlib import Path

__all__ = ["others", "user_place"]


def user_place(error: BaseException) -> str:
    """File and line of the innermost frame of user code, as `agent.py:12`; empty where none is on the stack.

    Code of this package, of the standard library and of installed packages is not the user's to fix.
    """
    place, frame = "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith(others()):
            place = f"{os.path.basename(file)}:{frame.tb_lineno}"  # noqa: PTH119
        frame = frame.tb_next
    return place


@cache
def others() -> tuple[str, ...]:
    """Paths of code that is not the user's: its files begin with one of these."""
    paths = sysconfig.get_paths()
    own = str(Path(__file__).parents[1])
    return (own, "<frozen", *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
