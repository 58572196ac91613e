"""What a stream can show."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

from evalwright.reports.text import Paint

__all__ = ["is_terminal", "paint_for"]


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
