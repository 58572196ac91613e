"""A store that another package could have brought: it has no path of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.testing import MemoryStore

SHELVES: dict[str, MemoryStore] = {}
told: list[dict[str, Any]] = []


def shelf(config: dict[str, Any], masker: object, runs: Path) -> MemoryStore:
    """Runs in memory, by the name of a shelf."""
    told.append(config)
    return SHELVES.setdefault(config["name"], MemoryStore())
