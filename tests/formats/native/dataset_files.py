"""A dataset on disk, and the cases that are read from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.errors import Problem
from evalwright.model.case import EvalCase
from evalwright.registry import load
from formats.suites import refusal


def dataset(folder: Path, kind: str, data: str | bytes, **config: Any) -> Any:
    path = folder / ("cases.jsonl" if kind == "jsonl" else "cases.yaml")
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return load("datasets", kind)(path, "suite", config)


def cases(folder: Path, kind: str, data: str | bytes, **config: Any) -> list[EvalCase]:
    return list(dataset(folder, kind, data, **config))


def wrong(folder: Path, kind: str, data: str | bytes, **config: Any) -> tuple[Problem, ...]:
    return refusal(lambda: cases(folder, kind, data, **config)).problems


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
