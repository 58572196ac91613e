"""What a writer of one format says of its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.errors import Problem

__all__ = ["Written"]


@dataclass(frozen=True, slots=True)
class Written:
    """The file to run, and with which options of its format."""

    file: Path
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    losses: list[Problem] = field(default_factory=list)
    """What the format has no words for."""
