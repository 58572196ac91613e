"""The plan of a run (produced): everything that running, resuming and judging again need, as `plan.json`.

Values that came from secret environment variables are stored as `${NAME}` and expanded again on read.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = ["EvaluatorSpec", "PassCriteria", "Plan", "RetryRule", "RunSettings", "Variant"]


class Variant(msgspec.Struct, frozen=True):
    """One system under test: `adapter` names a target type, `config` is that target's own."""

    name: str
    adapter: str
    config: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    timeout_seconds: float = 120
    concurrency: int | None = None
    isolation: str = "none"
    """`process` runs the target in worker processes of its own, so that it cannot end or corrupt the run."""
    trials: int | None = None
    """Overrides the run's number of trials."""


class EvaluatorSpec(msgspec.Struct, frozen=True):
    """One check: `type` names an evaluator type, `config` is that evaluator's own."""

    name: str
    type: str
    config: dict[str, Any] = {}


class PassCriteria(msgspec.Struct, frozen=True):
    """When a cell passes; without criteria, when every evaluator passed without error.

    `errored_cases` is `error` (an errored cell is never passed) or `evaluate` (upstream evalh's rule).
    """

    all_required: list[str] = []
    any_required: list[str] = []
    errored_cases: str = "error"


class RetryRule(msgspec.Struct, frozen=True):
    """Which errors of a target are tried again: waits are `backoff_seconds * 2**(n-1)` before try n+1."""

    max_attempts: int = 1
    on: list[str] = []
    backoff_seconds: float = 0.0


class RunSettings(msgspec.Struct, frozen=True):
    """How the cells are run."""

    max_concurrency: int = 4
    per_variant_concurrency: int | None = None
    trials: int = 1
    retry: RetryRule = RetryRule()
    baseline_variant: str | None = None
    evaluator_timeout_seconds: float = 60.0


class Plan(msgspec.Struct):
    """One run: which cells there are and how they are judged."""

    run_id: str
    name: str
    dialect: str
    started_at: datetime
    config_path: str
    config_hash: str
    cases_total: int
    variants: list[Variant]
    evaluators: list[EvaluatorSpec]
    pass_criteria: PassCriteria = PassCriteria()
    run: RunSettings = RunSettings()
    import_paths: list[str] = []
    """Folders from which user code may be imported, first one first."""
    metadata: dict[str, Any] = {}
    schema_version: str = "1.0"
