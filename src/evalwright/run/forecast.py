"""What a run would do: the number of calls of systems and judges, and an estimate of what those of models would
cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.build import build_evaluator, calls_models, declared, requests_of
from evalwright.llm.prices import built_in_price, dollars, price_in
from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.snapshot import Case
from evalwright.run.options import RunOptions
from evalwright.run.plan import plan_of
from evalwright.run.selection import chosen_cases, unread_cases
from evalwright.targets.build import target_calls_models

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = ["Forecast", "forecast"]

_CHARACTERS_A_TOKEN = 4
_OWN_WORDS = 300
"""Tokens of a judge's own instructions, roughly."""
_SYSTEM_KEYS = ("system_prompt", "user_template", "tools")
"""What a system that is a model reads besides the case."""
_ANSWER = 300
"""Tokens assumed for an answer to be judged, which is unknown before the run."""
_LIKELY_ANSWER, _LIKELY_VERDICT = 512, 200
"""Tokens of a reply."""


class Forecast(NamedTuple):
    """Cells, calls of judges, and US dollars of models with a price; 0 for systems that are not models."""

    cells: int
    recorded: int
    """Those of the cells whose answer is a recording: no system is called."""
    judge_calls: int
    judge_cost_usd: float
    system_cost_usd: float
    unpriced: list[str]
    """Models without a known price: their cost is in neither sum."""
    unnamed_calls: int
    """Calls of judges whose model the suite does not name, or that are not models: their cost is in neither sum."""
    unread: list[Problem]
    """The mistakes of cases that a run would record as errors."""


def forecast(suite: Suite, options: RunOptions) -> Forecast:
    """Count the calls; nothing is run and nothing written. Raises InputError for mistakes of the dataset."""
    plan = plan_of(suite, options)
    per_case = sum(map(plan.trials_of, plan.variants))
    replayed = sum(plan.trials_of(variant) for variant in plan.variants if variant.adapter == "replay")
    chats = [(variant, model) for variant in plan.variants if (model := _model_of(variant)) is not None]
    judging, answering = _Sum(plan, _LIKELY_VERDICT), _Sum(plan, _LIKELY_ANSWER)
    lost = unread_cases(suite)
    unread: list[Problem] = []
    cases = 0
    for position, case in enumerate(chosen_cases(suite, options)):
        if plan.shard is not None and not plan.shard.has(position):
            continue
        if case.id in lost:
            unread += lost[case.id]
            continue
        cases += 1
        for variant, model in chats:
            answering.add(model, _system_tokens(variant, case), variant.config, plan.trials_of(variant))
        for spec in (case.evaluators or []) if plan.evaluators_by_case else plan.evaluators:
            if calls_models(spec.type, spec.config) and not _skips(spec, case):
                tokens = _tokens([case.input, case.expected, spec.config]) + _OWN_WORDS + _ANSWER
                for model in _models(spec, case):
                    judging.add(model, tokens, spec.config, per_case)
    unpriced = list(dict.fromkeys([*answering.unpriced, *judging.unpriced]))
    cells, sums = (cases * per_case, cases * replayed), (judging.dollars, answering.dollars)
    return Forecast(*cells, judging.calls, *sums, unpriced, judging.unnamed, unread)


class _Sum:
    """The cost of the calls that have a price, and the models of the others."""

    def __init__(self, plan: Plan, likely: int) -> None:
        self._plan, self._list_prices, self._likely = plan, plan.has_list_prices, likely
        self.dollars: float = 0.0
        self.calls = self.unnamed = 0
        self.unpriced: dict[str, None] = {}

    def add(self, model: str, tokens: int, config: Mapping[str, Any], times: int) -> None:
        """Add `times` calls that send so many tokens each; the model is "" if none is named."""
        self.calls += times
        if not model:
            self.unnamed += times
            return
        price = price_in(self._plan.prices, model) or (built_in_price(model) if self._list_prices else None)
        if price is None:
            self.unpriced[model] = None
        else:
            limit = config.get("max_tokens", self._likely)
            output = min(limit, self._likely) if isinstance(limit, int) else self._likely
            self.dollars += times * dollars(price, tokens, output)


def _model_of(variant: Variant) -> str | None:
    """The model of a variant; None for another kind of system, whose cost is unknown."""
    model = variant.config.get("model")
    is_model = isinstance(model, str) and target_calls_models(variant.adapter)
    return str(model) if is_model else None


def _system_tokens(variant: Variant, case: Case) -> int:
    return _tokens([case.input, *(variant.config.get(key) for key in _SYSTEM_KEYS)])


def _tokens(seen: list[Any]) -> int:
    return len(msgspec.json.encode(seen)) // _CHARACTERS_A_TOKEN


def _models(spec: EvaluatorSpec, case: Case) -> list[str]:
    """The models that one evaluation calls, once for each call; "" for one that is not known in advance."""
    config = spec.config
    model_key = config.get("model")
    named = config.get("models") or ([model_key] if model_key else _models_called(spec, case))
    samples = config.get("samples", 1)
    orders = 2 if spec.type == "pairwise_judge" else 1
    return [str(model) for model in named] * (samples if isinstance(samples, int) else 1) * orders


def _models_called(spec: EvaluatorSpec, case: Case) -> list[str]:
    """The models of an evaluator that finds them elsewhere than in `model`, such as among its members."""
    requests = requests_of(spec)
    return [request.model for request in requests(case)] or [""] if requests is not None else [""]


def _skips(spec: EvaluatorSpec, case: Case) -> bool:
    """Whether an evaluator will find nothing to judge in a case."""
    if declared("evaluators", spec.type).skips is None:
        return False
    skips = build_evaluator(spec.type, spec.config).traits.skips
    return skips is not None and skips(case)
