"""The money that a stored run has spent on model calls, according to its records."""

from __future__ import annotations

from typing import Any

import msgspec

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.statistics.sums import ExactSum
from evalwright.targets.build import target_calls_models

__all__ = ["spent_on_models"]


class _Metrics(msgspec.Struct, frozen=True, gc=False):
    cost_usd: float | None = None
    custom: dict[str, Any] = {}


_NOTHING = _Metrics()


class _Trace(msgspec.Struct, gc=False):
    variant_name: str
    metrics: _Metrics = _NOTHING


class _Result(msgspec.Struct, gc=False):
    cost_usd: float | None = None


def spent_on_models(reader: RunReader, plan: Plan) -> float:
    """US dollars of all attempts: judges, simulated users, and systems that are models; others call none of ours."""
    models = {variant.name for variant in plan.variants if _is_model(variant.adapter, variant.config)}
    spent = ExactSum()
    for trace in reader.traces(_Trace):
        if trace.variant_name in models:
            spent.add(trace.metrics.cost_usd or 0)
        spent.add(trace.metrics.custom.get("user_cost_usd", 0))
    for result in reader.results(_Result):
        spent.add(result.cost_usd or 0)
    return spent.total


def _is_model(adapter: str, config: dict[str, Any]) -> bool:
    """Whether a system is a model, or a simulated user talks to one."""
    inner = config.get("inner_system")
    called = inner["adapter"] if isinstance(inner, dict) else adapter
    return target_calls_models(called)
