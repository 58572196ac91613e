"""A table on disk, and the cases that are read from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.errors import Problem
from evalwright.formats.loading import load_suite
from formats.suites import refusal

SUITE = {
    "eval": {"name": "data"},
    "systems": [{"name": "s", "adapter": "replay"}],
    "evaluators": [{"name": "e", "type": "answered"}],
    "output": {"type": "local_files", "path": "runs"},
}


def suite(folder: Path, **dataset: Any) -> Any:
    (folder / "eval.yaml").write_text(json.dumps({**SUITE, "dataset": dataset}))
    return load_suite(folder / "eval.yaml")


def cases(folder: Path, data: str | bytes, name: str = "d.csv", **dataset: Any) -> list[Any]:
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(suite(folder, **{"path": name, **dataset}).cases)


def inputs(folder: Path, data: str | bytes, name: str = "d.csv", **dataset: Any) -> dict[str, Any]:
    return {case.id: case.input for case in cases(folder, data, name, **dataset)}


def wrong(folder: Path, data: str | bytes, name: str = "d.csv", **dataset: Any) -> tuple[Problem, ...]:
    return refusal(lambda: cases(folder, data, name, **dataset)).problems
