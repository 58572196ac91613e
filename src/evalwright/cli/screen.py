"""Writing to the user: colours only on terminals, and no error if the reader has gone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from evalwright.errors import Problem
from evalwright.reports.text import Paint, harmless

__all__ = ["is_terminal", "paint_for", "say", "tell", "warn"]

_MOST_WARNINGS = 50


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:
        return False


def paint_for(stream: TextIO) -> Paint:
    """What a stream can show: colours on a terminal unless NO_COLOR is set (no-color.org), and its width.

    The variable COLUMNS overrides the width. Files and pipes get 120 columns: they are mostly read on wide screens.
    """
    terminal = is_terminal(stream)
    columns = shutil.get_terminal_size((80 if terminal else 120, 0)).columns
    return Paint(terminal and not os.environ.get("NO_COLOR"), columns)


def warn(problems: Iterable[Problem]) -> None:
    """One line on stderr for each of the first fifty."""
    shown = list(problems)
    tell(f"warning: {problem}" for problem in shown[:_MOST_WARNINGS])
    if len(shown) > _MOST_WARNINGS:
        print(f"... and {len(shown) - _MOST_WARNINGS:,} more warnings", file=sys.stderr)


def tell(lines: Iterable[str]) -> None:
    """Lines to stderr, without characters that act on a terminal."""
    for line in lines:
        print(harmless(line), file=sys.stderr)


def say(lines: Iterable[str]) -> None:
    """Lines to stdout. If the reader has gone (`| head`), the rest is dropped."""
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
