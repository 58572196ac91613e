"""Steps of a cell that only some plans need. A plan without one gets None here, and its module is not imported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import RunWriter
from evalwright.model.result import Evaluation

if TYPE_CHECKING:
    from evalwright.files.masker import Masker
    from evalwright.run.steps.enrich import Enriching
    from evalwright.run.steps.mirror import Mirroring
    from evalwright.run.steps.price import Pricing
    from evalwright.run.steps.spoil import Spoiling
    from evalwright.run.steps.workspace import Workspaces
    from evalwright.targets.threads import Threads

__all__ = ["Pending", "enriching_of", "mirroring_of", "pricing_of", "spoiling_of", "workspaces_of"]


class Pending(NamedTuple):
    """A result that is not there yet."""

    position: int
    """In the results of the cell."""
    given: Awaitable[Evaluation] | Callable[..., Any]
    """What is awaited, or called once all other results are there."""
    limit: float
    """The seconds it has."""
    scores: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest score of the evaluator."""
    spec: EvaluatorSpec | None = None
    """Of the evaluator, whose required score is named where it is not reached."""


def workspaces_of(plan: Plan, writer: RunWriter, threads: Threads) -> Workspaces | None:
    """A folder for each cell. Raises InputError for a configuration that cannot be used."""
    if plan.workspace is None:
        return None
    from evalwright.run.steps.workspace import Workspaces

    return Workspaces(plan, plan.workspace, writer, threads)


def pricing_of(plan: Plan) -> Pricing | None:
    """Costs worked out from tokens."""
    if not plan.prices:
        return None
    from evalwright.run.steps.price import Pricing

    return Pricing(plan)


def enriching_of(plan: Plan) -> Enriching | None:
    """What observability platforms saw of a call."""
    if not any(variant.enrich_trace_from for variant in plan.variants):
        return None
    from evalwright.run.steps.enrich import Enriching

    return Enriching(plan)


def spoiling_of(plan: Plan) -> Spoiling | None:
    """Errors of one evaluator that take back what the others said."""
    if not plan.pass_criteria.spoiling_errors:
        return None
    from evalwright.run.steps.spoil import Spoiling

    return Spoiling(plan)


def mirroring_of(plan: Plan, masker: Masker) -> Mirroring | None:
    """Further outputs, each begun here. Raises InputError for a configuration that cannot be used."""
    if not plan.mirrors:
        return None
    from evalwright.run.steps.mirror import Mirroring

    return Mirroring(plan, masker)
