"""Which files are promptfoo configurations. Standard library only: called for files of every format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["NAMES", "detects"]

_STEM = "promptfooconfig"
_CODE = (".cjs", ".cts", ".js", ".mjs", ".mts", ".ts")
NAMES = tuple(f"{_STEM}{suffix}" for suffix in (".yaml", ".yml", ".json", *_CODE))
_SYSTEMS = frozenset({"providers", "targets"})
_WORK = frozenset({"prompts", "tests", "scenarios"})


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    """Whether a file has promptfoo's name, or a mapping with systems and what they are asked.

    Lists of tests beside a configuration often contain that name in theirs: a file that is not a mapping is none.
    """
    if path.name in NAMES:
        return True
    return not _SYSTEMS.isdisjoint(head) and not _WORK.isdisjoint(head)
