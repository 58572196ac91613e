"""Which files are Letta suites."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["detects"]


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    return "dataset" in head and ("graders" in head or "grader" in head)
