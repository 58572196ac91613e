"""Files that are named by messages and prompts in AgentEvals files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.files.boundary import Boundary
from evalwright.files.images import check_image, inline_image, is_image
from evalwright.formats.agentv.config import Config, config_file, read_project_config

__all__ = ["Files", "image_address", "value_of"]

_SHOWN = 200
"""Characters of a path that are quoted if it does not exist."""


class Files:
    """Finds files that messages and prompts name: beside the eval file, or in its parents up to the repository's root.

    All of them must lie within the boundary of the eval file's folder.
    """

    def __init__(self, folder: Path, allowed: Sequence[Path] = ()) -> None:
        parents, here = [folder, *folder.parents], Path.cwd()
        outermost = here if here in parents else folder
        root = next((parent for parent in parents if (parent / ".git").exists()), outermost)
        self.roots: list[Path] = list(dict.fromkeys([*parents[: parents.index(root) + 1], here]))
        path = config_file(self.roots)
        self.config: Config = Config() if path is None else read_project_config(path)
        self.root = root
        """The root of the repository."""
        self.boundary: Boundary = Boundary(folder, allowed)

    def is_guideline(self, path: Path) -> bool:
        """Whether the repository's configuration declares it a guideline."""
        return self._fits(path, self.config.guidelines) and not is_image(path)

    def is_eval(self, path: Path) -> bool:
        """Whether the repository's configuration declares it an eval."""
        return self._fits(path, self.config.evals)

    def _fits(self, path: Path, patterns: re.Pattern[str] | None) -> bool:
        if patterns is None or not path.is_relative_to(self.root):
            return False
        return patterns.fullmatch(path.relative_to(self.root).as_posix()) is not None

    def find(self, name: str) -> Path | None:
        """The first file of that name; leading slashes are dropped when search roots are tried.

        Raises OutsideError for a file outside the boundary.
        """
        absolute = [Path(name)] if Path(name).is_absolute() else []
        existing = next((path for path in [*absolute, *self.tried(name)] if os.path.isfile(path)), None)
        return None if existing is None else self.boundary.check(existing)

    def text(self, path: Path) -> str:
        """The text of a file that was found, with `\n` for line ends. Raises OutsideError, OSError."""
        return self.boundary.read(path).decode("utf-8", "replace").replace("\r\n", "\n")

    def image(self, block: Mapping[str, Any]) -> Path | str | None:
        """The image that a content block shows: a file, or an address; None if it shows none.

        Raises ValueError for a file that does not exist or lies outside the boundary, and for an image that models
        cannot see.
        """
        kind, value = block.get("type"), value_of(block)
        if kind not in ("file", "image"):
            return None
        if kind == "image" and (address := image_address(value)) is not None:
            return address
        path = self.find(value)
        if path is None:
            raise ValueError(f"there is no file {value[:_SHOWN]!r} (tried: {', '.join(map(str, self.tried(value)))})")
        if kind == "file" and not is_image(path):
            return None
        check_image(path)
        return path

    def named(self, block: Mapping[str, Any]) -> Path | None:
        """The file that a valid content block names."""
        image = self.image(block)
        if isinstance(image, Path):
            return image
        return self.find(value_of(block)) if block.get("type") == "file" else None

    def folder(self, name: str) -> Path | None:
        """The first folder of that name. Raises OutsideError for a folder outside the boundary."""
        tried = [Path(name), *self.tried(name)]
        folder = next((path for path in tried if path.is_absolute() and os.path.isdir(path)), None)
        return None if folder is None else self.boundary.check(folder)

    def tried(self, name: str) -> list[Path]:
        return [root / name.lstrip("/") for root in self.roots]


def value_of(block: Mapping[str, Any]) -> str:
    """The content of a block, as text."""
    return str(block.get("value", block.get("text")))


def image_address(value: str) -> str | None:
    """The address of an image on the web or within the text itself; None for a file name."""
    return value if value.startswith("https://") else inline_image(value)
