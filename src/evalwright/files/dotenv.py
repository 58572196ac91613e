"""`.env` files: variables of a suite, which those of the process win over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from evalwright.errors import InputError, Problem

__all__ = ["nearest_dotenv", "read_dotenv"]

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*\Z")


def read_dotenv(folders: Sequence[Path]) -> dict[str, str]:
    """The variables of the `.env` files in folders, the first of which wins. Raises InputError if one is unreadable."""
    found: dict[str, str] = {}
    for folder in reversed(folders):
        path = folder / ".env"
        if path.is_file():
            for line in _lines(path):
                match = _LINE.match(line)
                if match and not line.lstrip().startswith("#"):
                    found[match[1]] = _unquoted(match[2])
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from error
    return text.replace("\0", "").splitlines()  # an environment cannot hold NUL


def nearest_dotenv(start: Path) -> list[Path]:
    """The folder of the `.env` that is nearest to a folder, above it or inside; none where there is none."""
    return [folder for folder in (start, *start.parents) if (folder / ".env").is_file()][:1]


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.partition(" #")[0].rstrip()
