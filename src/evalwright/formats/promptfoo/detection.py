"""Which files are promptfoo configurations. Standard library only: called for files of every format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["detects"]

_SYSTEMS = frozenset({"providers", "targets"})
_WORK = frozenset({"prompts", "tests", "scenarios"})


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    """Whether a file is a mapping with systems and what they are asked.

    Lists of tests beside a configuration often contain its name in theirs: a file that is not a mapping is none.
    """
    return not _SYSTEMS.isdisjoint(head) and not _WORK.isdisjoint(head)
