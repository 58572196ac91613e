"""The shapes of gates in a stored plan, so that one edited by hand is rejected before anything reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.model.format import Format, Ref
from evalwright.registry import resolve

__all__ = ["Legacy", "Logical", "Reward", "Simple", "Weighted", "gate_mistake"]

# The same as in `scoring/gate.py`, from which this room cannot import.
_Operator: TypeAlias = Literal["gt", "gte", "lt", "lte", "eq"]
_Aggregation: TypeAlias = Literal["avg_score", "accuracy", "min", "max", "median", "p50", "p95", "p99"]


class Simple(msgspec.Struct, tag_field="kind", tag="simple"):
    metric_key: str
    aggregation: _Aggregation
    op: _Operator
    value: float
    pass_threshold: float = 1.0


class Weighted(msgspec.Struct, tag_field="kind", tag="weighted_average"):
    weights: dict[str, Annotated[float, Meta(ge=0)]]
    aggregation: _Aggregation
    op: _Operator
    value: float
    pass_threshold: float = 1.0

    def __post_init__(self) -> None:
        if sum(self.weights.values()) <= 0:
            raise ValueError("the weights of a gate must have a sum above 0")


class Legacy(msgspec.Struct, tag_field="kind", tag="legacy"):
    metric_key: str
    aggregation: _Aggregation
    op: _Operator
    value: float
    pass_op: _Operator
    pass_value: float


class Logical(msgspec.Struct, tag_field="kind", tag="logical"):
    operator: Literal["and", "or"]
    # `and` over no conditions would pass
    conditions: Annotated[list[Simple | Weighted | Legacy | Logical], Meta(min_length=1)]


class Reward(msgspec.Struct, tag_field="kind", tag="reward"):
    metric_key: str


class _Claim(msgspec.Struct):
    metric: str
    alpha: Annotated[float, Meta(gt=0, lt=1)]
    on_undecided: Literal["fail", "pass"]
    group: str | None


class _AtLeast(_Claim, tag_field="claim", tag="at_least"):
    at_least: float
    rule: Literal["interval", "point"]


class _PairsClaim(_Claim):
    against: str
    margin: float | None
    errors: Literal["exclude", "fail", "strict"]
    allow_changed: bool
    slices: list[str]
    slice_margin: float | None
    guards: dict[str, float]


class _NotWorse(_PairsClaim, tag_field="claim", tag="not_worse_than"):
    pass


class _Better(_PairsClaim, tag_field="claim", tag="better_than"):
    pass


class _Claims(msgspec.Struct, tag_field="kind", tag="claims"):
    claims: Annotated[list[_AtLeast | _NotWorse | _Better], Meta(min_length=1)]
    conditions: Simple | Weighted | Legacy | Logical | None


_CLAIMS = "claims"
_KINDS: Mapping[str, Ref] = {
    "simple": Simple, "weighted_average": Weighted, "legacy": Legacy, "logical": Logical, _CLAIMS: _Claims,
}  # fmt: skip


def gate_mistake(gate: Mapping[str, Any], used: Format) -> str:
    """What is wrong with the gate of a run that is counted by the rules of a format; empty if nothing is."""
    if not isinstance(kind := gate.get("kind"), str):
        return "the gate has no kind"
    limit = gate.get("max_error_rate", 0.0)
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        return f"the gate's max_error_rate: expected a number, found {as_written(limit)}"
    known = {**_KINDS, **used.gates}
    if kind not in known:
        return f"the gate: unknown kind {kind!r}{did_you_mean(kind, known)} ({', '.join(known)})"
    try:
        msgspec.convert(gate, resolve(known[kind]))
    except msgspec.ValidationError as error:
        return f"the gate: {error}"
    return ""
