"""Which files are of the native format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["detects"]


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    return "eval" in head or {"dataset", "systems"} <= head.keys()
