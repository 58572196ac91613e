"""What a run would do: how many calls of systems and judges, and about what those of judges would cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from evalwright.errors import InputError
from evalwright.evaluators.build import calls_models
from evalwright.model.plan import EvaluatorSpec, Plan, Price
from evalwright.model.snapshot import Case
from evalwright.model.suite import Suite
from evalwright.run.options import RunOptions
from evalwright.run.plan import plan_of
from evalwright.run.selection import chosen_cases

__all__ = ["Forecast", "forecast"]

_CHARACTERS_A_TOKEN = 4
_OWN_WORDS = 300
"""Tokens of a judge's instructions, about."""
_ANSWER = 300
"""Estimated tokens of an answer that is to be judged: unknown before it is there."""
_LIKELY_OUTPUT = 512


class Forecast(NamedTuple):
    """Cells, calls of judges, and US dollars where every judge's model has a price."""

    cells: int
    judge_calls: int
    judge_cost_usd: float | None


def forecast(suite: Suite, options: RunOptions) -> Forecast:
    """Count the calls; nothing is run and nothing written. Raises InputError for mistakes of the dataset."""
    plan = plan_of(suite, options)
    per_case = sum(variant.trials or plan.run.trials for variant in plan.variants)
    cases = calls = 0
    cost: float | None = 0.0
    for position, case in enumerate(chosen_cases(suite, options)):
        if plan.shard is not None and not plan.shard.has(position):
            continue
        cases += 1
        for spec in (case.evaluators or []) if plan.evaluators_by_case else plan.evaluators:
            if calls_models(spec.type, spec.config):
                models = _models(spec)
                calls += per_case * len(models)
                each = [_cost(plan, model, spec, case) for model in models]
                cost = None if cost is None or None in each else cost + per_case * sum(c for c in each if c is not None)
    if lost := getattr(suite.cases, "problems", ()):
        raise InputError(lost)  # of cases that a run would record as errors
    return Forecast(cases * per_case, calls, cost)


def _models(spec: EvaluatorSpec) -> list[str]:
    """The models that one evaluation asks, once for each call."""
    config = spec.config
    named = config.get("models") or [config.get("model", "")]
    samples = config.get("samples", 1)
    orders = 2 if spec.type == "pairwise_judge" else 1
    return [str(model) for model in named] * (samples if isinstance(samples, int) else 1) * orders


def _cost(plan: Plan, model: str, spec: EvaluatorSpec, case: Case) -> float | None:
    price: Price | None = plan.prices.get(model) or plan.prices.get(model.partition("/")[2])
    if price is None:
        return None
    seen: list[Any] = [case.input, case.expected, spec.config]
    asked = len(msgspec.json.encode(seen)) // _CHARACTERS_A_TOKEN + _OWN_WORDS + _ANSWER
    limit = spec.config.get("max_tokens", _LIKELY_OUTPUT)
    said = min(limit, _LIKELY_OUTPUT) if isinstance(limit, int) else _LIKELY_OUTPUT
    return (asked * price.input_per_million_tokens + said * price.output_per_million_tokens) / 1_000_000
