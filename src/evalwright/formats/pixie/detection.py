"""Which files are pixie datasets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["detects"]


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    return path.suffix == ".json" and "runnable" in head and ("entries" in head or "items" in head)
