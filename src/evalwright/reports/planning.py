"""What a difference takes, for a terminal."""

from __future__ import annotations

from evalwright.decisions.planning import PlanRow, SuitePlan
from evalwright.errors import counted
from evalwright.reports import numbers
from evalwright.reports.decision import amount
from evalwright.reports.text import one_line

__all__ = ["planning_lines"]


def planning_lines(plan: SuitePlan, source: str) -> list[str]:
    """A table for each assumption: cases, dollars and minutes of one run, and what the suite shows as it is."""
    margin = f", margin {amount(plan.margin, 'pass_rate')}" if plan.margin else ""
    level = f"{plan.alpha:g}".replace("0.", ".")
    lines = [
        f"To see {amount(plan.detect, 'pass_rate')} at alpha {level}{margin}: {one_line(plan.suite, 30)}, "
        f"{counted(plan.cases, 'case')}{source}"
    ]
    assumed = None
    for row in plan.rows:
        if row.assumed != assumed:
            assumed = row.assumed
            lines += ["", f"  {assumed}", _heading(row)]
        lines.append(_row(row))
    if not plan.reached:
        lines += ["", f"the suite as it is does not reach {plan.power:.0%} power"]
    return lines


def _heading(row: PlanRow) -> str:
    needs = "".join(f"{f'{need.power:.0%} power':>12}" for need in row.needs)
    money = f"{'cost':>10}" if any(need.cost_usd is not None for need in row.needs) else ""
    time = f"{'minutes':>9}" if any(need.minutes is not None for need in row.needs) else ""
    return f"  trials{needs}{money}{time}  this suite shows"


def _row(row: PlanRow) -> str:
    needs = "".join(f"{'–' if need.cases is None else f'{need.cases:,}':>12}" for need in row.needs)
    usual = next((need for need in row.needs if need.power == 0.8), row.needs[-1])
    money = "" if usual.cost_usd is None else f"{numbers.money(usual.cost_usd):>10}"
    time = "" if usual.minutes is None else f"{usual.minutes:>9,.1f}"
    shows = "–" if row.detectable is None else f"±{100 * row.detectable:.1f} pp"
    return f"  {row.trials:>6}{needs}{money}{time}  {shows:>16}{'   <- cheapest' if row.cheapest else ''}"
