"""Where the files named by a suite and its cases must lie: data must not be able to read the user's other files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["ALLOWED", "Boundary", "OutsideError"]

ALLOWED = "--allow-outside"
"""The option that allows further folders."""
_LONGEST = 300
"""Characters of a path in a message."""


class OutsideError(ValueError):
    """A path that leads out of the boundary, or to something that is neither a file nor a folder."""


class Boundary:
    """The repository that contains a folder (the nearest `.git` at or above it), else the folder; and the allowed
    ones."""

    def __init__(self, folder: Path, allowed: Iterable[Path | str] = ()) -> None:
        here = folder.resolve()
        repository = (parent for parent in (here, *here.parents) if os.path.lexists(parent / ".git"))
        root = next(repository, None)
        self._what = "folder" if root is None else "repository"
        self.root: Path = root or here
        self._folders = [self.root, *(Path(folder).expanduser().resolve() for folder in allowed)]

    def check(self, path: Path) -> Path:
        """The path itself. Raises OutsideError if it leads outside, all links followed, or to a pipe or device."""
        try:
            self._check(path, _resolved_path(path))
        except OutsideError:
            raise
        except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, a NUL in it, links in a circle
            raise OutsideError(f"{str(path)[:_LONGEST]!r} cannot be resolved: {error}") from None
        return path

    def read(self, path: Path, most: int = -1) -> bytes:
        """The content of a file, at most this many bytes of it. Raises OutsideError, OSError.

        The opened file is what is checked: a link may be redirected between a check and the opening.
        """
        with self.check(path).open("rb") as file:
            self._check(path, _path_of_descriptor(file.fileno(), path))
            return file.read(most)

    def _check(self, path: Path, real: Path) -> None:
        if any(real.is_relative_to(folder) for folder in self._folders):
            if real.exists() and not (real.is_file() or real.is_dir()):  # a pipe keeps its reader waiting for ever
                raise OutsideError(f"{str(path)[:_LONGEST]!r} is not a regular file")
            return
        leads = "lies" if os.path.abspath(path) == str(real) else f"leads to {str(real)[:_LONGEST]!r},"  # noqa: PTH100
        message = f"{str(path)[:_LONGEST]!r} {leads} outside of the suite's {self._what} {str(self.root)!r}"
        folder = real if real.is_dir() else real.parent
        raise OutsideError(f"{message} ({ALLOWED} {str(folder)[:_LONGEST]} allows it)")


def _resolved_path(path: Path) -> Path:
    """The path without links. Raises OSError or RuntimeError for circular links."""
    real = path.resolve()
    try:
        circle = stat.S_ISLNK(real.lstat().st_mode)  # Python 3.13 leaves such a link unchanged, without an error
    except OSError as error:
        circle = error.errno == errno.ELOOP
    if circle:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return real


def _path_of_descriptor(descriptor: int, path: Path) -> Path:
    """Where the file behind a descriptor lies."""
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink()
    except OSError:  # not on Linux
        real = path.resolve()
        if os.path.samestat(os.fstat(descriptor), os.lstat(real)):
            return real
        raise OutsideError(f"{str(path)[:_LONGEST]!r} changed while it was opened") from None
