"""The outcome of `evalwright import`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ImportResult"]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import has read and written."""

    cases: int
    trials: int
    """The largest number of recordings of one case."""
    traces: int
    files: Sequence[Path]
    """The files written; the first one with the suffix `.yaml` or `.yml`, if any, is the suite."""
    notes: Sequence[str] = ()
    """Notes for the user besides the numbers."""
