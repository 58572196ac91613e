"""Which of our own formats a file is of, told without loading any format: most files need only one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["DETECTORS"]

_Head = Mapping[str, Any]


def _agentv(path: Path, head: _Head) -> bool:
    if path.suffix.lower() == ".jsonl":
        from evalwright.formats.agentv.file import first_line, is_case

        return is_case(first_line(path))
    named = any(isinstance(head.get(key), list) for key in ("evalcases", "eval_cases", "tests"))
    named = named or "evalcases" in head or str(head.get("$schema")).startswith("agentv-")
    yaml = path.suffix in (".yaml", ".yml")
    targets = yaml and path.stem == "targets" and "targets" in head
    config = yaml and path.stem == "config" and path.parts[-2:-1] == (".agentv",)
    return (named or targets or config) and "eval" not in head


def _evalh(path: Path, head: _Head) -> bool:
    return "eval" in head or {"dataset", "systems"} <= head.keys()


def _letta(path: Path, head: _Head) -> bool:
    return "dataset" in head and ("graders" in head or "grader" in head)


def _northstar(path: Path, head: _Head) -> bool:
    if path.suffix.lower() not in (".json", ".jsonl"):
        return False
    from evalwright.formats.northstar.suite import first_record, is_case

    return is_case(first_record(path, head))


def _pixie(path: Path, head: _Head) -> bool:
    return path.suffix == ".json" and "runnable" in head and ("entries" in head or "items" in head)


DETECTORS: Mapping[str, Callable[[Path, _Head], bool]] = {
    "agentv": _agentv,
    "evalh": _evalh,
    "letta": _letta,
    "northstar": _northstar,
    "pixie": _pixie,
}
"""What `detects` is for the dialects of other packages (`model.protocols.Dialect`)."""
