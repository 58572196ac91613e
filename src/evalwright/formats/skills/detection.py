"""Which files are evals of skills. Imports little: it is run on files of every format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.formats.shared.foreign import has_queries

__all__ = ["NAME", "detects", "names_in", "suite_in"]

NAME = "evals.json"
_LISTS = ("evals", "evaluations", "cases", "test_cases")
_OTHERS = frozenset({"eval", "dataset", "systems", "providers", "targets", "prompts", "graders", "evalcases", "status"})
"""Keys of suites and of results of other programs."""


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    """Whether a file has a list of prompts, or the name of one and nothing of another format."""
    if not head and path.suffix == ".json":
        head = _unread(path)
    listed = head.get("evals")
    if isinstance(listed, list) and listed and _is_prompt(listed[0]):
        return True
    if path.name != NAME or not _OTHERS.isdisjoint(head):
        return False
    if head:
        return any(key in head for key in (*_LISTS, "skill_name", "skill")) or has_queries(head)
    return _is_list_of_prompts(path)


def suite_in(folder: Path) -> Path | None:
    """The evals in the folder of a skill, or in its folder `evals`."""
    beside = folder / "evals" / NAME if (folder / "SKILL.md").is_file() else folder / NAME
    return beside if beside.is_file() and (beside.parent != folder or _fits(beside)) else None


def names_in(path: Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    """None: these files contain no references to variables."""
    return ()


def _is_prompt(value: Any) -> bool:
    return isinstance(value, dict) and "prompt" in value and "input" not in value


def _unread(path: Path) -> Mapping[str, Any]:
    """The keys of a file that is rejected for a lone surrogate, which JSON can express and YAML cannot."""
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    value = _value(data) if b"\\u" in data else None
    return value if isinstance(value, dict) else {}


def _is_list_of_prompts(path: Path) -> bool:
    """A shape that some files have: such a file is rejected as one of this format."""
    value = _document(path)
    return isinstance(value, list) and bool(value) and _is_prompt(value[0])


def _fits(path: Path) -> bool:
    value = _document(path)
    return detects(path, value if isinstance(value, dict) else {})


def _document(path: Path) -> Any:
    try:
        return _value(path.read_bytes())
    except OSError:
        return None


def _value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
