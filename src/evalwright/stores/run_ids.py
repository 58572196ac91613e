"""Ids of runs: safe as folder names, and unique."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["numbered", "safe_id"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
"""Characters of an id: file systems allow 255 bytes in a name, and `-2` or a suffix may follow."""


def safe_id(run_id: str) -> str:
    """The id as a folder name: at most 120 letters, digits, `.`, `_` and `-`, without `.` or `-` at the start."""
    return _UNSAFE.sub("-", run_id).lstrip(".-")[:_LONGEST].rstrip("-") or "run"


def numbered(run_id: str) -> Iterator[str]:
    """The id itself, then the id with `-2`, `-3` and so on."""
    yield run_id
    number = 2
    while True:
        yield f"{run_id}-{number}"
        number += 1
