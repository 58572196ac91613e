"""Ids of runs: safe as the name of a folder, and one of a kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["numbered", "safe_id"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120


def safe_id(run_id: str) -> str:
    """The id as a name for a folder: letters, digits, `.`, `_` and `-`, no `.` or `-` in front, not too long."""
    return _UNSAFE.sub("-", run_id).lstrip(".-")[:_LONGEST].rstrip("-") or "run"


def numbered(run_id: str) -> Iterator[str]:
    """The id, then `-2`, `-3` and so on behind it."""
    yield run_id
    number = 2
    while True:
        yield f"{run_id}-{number}"
        number += 1
