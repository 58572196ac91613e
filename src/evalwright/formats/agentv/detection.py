"""Which files belong to AgentV: evals in YAML, cases in JSON Lines, and the files beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.files.jsonl import lines_of
from evalwright.formats.shared.foreign import has_queries

__all__ = ["OUTCOMES", "detects", "first_line", "is_case", "lines_beside"]

OUTCOMES = ("expected_outcome", "criteria", "outcome")


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    if path.suffix.lower() == ".jsonl":
        return is_case(first_line(path))
    named = any(isinstance(head.get(key), list) for key in ("evalcases", "eval_cases", "tests"))
    named = named and not (path.name == "evals.json" and has_queries(head))
    ours = str(head.get("$schema")).startswith("agentv-")
    yaml = path.suffix in (".yaml", ".yml")
    targets = yaml and path.stem == "targets" and "targets" in head
    config = yaml and path.stem == "config" and path.parts[-2:-1] == (".agentv",)
    return (
        ours or ((named or "evalcases" in head or _in_other_files(head)) and "targets" not in head) or targets or config
    )


def _in_other_files(head: Mapping[str, Any]) -> bool:
    """Whether `tests` names files of cases, and one of AgentV's own keys shows that they are AgentV's."""
    own = ("execution", "assertions", "workspace", "input_files")
    return isinstance(head.get("tests"), str) and (any(key in head for key in own) or "prompts" not in head)


def first_line(path: Path) -> Any:
    """The value in the first line of a JSON Lines file; None if there is none, or it is not JSON."""
    try:
        return next((json.loads(line) for _, line in lines_of(path)), None)
    except (ValueError, RecursionError):
        return None


def is_case(record: Any) -> bool:
    """Whether a line is a case, possibly with mistakes."""
    return isinstance(record, dict) and "id" in record and any(key in record for key in OUTCOMES)


def lines_beside(sidecar: Path) -> Path | None:
    """The JSON Lines file with the cases to which a sidecar belongs."""
    lines = sidecar.with_suffix(".jsonl")
    return lines if sidecar.suffix == ".yaml" and os.path.isfile(lines) and is_case(first_line(lines)) else None
