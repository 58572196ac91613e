"""The rules of evalh 2.0 where they differ from ours, for suites that name evalh as their format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from evalwright.model.plan import EvaluatorSpec
from evalwright.model.suite import Suite

__all__ = ["as_in_evalh", "lenient_keys"]

_CRITERIA = {"errored_cases": "count", "errored_evaluators": "fail"}
_LENIENT: dict[str, dict[str, Any]] = {
    "contains_text": {"absent": "empty"},
    "llm_judge": {"lenient": True},
    "semantic_similarity": {"absent": "empty"},
}
"""Keys that make our evaluators judge as evalh's do."""


def as_in_evalh(suite: Suite, written: Mapping[str, Any]) -> Suite:
    """A suite with errors counted and judges read as in evalh, except where its file, as `written`, says otherwise."""
    stated = written.get("pass_criteria") or {}
    criteria = replace(suite.pass_criteria, **{name: rule for name, rule in _CRITERIA.items() if name not in stated})
    return replace(suite, pass_criteria=criteria, evaluators=[*map(_lenient_spec, suite.evaluators)])


def _lenient_spec(spec: EvaluatorSpec) -> EvaluatorSpec:
    return replace(spec, config={**lenient_keys(spec.type), **spec.config})


def lenient_keys(type_name: str) -> dict[str, Any]:
    """The keys that make one of our evaluators judge as evalh's does."""
    return _LENIENT.get(type_name, {})
