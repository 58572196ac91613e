"""A plan as a picture."""

from __future__ import annotations

from evalwright.decisions.planning import SuitePlan
from evalwright.errors import counted
from evalwright.reports.pictures.elements import Html
from evalwright.reports.pictures.plots import power_svg
from evalwright.reports.planning import planned_claim

__all__ = ["plan_svg"]


def plan_svg(plan: SuitePlan) -> Html:
    """The power of each assumption against the number of cases."""
    several = len({row.assumed for row in plan.rows}) > 1
    curves = [(row.assumed if several else counted(row.trials, "trial"), row.curve) for row in plan.rows if row.curve]
    return power_svg(f"Power to show {planned_claim(plan)} in {plan.suite}", curves, plan.power)
