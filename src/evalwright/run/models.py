"""The models that the judges, chat targets and simulated users of a run ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evalwright.files.masker import Masker
from evalwright.llm.choices import ModelChoices
from evalwright.model.chat import Models
from evalwright.model.plan import Plan
from evalwright.session import environment

__all__ = ["models_of"]


def models_of(plan: Plan, choices: ModelChoices | None, masker: Masker) -> Callable[[], Models]:
    """Makes the models of a run when the first question is asked, in its session; nothing is imported before."""

    def make() -> Models:
        from evalwright.llm.models import LiveModels

        return LiveModels(plan.prices, replace(choices or ModelChoices(), mask=masker.mask_text), environment())

    return make
