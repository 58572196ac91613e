"""File errors for programs that were written for an original and catch its exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalwright.errors import InputError

__all__ = ["InvalidFile", "MissingFile", "as_the_original"]


class InvalidFile(InputError, ValueError):
    """A file or a value that cannot be used."""


class MissingFile(InputError, FileNotFoundError, ValueError):
    """A missing file. Some originals raise FileNotFoundError for it, some ValueError."""


@contextmanager
def as_the_original(file: Path | None = None) -> Iterator[None]:
    """Raise an InputError of the block as a ValueError, too, and as a FileNotFoundError if `file` does not exist."""
    try:
        yield
    except (InvalidFile, MissingFile):
        raise
    except InputError as error:
        kind = InvalidFile if file is None or file.exists() else MissingFile
        raise kind(error.problems or error.headline, error.headline) from error
