"""For the tests of your own targets, evaluators and stores."""

from __future__ import annotations

from evalwright.stores.memory import MemoryRun, MemoryStore

__all__ = ["MemoryRun", "MemoryStore"]
