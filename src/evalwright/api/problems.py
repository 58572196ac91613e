"""Problems of arguments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evalwright.errors import InputError, Problem

__all__ = ["named_as_arguments", "refused"]


def refused(place: str, message: str) -> Problem:
    """A problem of an argument; `place` is its path, such as `evaluators[1]`."""
    return Problem("", message, key=place)


@contextmanager
def named_as_arguments() -> Iterator[None]:
    """What the command line calls `--slices` is the argument `slices` here."""
    try:
        yield
    except InputError as error:
        if not any(problem.file.startswith("--") for problem in error.problems):
            raise
        found = [refused(one.file[2:], one.message) if one.file.startswith("--") else one for one in error.problems]
        raise InputError(found) from error
