"""The results of a cell's assertions in promptfoo's form: `componentResults`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evalwright.model.result import EvaluationResult
from evalwright.model.snapshot import Case

__all__ = ["components"]


def components(rows: Iterable[EvaluationResult], case: Case) -> Iterator[dict[str, Any]]:
    """The results of assertions; that of a set is followed by those of its members, and that of code by its parts. An
    evaluator of another format is an assertion with its name as the metric."""
    asserted = {spec.name: spec.config["assertion"] for spec in case.evaluators or () if "assertion" in spec.config}
    if "promptfoo" not in case.extra:
        rows = list(rows)
        asserted = {row.evaluator: {"metric": row.evaluator} for row in rows}
    for row in rows:
        if row.evaluator in asserted:
            shown = {"passed": row.passed, "score": row.score, "reason": row.reason, "detail": row.detail}
            yield from _with_members(shown, {"type": row.evaluator_type, **asserted[row.evaluator]})


def _with_members(row: Mapping[str, Any], assertion: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {
        "pass": row["passed"],
        "score": row["score"] or 0,
        "reason": row["reason"] or ("Assertion passed" if row["passed"] else ""),
        "assertion": assertion,
    }
    detail = row.get("detail") or {}
    for part in detail.get("components", ()):
        yield from _with_members(part, assertion)
    for member, asserted in zip(detail.get("children", ()), assertion.get("assert", ()), strict=False):
        yield from _with_members(member, asserted)
