"""Which code is the user's: not this package's, nor the standard library's, nor that of installed packages."""

from __future__ import annotations

import os
from functools import cache

__all__ = ["code_of_others", "user_place"]


def user_place(error: BaseException) -> str:
    """File and line of the innermost frame of user code, as `agent.py:12`; empty where none is on the stack.

    Code of this package, of the standard library and of installed packages is not the user's to fix. If there is no
    other on the stack, that of the cause counts: a StopIteration leaves a coroutine as a RuntimeError without it.
    """
    place, frame = "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith(code_of_others()):
            place = f"{os.path.basename(file)}:{frame.tb_lineno}"  # noqa: PTH119
        frame = frame.tb_next
    if not place and error.__cause__ is not None and error.__cause__ is not error:
        return user_place(error.__cause__)
    return place


@cache
def code_of_others() -> tuple[str, ...]:
    """Paths of code that is not the user's: its files begin with one of these."""
    import sysconfig  # only for code that has run

    paths = sysconfig.get_paths()
    own = os.path.dirname(__file__)  # noqa: PTH120
    return (own, "<frozen", *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
