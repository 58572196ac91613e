"""A small suite on disk, and what is said about it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import steps_of
from evalwright.files.yaml import dump
from evalwright.formats.loading import load_suite

SOUND: dict[str, Any] = {
    "eval": {"name": "suite"},
    "dataset": {"type": "yaml", "path": "cases.yaml"},
    "systems": [{"name": "s", "adapter": "replay"}],
    "evaluators": [{"name": "e", "type": "contains_text"}],
    "output": {"type": "local_files", "path": "runs"},
}
CASES = "cases:\n- {id: a, input: {}}\n"
CONDITION = {"metric_key": "e", "aggregation": "accuracy", "op": "gte", "value": 90}
TRACE = {
    "case_id": "a",
    "variant_name": "v",
    "started_at": "2026-05-01T10:00:00Z",
    "finished_at": "2026-05-01T10:00:01Z",
    "latency_ms": 1000,
    "input": {},
    "output": {"final_answer": "hello"},
}

REMOVED = type("Removed", (), {"__repr__": lambda _: "removed"})()


def changed(path: str, value: Any) -> dict[str, Any]:
    """The sound suite with one value changed."""
    suite = copy.deepcopy(SOUND)
    *outer, last = steps_of(path)
    inner: Any = suite
    for step in outer:
        inner = inner.setdefault(step, {}) if isinstance(inner, dict) else inner[step]
    if value is REMOVED:
        del inner[last]
    else:
        inner[last] = value
    return suite


def write(
    folder: Path, suite: str | Mapping[str, Any], cases: str | bytes | None = CASES, name: str = "cases.yaml"
) -> Path:
    """`eval.yaml` and its dataset in a folder."""
    if cases is not None:
        (folder / name).write_bytes(cases if isinstance(cases, bytes) else cases.encode())
    path = folder / "eval.yaml"
    path.write_text(suite if isinstance(suite, str) else dump(dict(suite)))
    return path


def refusal(action: Callable[[], object]) -> InputError:
    with pytest.raises(InputError) as caught:
        action()
    return caught.value


def problems(folder: Path, suite: str | Mapping[str, Any], cases: str | None = CASES) -> tuple[Problem, ...]:
    path = write(folder, suite, cases)
    return refusal(lambda: load_suite(path)).problems
