"""The gate of a run of a skill, and which criteria say nothing about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from evalwright.errors import counted
from evalwright.formats.skills.cases import is_criterion
from evalwright.formats.skills.variants import deciding_variants
from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import Plan
from evalwright.model.result import Status
from evalwright.model.summary import GateOutcome, GatePart, RunSummary
from evalwright.scoring.gate_intervals import CountedPasses

__all__ = ["SkillTotals", "constant_criteria"]

_FEW = 5

_Criterion = tuple[str, str]
"""The key of a case, and the name of one of its evaluators."""
_Shares = dict[str, list[int]]
"""By variant, how often a criterion held and how often it was judged."""


class SkillTotals:
    """Cells by variant, and the outcome of each criterion."""

    def __init__(self, plan: Plan) -> None:
        self._cells: dict[str, dict[str, int]] = {variant.name: {} for variant in plan.variants}
        self._criteria: dict[_Criterion, _Shares] = {}
        self._deciding = deciding_variants(plan.variants)
        self._decided = plan.gate is not None
        self._passes = {name: CountedPasses() for name in self._deciding}

    def add(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        cells = self._cells.setdefault(trace.variant_name, {})
        cells[status] = cells.get(status, 0) + 1
        if trace.variant_name in self._passes and status in ("pass", "fail"):
            self._passes[trace.variant_name].add(trace, status == "pass")
        for row in results:
            if row.error is None and not row.skipped and is_criterion(row.evaluator):
                shares = self._criteria.setdefault((trace.case_key, row.evaluator), {})
                share = shares.setdefault(trace.variant_name, [0, 0])
                share[0] += row.passed
                share[1] += 1

    def merge(self, other: Any) -> None:
        for name, cells in other._cells.items():
            own = self._cells.setdefault(name, {})
            for status, number in cells.items():
                own[status] = own.get(status, 0) + number
        for name, passes in other._passes.items():
            self._passes[name].merge(passes)
        for key, shares in other._criteria.items():
            criterion = self._criteria.setdefault(key, {})
            for name, (held, judged) in shares.items():
                share = criterion.setdefault(name, [0, 0])
                criterion[name] = [share[0] + held, share[1] + judged]

    def finish(self, summary: RunSummary) -> None:
        always, never = constant_criteria(self._criteria)
        summary.native = {
            "criteria": len(self._criteria),
            "hold_everywhere": [" ".join(pair) for pair in always],
            "fail_everywhere": [" ".join(pair) for pair in never],
        }
        summary.warnings = [*summary.warnings, *_notes(always, never, len(self._criteria))]
        if not self._decided:
            summary.gate = self._gate()

    def _gate(self) -> GateOutcome:
        """Every cell with the skill must pass; cells without it never decide."""
        parts, undecided = [], 0
        for name in self._deciding:
            cells = self._cells[name]
            passed, failed, errors = (cells.get(status, 0) for status in ("pass", "fail", "error"))
            undecided += errors
            rate = passed / (passed + failed) if passed + failed else None
            parts.append(GatePart(f"{name}: cells that passed", not failed and passed > 0, rate, "gte", 1.0, passed))
            parts[-1].n = passed + failed
            parts[-1].ci95 = self._passes[name].ends()
        if not parts:
            return GateOutcome(True, reason="nothing decides: no variant has the skill")
        failed_parts = [part for part in parts if part.value is not None and part.value < 1]
        gate = GateOutcome(all(part.passed for part in parts), parts)
        if not failed_parts and (undecided or not gate.passed):
            gate.passed, gate.undecided = False, True
            gate.reason = f"{counted(undecided, 'cell')} without a verdict" if undecided else "nothing was judged"
        return gate


def constant_criteria(
    criteria: Mapping[_Criterion, Mapping[str, Iterable[int]]],
) -> tuple[list[_Criterion], list[_Criterion]]:
    """The criteria that always held in every variant, and those that never did, among those judged in two variants."""
    always, never = [], []
    for key, shares in sorted(criteria.items()):
        judged = [tuple(share) for share in shares.values()]
        if len(judged) > 1 and all(held == number for held, number in judged):
            always.append(key)
        elif len(judged) > 1 and not any(held for held, _ in judged):
            never.append(key)
    return always, never


def _notes(always: Collection[_Criterion], never: Collection[_Criterion], total: int) -> Iterable[str]:
    for pairs, what in ((always, "all variants"), (never, "none")):
        if pairs:
            some = ", ".join(" ".join(pair) for pair in list(pairs)[:_FEW]) + (", ..." if len(pairs) > _FEW else "")
            yield f"{len(pairs)} of {total} criteria say nothing about the skill, as they hold in {what}: {some}"
