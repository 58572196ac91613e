"""The `evalwright` command.

Hardly anything is imported here: Ctrl-C prints a traceback until it is handled, and importing the commands takes longer
than starting Python.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # importing `typing` would take longer than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

__all__ = ["main"]

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code.

    Where it is that of the process, Ctrl-C ends the process at once until the commands handle it themselves.
    """
    if arguments is None:
        try:  # noqa: SIM105 - contextlib would have to be imported
            signal.signal(signal.SIGINT, _end)
        except ValueError:  # in a thread: Ctrl-C goes to the main one
            pass
    from evalwright.cli.commands import end_with_command

    end_with_command(arguments)


def _end(_number: int, _frame: object) -> NoReturn:
    try:
        os.write(2, b"interrupted\n")
    finally:  # also where standard error is closed
        os._exit(_INTERRUPTED)
