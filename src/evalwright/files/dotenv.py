"""`.env` files: variables for the environment, which wins over them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["load_dotenv", "nearest_dotenv"]

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*\Z")
_OF_FILES: dict[str, str] = {}
"""What such files have put into the environment: those of other folders may say something else."""


def load_dotenv(folders: Sequence[Path]) -> dict[str, str]:
    """The variables of the `.env` files in folders, the first one wins, beside the environment, which wins over all.

    They are put into the environment, too: commands inherit them, and a resumed run finds its keys.
    """
    found: dict[str, str] = {}
    for folder in reversed(folders):
        path = folder / ".env"
        if path.is_file():
            for line in path.read_text("utf-8", errors="replace").splitlines():
                match = _LINE.match(line)
                if match and not line.lstrip().startswith("#"):
                    found[match[1]] = _unquoted(match[2])
    real = {name: value for name, value in os.environ.items() if _OF_FILES.get(name) != value}
    _OF_FILES.update(found)
    os.environ.update({**found, **real})
    return {**found, **real}


def nearest_dotenv(start: Path) -> list[Path]:
    """The folder of the `.env` that is nearest to a folder, above it or inside; none where there is none."""
    return [folder for folder in (start, *start.parents) if (folder / ".env").is_file()][:1]


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.partition(" #")[0].rstrip()
