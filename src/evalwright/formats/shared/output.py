"""New files of a conversion, which never replace existing ones and are removed if it fails; and what a writer
reports."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

from evalwright.errors import InputError, Problem
from evalwright.files.drafts import open_draft
from evalwright.files.durable import SHARED, storage_error

__all__ = ["OutputFolder", "Written"]

F = TypeVar("F", bound=IO[Any])


@dataclass(frozen=True, slots=True)
class Written:
    """The file to run, and the options of its format for that."""

    file: Path
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    losses: list[Problem] = field(default_factory=list)
    """What the format cannot express."""


class OutputFolder(AbstractContextManager["OutputFolder"]):
    """Files being written; all of them are removed if the block ends with an exception.

    They have other names until `finish`, so that a process that is killed leaves no half of a file.
    """

    def __init__(self) -> None:
        self.files: list[Path] = []
        self._folders: list[Path] = []
        self._open: list[tuple[IO[Any], Path]] = []
        """Each file, named after its draft, with its final path."""

    def text(self, path: Path) -> IO[str]:
        """A new text file. Raises InputError if a file of that name exists, StorageError if it cannot be made."""
        return self._open_draft(path, lambda draft: TextIOWrapper(draft, encoding="utf-8", newline="\n"))

    def binary(self, path: Path) -> IO[bytes]:
        """The same for bytes."""
        return self._open_draft(path, lambda draft: draft)

    def _open_draft(self, path: Path, in_form: Callable[[BinaryIO], F]) -> F:
        try:
            self._make_folder(path.parent)
            if os.path.lexists(path) or path in self.files:
                raise FileExistsError
            file = in_form(open_draft(path, SHARED))
        except NotADirectoryError:
            raise InputError(Problem(str(path.parent), "is not a folder; name another place with --out")) from None
        except FileExistsError:
            raise InputError(Problem(str(path), "already exists; name another place with --out")) from None
        except OSError as error:
            raise storage_error("write", path, error) from error
        self.files.append(path)
        self._open.append((file, path))
        return file

    def finish(self) -> None:
        """Flush everything to the operating system, and give the files their names. Raises StorageError."""
        for file, path in self._open:
            try:
                file.flush()
            except OSError as error:
                raise storage_error("write", path, error) from error
        while self._open:
            file, path = self._open[-1]
            try:
                Path(file.name).rename(path)
                file.close()
            except OSError as error:
                raise storage_error("write", path, error) from error
            self._open.pop()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        for file, _ in self._open:
            with suppress(OSError):
                Path(file.name).unlink()
            with suppress(OSError):
                file.close()
        if error is None:
            return
        unnamed = [path for _, path in self._open]
        for path in filter(lambda one: one not in unnamed, self.files):
            with suppress(OSError):
                path.unlink()
        for folder in reversed(self._folders):
            with suppress(OSError):
                folder.rmdir()

    def _make_folder(self, folder: Path) -> None:
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir()
            self._folders.append(parent)
