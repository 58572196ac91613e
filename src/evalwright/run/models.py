"""The models that a run calls, with its prices, its limits and its recordings."""

from __future__ import annotations

from dataclasses import replace

from evalwright.files.masker import Masker
from evalwright.llm.choices import ModelChoices, ModelClient
from evalwright.llm.routes import Route
from evalwright.model.chat import Models
from evalwright.model.plan import Plan
from evalwright.run.cells import RunState
from evalwright.session import environment
from evalwright.session.named_objects import passed_object

__all__ = ["live_models"]


def live_models(plan: Plan, choices: ModelChoices | None, masker: Masker, state: RunState) -> Models:
    """Made within the run's session, when the first question is asked; no client is imported before."""
    from evalwright.llm.models import LiveModels

    models = choices or ModelChoices()
    if state.lease is not None:
        models = replace(models, shared=state.lease)
    elif plan.shard is not None:
        from evalwright.run.shards import limits_of

        models = limits_of(plan, models)
    models = replace(
        models,
        mask=masker.mask_text,
        warn=plan.warnings.append,
        waiting=lambda calls: setattr(state, "waiting", calls),
        ends=lambda: state.stopping,
        placed=state.models_placed or _passed_client,
    )
    return LiveModels(plan.prices, models, environment(), built_in_prices=plan.has_list_prices)


async def _passed_client(route: Route) -> ModelClient | None:
    """The client of a function that was passed to the run; None for a model that is found by its name."""
    if not route.is_function or (function := passed_object(str(route.base_url))) is None:
        return None
    from evalwright.llm.callable_client import CallableClient

    return CallableClient(route, function)
