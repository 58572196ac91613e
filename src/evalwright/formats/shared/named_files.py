"""The files that a suite names: found from its folder, and rejected outside its boundary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.key_paths import Place

__all__ = ["NamedFiles"]


class NamedFiles:
    """Files by the names at places of a suite; `report` reports mistakes."""

    def __init__(self, folder: Path, allowed: Iterable[Path], report: Callable[[Place, str], None]) -> None:
        self.folder: Path = folder
        self.boundary: Boundary = Boundary(folder, allowed)
        self.refused: bool = False
        """Whether a file lies outside: then no code that the suite names may be imported."""
        self._report = report

    def path(self, named: str, place: Place) -> Path:
        """The path of a file, whether it exists or not; reported if it lies outside."""
        path = self.folder / named
        try:
            return self.boundary.check(path)
        except OutsideError as error:
            self.refused = True
            self._report(place, f"{place[-1]}: {error}")
            return path

    def text(self, named: str, place: Place) -> str | None:
        """The text of a file; None, after a report, if it lies outside or cannot be read."""
        try:
            return self.boundary.read(self.folder / named).decode()
        except OutsideError as error:
            self._report(place, f"{place[-1]}: {error}")
        except (OSError, UnicodeDecodeError) as error:
            self._report(place, f"{named!r} cannot be read: {error}")
        return None

    def function(self, named: str, place: Place) -> str:
        """`file.py:name` with the file's path relative to the working directory; without a name if there is none."""
        path, _, name = named.rpartition(":") if ":" in named else (named, "", "")
        return f"{self.path(path, place)}:{name}"
