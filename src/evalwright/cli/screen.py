"""Writing to the user, with no error if the reader has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from evalwright.errors import Problem
from evalwright.reports.text import harmless

__all__ = ["say", "tell", "warn"]

_MOST_WARNINGS = 50


def warn(problems: Iterable[Problem | str]) -> None:
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
