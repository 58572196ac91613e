"""The numbers that the cells of a plan have in its index."""

from __future__ import annotations

from evalwright.model.plan import Plan

__all__ = ["PlanNumbering", "signature_of"]


class PlanNumbering:
    """The cells of a plan, numbered by case, then variant, then trial."""

    def __init__(self, plan: Plan) -> None:
        self.trials: list[int] = [*map(plan.trials_of, plan.variants)]
        self.names: list[str] = [variant.name for variant in plan.variants]
        self._first = {name: sum(self.trials[:i]) for i, name in enumerate(self.names)}
        self._trials = dict(zip(self.names, self.trials, strict=True))
        self._cases, self._per_case = plan.cases_total, sum(self.trials)

    def place(self, case_index: int | None, variant: str, trial: int) -> tuple[int, int] | None:
        """See `Numbering` of the follower."""
        first = self._first.get(variant)
        if first is None or case_index is None or not 0 <= case_index < self._cases:
            return None
        if not 0 <= trial < self._trials[variant]:
            return None
        return case_index * self._per_case + first + trial, first + trial


def signature_of(plan: Plan | None) -> str:
    """What an index depends on besides the records: the run, and the numbering of the cells."""
    if plan is None:
        return "-"
    grid = PlanNumbering(plan)
    return repr((plan.started_at.isoformat(), plan.cases_total, grid.names, grid.trials))
