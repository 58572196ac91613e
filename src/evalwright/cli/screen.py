"""Writing to the user: colours only where they are seen, and no complaint when the reader has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from evalwright.reports.text import Paint

__all__ = ["is_terminal", "paint_for", "say"]


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:
        return False


def paint_for(stream: TextIO) -> Paint:
    """Colours for a terminal, unless NO_COLOR is set (no-color.org)."""
    return Paint(is_terminal(stream) and not os.environ.get("NO_COLOR"))


def say(lines: Iterable[str]) -> None:
    """Lines to stdout. When nobody reads them any more (`| head`), the rest goes nowhere."""
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
