"""Problems of arguments."""

from __future__ import annotations

from evalwright.errors import Problem

__all__ = ["refused"]


def refused(place: str, message: str) -> Problem:
    """A problem of an argument; `place` is its path, such as `evaluators[1]`."""
    return Problem("", message, key=place)
