"""Problems of arguments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from evalwright.errors import InputError, Problem

__all__ = ["masked_problems", "named_as_arguments", "no_text", "points_of", "refused", "too_small"]


def refused(place: str, message: str) -> Problem:
    """A problem of an argument; `place` is its path, such as `evaluators[1]`."""
    return Problem("", message, key=place)


def too_small(place: str, value: object, least: float, *, whole: bool) -> Iterator[Problem]:
    """The problem of an argument that is neither None nor a number of at least `least`."""
    kind = int if whole else (int, float)
    if value is not None and (isinstance(value, bool) or not isinstance(value, kind) or not value >= least):
        word = "a whole number" if whole else "a number"
        yield refused(place, f"expected {word} of at least {least:g}, found {value!r}")


def no_text(place: str, name: object) -> Iterator[Problem]:
    """The problem of a name that is neither None nor text: results are stored under it."""
    if name is not None and not isinstance(name, str):
        yield refused(place, f"expected text, found {name!r}")


@contextmanager
def masked_problems(variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Problems quote what they found: an error that ends a program shows its text, and so do logs."""
    try:
        yield
    except InputError as error:
        from evalwright.files.masker import Masker, may_be_secret

        own = {name: value for name, value in (variables or {}).items() if may_be_secret(value)}
        mask = Masker.of(own, os.environ).mask_text
        problems = [
            replace(problem, message=mask(problem.message), key=mask(problem.key)) for problem in error.problems
        ]
        raise type(error)(problems, mask(error.headline)) from None


@contextmanager
def named_as_arguments() -> Iterator[None]:
    """Problems name arguments as Python does: `slices` instead of the command line's `--slices`."""
    try:
        yield
    except InputError as error:
        if not any(problem.file.startswith("--") for problem in error.problems):
            raise
        problems = [
            refused(problem.file[2:], problem.message) if problem.file.startswith("--") else problem
            for problem in error.problems
        ]
        raise InputError(problems) from error


def points_of(value: float | str, name: str, metric: str = "pass_rate") -> float:
    """A difference or a margin as a number; strings like `2pp` are read as on the command line. Raises InputError."""
    if isinstance(value, str):
        from evalwright.decisions.terms import margin_of

        return margin_of(value, name, metric)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(refused(name, f"expected a number or a text like '2pp', found {value!r}"))
    return value
