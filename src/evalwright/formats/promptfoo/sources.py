"""The files that a configuration names: found from its folder, and read within its boundary."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from pathlib import Path

from evalwright.errors import InputError
from evalwright.files import yaml
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.paths import near_file
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.templates import holds_template

__all__ = ["SCRIPTS", "Sources", "in_file", "split_function"]

SCRIPTS = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py")
_FILE = "file://"
_MAGIC = frozenset("*?[{")
_ALTERNATIVES = re.compile(r"\{([^}]*)\}")
_MOST_PATTERNS = 1000
"""A pattern with more alternatives is a mistake, such as a text with lists in it: each is looked for by itself."""


class Sources:
    """The files below one folder, which messages call `named`, and all files that were read."""

    def __init__(self, folder: Path, allowed: Iterable[Path] = (), named: Path | None = None) -> None:
        self.folder = folder
        self._named = named or folder
        self.allowed: list[str] = [str(Path(folder).absolute()) for folder in allowed]
        self.boundary: Boundary = Boundary(folder, self.allowed)
        self.used: list[Path] = []

    def path(self, named: str, origin: Origin) -> Path | None:
        """The file of that name; None, after a report, if it does not exist or lies outside."""
        path = self.folder / named.removeprefix(_FILE)
        try:
            self.boundary.check(path)
        except OutsideError as error:
            origin.report(str(error))
            return None
        if not os.path.isfile(path):
            origin.report(f"there is no file {named!r}{near_file(path)}", absent=True)
            return None
        if path not in self.used:
            self.used.append(path)
        return path

    def paths(self, named: str, origin: Origin) -> Iterator[Path]:
        """The files that a name or a pattern means, in the order of their names; reported if there are none."""
        pattern = named.removeprefix(_FILE)
        if _MAGIC.isdisjoint(pattern) or os.path.isfile(self.folder / pattern):
            path = self.path(named, origin)
            yield from () if path is None else (path,)
            return
        choices = _choices(pattern)
        if (number := prod(map(len, choices))) > _MOST_PATTERNS:
            origin.report(f"{named!r} stands for {number:,} patterns, expected at most {_MOST_PATTERNS:,}")
            return
        patterns = map("".join, product(*choices))
        matches = [match for pattern in patterns for match in self.folder.glob(pattern) if match.is_file()]
        if not matches:
            origin.report(f"no file matches {named!r}", absent=True)
        for match in sorted(dict.fromkeys(matches)):
            if (path := self.path(os.path.relpath(match, self.folder), origin)) is not None:
                yield path

    def shown(self, path: Path) -> Path:
        """A file as messages name it: as the configuration itself was named."""
        return self._named / os.path.relpath(path, self.folder)

    def code(self, value: object, origin: Origin) -> None:
        """Check the file that contains a piece of code, if it is in one; reported if it does not exist."""
        if in_file(value) and not holds_template(str(value)):
            self.path(split_function(str(value))[0], origin)

    def has_package(self, name: str) -> bool:
        """Whether a package of Node is installed for scripts in the folder."""
        folders = (folder for folder in (self.folder.resolve(), *self.folder.resolve().parents))
        return any(
            os.path.isfile(folder / "node_modules" / name / "package.json")
            for folder in folders
            if folder.is_relative_to(self.boundary.root)
        )

    def matches(self, named: str) -> bool:
        """Whether a file has that name or matches the pattern."""
        try:
            return os.path.isfile(self.folder / named) or any(self.folder.glob(named))
        except (OSError, ValueError, NotImplementedError):  # not a possible file name
            return False

    def content(self, path: Path, origin: Origin) -> bytes | None:
        """The bytes of a file; None, after a report, if it cannot be read."""
        try:
            return self.boundary.read(path)
        except (OSError, OutsideError) as error:
            origin.report(f"{path.name!r} cannot be read: {error}")
            return None

    def text(self, path: Path, origin: Origin) -> str:
        """The text of a file; empty, after a report, if it cannot be read."""
        try:
            return self.boundary.read(path).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError, OutsideError) as error:
            origin.report(f"{path.name!r} cannot be read: {error}")
            return ""

    def lines(self, path: Path, origin: Origin) -> list[str]:
        """The lines of such a file. Only a line feed ends one: JSON may contain the other separators of Unicode."""
        return [line.removesuffix("\r") for line in self.text(path, origin).split("\n")]

    def document(self, path: Path, origin: Origin) -> yaml.Document | None:
        """A YAML or JSON file; None, after a report, if it cannot be parsed."""
        try:
            return yaml.parse(self.boundary.read(path), str(self.shown(path)), "yaml12")
        except (OSError, OutsideError) as error:
            origin.report(f"{path.name!r} cannot be read: {error}")
            return None
        except InputError as error:
            origin.findings.add(error)
            return None


def _choices(pattern: str) -> list[list[str]]:
    """`a.{x,y}` as `a.` and a choice of `x` and `y`, because Python's patterns have no alternatives."""
    return [part.split(",") if place % 2 else [part] for place, part in enumerate(_ALTERNATIVES.split(pattern))]


def in_file(value: object) -> bool:
    """Whether a value names a file."""
    return isinstance(value, str) and value.startswith(_FILE)


def split_function(named: str) -> tuple[str, str]:
    """`file.py:name` as file and name; the name is empty if there is none."""
    path, colon, name = named.removeprefix(_FILE).rpartition(":")
    return (path, name) if colon and path.endswith(SCRIPTS) else (named.removeprefix(_FILE), "")
