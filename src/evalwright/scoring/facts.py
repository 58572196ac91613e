"""The parts of stored records that scoring reads; decoding less is quicker."""

from __future__ import annotations

import msgspec

__all__ = ["CellKey", "ErrorFacts", "MetricFacts", "ResultFacts", "TraceFacts"]

CellKey = tuple[str, str, int]
"""Case id, variant name, trial."""


class ErrorFacts(msgspec.Struct, gc=False):
    type: str = ""
    message: str = ""


class MetricFacts(msgspec.Struct, gc=False):
    token_input: int | None = None
    token_output: int | None = None
    cost_usd: float | None = None


class TraceFacts(msgspec.Struct, gc=False):
    case_id: str
    variant_name: str
    latency_ms: int
    trial: int = 0
    attempt: int = 1
    error: ErrorFacts | None = None
    metrics: MetricFacts = msgspec.field(default_factory=MetricFacts)

    @property
    def key(self) -> CellKey:
        return (self.case_id, self.variant_name, self.trial)


class ResultFacts(msgspec.Struct, gc=False):
    case_id: str
    variant_name: str
    evaluator: str
    passed: bool
    trial: int = 0
    attempt: int = 1
    skipped: bool = False
    score: float | None = None
    reason: str = ""
    error: ErrorFacts | None = None
