"""Suites made in Python, for tests that are about running and not about reading files."""

from __future__ import annotations

from pathlib import Path

from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, RunSettings, Variant
from evalwright.model.suite import Suite

PROJECT = Path(__file__).parent / "project"
SAYS_DONE = EvaluatorSpec("says_done", "contains_text", {"all_of": ["done"]})
SAYS_LAST = EvaluatorSpec("says_last", "contains_text", {"all_of": ["last"]})


def suite(
    folder: Path,
    inputs: list[object],
    target: str = "agents:echo",
    *,
    evaluators: list[EvaluatorSpec] | None = None,
    variants: list[Variant] | None = None,
    criteria: PassCriteria | None = None,
    timeout: float = 120,
    config: dict[str, object] | None = None,
    **settings: object,
) -> Suite:
    """A suite with cases `c0`, `c1`, ... that have the given inputs."""
    return Suite(
        name="test",
        dialect="evalh",
        source=PROJECT / "eval.yaml",
        cases=[EvalCase(id=f"c{i}", input=value) for i, value in enumerate(inputs)],
        variants=variants
        or [Variant("main", "python_function", {"target": target, **(config or {})}, timeout_seconds=timeout)],
        evaluators=[SAYS_DONE] if evaluators is None else evaluators,
        pass_criteria=criteria or PassCriteria(),
        run=RunSettings(**settings),
        out=folder / "runs",
    )
