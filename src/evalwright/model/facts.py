"""The parts of stored records that counts, comparisons and the index read: decoding less is faster."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from evalwright.model.cell import Attempt, OfCase
from evalwright.model.result import Status
from evalwright.model.trace import TraceError

__all__ = [
    "AttemptFacts",
    "CellKey",
    "ErrorFacts",
    "MetricFacts",
    "ReasonedResult",
    "RejudgedCell",
    "Rejudgement",
    "ResultFacts",
    "ResultLike",
    "TraceFacts",
    "TraceLike",
    "VerdictFacts",
]

CellKey = tuple[str, str, int]
"""The key of the case, the name of the variant, the trial."""


class ErrorFacts(msgspec.Struct, gc=False):
    """The type of an error."""

    type: str = ""


class MetricFacts(msgspec.Struct, gc=False):
    """Tokens and US dollars of a call."""

    token_input: int | None = None
    token_output: int | None = None
    cost_usd: float | None = None


class AttemptFacts(OfCase, gc=False):
    """The attempt and the cell to which a record belongs."""

    variant_name: str
    trial: int = 0
    attempt: Attempt = 1


class TraceFacts(OfCase, gc=False):
    """The parts read of a stored trace; folders of other programs have no `trial` and `attempt`."""

    case_id: str
    variant_name: str
    latency_ms: int | None = None
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None
    error: ErrorFacts | None = None
    metrics: MetricFacts = msgspec.field(default_factory=MetricFacts)
    group: str | msgspec.UnsetType = msgspec.UNSET
    finished_at: datetime | None = None


class VerdictFacts(msgspec.Struct, gc=False):
    """A stored verdict of one of our own runs, and its cell."""

    variant_name: str
    status: Status
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None


class ResultFacts(OfCase, gc=False):
    """The parts read of a stored result."""

    case_id: str
    variant_name: str
    evaluator: str
    passed: bool
    trial: int = 0
    attempt: Attempt = 1
    skipped: bool = False
    score: float | None = None
    error: ErrorFacts | None = None
    cost_usd: float | None = None
    misses: list[str] = msgspec.field(default_factory=list)
    finished_at: datetime | None = None


class _MetricsLike(Protocol):
    token_input: int | None
    token_output: int | None
    cost_usd: float | None


class TraceLike(Protocol):
    """What counting reads of a trace; both `Trace` and `TraceFacts` have it."""

    variant_name: str
    latency_ms: int | None
    trial: int
    case_index: int | None
    group: str | msgspec.UnsetType

    @property
    def case_key(self) -> str: ...

    @property
    def finished_at(self) -> datetime | None: ...

    @property
    def error(self) -> object | None: ...

    @property
    def metrics(self) -> _MetricsLike: ...


class ResultLike(Protocol):
    """What judging and counting read of a result; both `EvaluationResult` and `ResultFacts` have it."""

    evaluator: str
    passed: bool
    skipped: bool
    score: float | None
    cost_usd: float | None
    misses: list[str]

    @property
    def finished_at(self) -> datetime | None: ...

    @property
    def error(self) -> object | None: ...


class ReasonedResult(ResultLike, Protocol):
    """The parts of a result that the verdict on a cell depends on."""

    reason: str

    @property
    def error(self) -> TraceError | None: ...


class Rejudgement(NamedTuple):
    """The judgement of one cell, or of many."""

    variant: str
    status: Status
    error: str | None
    """The type of the system's error."""
    score: float | None
    results: Sequence[ResultLike]


RejudgedCell = tuple[int | None, int, int, datetime, Rejudgement]
"""A cell that is judged, maybe again: index of the case, trial, attempt, the time at which its trace was finished, and
the judgement."""
