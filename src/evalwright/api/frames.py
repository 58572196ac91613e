"""A run as a DataFrame of pandas or polars, whichever is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from evalwright.api.cells import Cell
from evalwright.api.problems import refused
from evalwright.errors import InputError

__all__ = ["Kind", "Library", "frame_of", "library"]

Kind = Literal["cells", "results", "tool_calls"]
Library = Literal["pandas", "polars"]


def frame_of(cells: Iterable[Cell], kind: Kind, backend: Library | None) -> Any:
    """A row for each cell, result or tool call. Raises InputError."""
    if kind not in _ROWS:
        raise InputError(refused("kind", f"expected one of {', '.join(_ROWS)}, found {kind!r}"))
    module = library(backend, "to_frame")
    rows = [row for cell in cells for row in _ROWS[kind](cell)]
    columns: dict[str, None] = dict.fromkeys(_COLUMNS[kind])
    for row in rows:
        columns |= dict.fromkeys(row)
    data = {column: [row.get(column) for row in rows] for column in columns}
    # Without `strict=False`, polars allows only one type in a column; pandas always allows several.
    return module.DataFrame(data) if module.__name__ == "pandas" else module.DataFrame(data, strict=False)


def library(backend: Library | None, purpose: str) -> Any:
    """The module pandas or polars. If it is not installed, raises InputError that names the extra."""
    if backend not in (None, "pandas", "polars"):
        raise InputError(refused("backend", f"expected 'pandas' or 'polars', found {backend!r}"))
    for name in ("pandas", "polars") if backend is None else (backend,):
        if find_spec(name) is not None:
            return import_module(name)
    wanted = backend or "pandas or polars"
    raise InputError(f"{purpose} needs {wanted}: pip install 'evalwright[frames]'")


def _cell_row(cell: Cell) -> Iterator[dict[str, Any]]:
    case, metrics = cell.case, cell.trace.metrics
    row = {
        "case": cell.case_id,
        "variant": cell.variant,
        "trial": cell.trial,
        "status": cell.status,
        "score": cell.score,
        "input": cell.input,
        "output": cell.output,
        "expected": _expected_json(case.expected),
        "error": cell.error,
        "latency_s": cell.latency,
        "cost_usd": cell.cost_usd,
        "tokens_in": metrics.token_input,
        "tokens_out": metrics.token_output,
        "tags": list(case.tags),
        "group": case.group,
    }
    for name, result in cell.results.items():
        judged = result.error is None and not result.skipped
        row[f"{name}.passed"] = result.passed if judged else None
        row[f"{name}.score"] = result.score
        row[f"{name}.reason"] = result.reason or (result.error.message if result.error else "")
    for key, value in case.metadata.items():
        row[f"metadata.{key}"] = value
    yield row


def _result_rows(cell: Cell) -> Iterator[dict[str, Any]]:
    for name, result in cell.results.items():
        yield {
            "case": cell.case_id,
            "variant": cell.variant,
            "trial": cell.trial,
            "evaluator": name,
            "status": result.status,
            "passed": result.passed if result.error is None and not result.skipped else None,
            "score": result.score,
            "reason": result.reason,
            "error": None if result.error is None else result.error.message,
            "latency_s": result.latency_ms / 1000,
            "cost_usd": result.cost_usd,
        }


def _tool_call_rows(cell: Cell) -> Iterator[dict[str, Any]]:
    for position, call in enumerate(cell.trace.tool_calls):
        yield {
            "case": cell.case_id,
            "variant": cell.variant,
            "trial": cell.trial,
            "position": position,
            "name": call.name,
            "id": call.id,
            "arguments": _json(call.arguments),
        }


def _expected_json(expected: Any) -> str | None:
    """What the answer is expected to be, as JSON; None if nothing is expected."""
    import msgspec

    parts = {key: value for key, value in msgspec.to_builtins(expected).items() if value}
    return _json(parts) if parts else None


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


_ROWS = {"cells": _cell_row, "results": _result_rows, "tool_calls": _tool_call_rows}
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "cells": (
        "case", "variant", "trial", "status", "score", "input", "output", "expected", "error", "latency_s",
        "cost_usd", "tokens_in", "tokens_out", "tags", "group",
    ),
    "results": (
        "case", "variant", "trial", "evaluator", "status", "passed", "score", "reason", "error", "latency_s",
        "cost_usd",
    ),
    "tool_calls": ("case", "variant", "trial", "position", "name", "id", "arguments"),
}  # fmt: skip
"""The columns that exist even without rows."""
