"""The running count of a run: cells are added as they finish, and a summary can be made at any time.

Counts of shares of a run add up, so that several processes can each count their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from evalwright.errors import counted
from evalwright.model.cell_index import CellSums
from evalwright.model.facts import ResultLike, TraceLike
from evalwright.model.plan import PassCriteria, Plan
from evalwright.model.result import CaseVerdict, Status
from evalwright.model.summary import EvaluatorRollup, RunSummary, TrialStatistics, VariantSummary
from evalwright.registry import format_of_run, resolve
from evalwright.scoring.counts import Measures, VariantCount
from evalwright.scoring.totals import AlikeTotals, GatedTotals, Totals
from evalwright.statistics.distributions import Interval
from evalwright.statistics.rates import rate_of_counts, rate_with_design_effect
from evalwright.statistics.trials import share_at_k, share_hat_k

__all__ = ["Tally", "has_only_scores", "totals_of"]

# `summary.yaml` is read by people; the number of all is beside the names.
_MOST_MIXED = 100

Trials = Mapping[str, tuple[int, int]]
"""Passed trials and judged trials (at least one) by case."""


class Tally:
    """The count of a run or of a share of it.

    `repeated` trials need one number for each case and evaluator. Without them memory does not grow with the number of
    cells.
    """

    def __init__(
        self,
        variants: Iterable[str],
        *,
        repeated: bool,
        totals: Totals | None,
        criteria: PassCriteria,
        evaluators: Sequence[str],
    ) -> None:
        self._repeated, self._criteria = repeated, criteria
        self._totals = totals
        self._evaluators = evaluators
        self._variants = {name: self._new() for name in variants}
        self._last: datetime | None = None
        """When the last of the counted records was finished: a rebuilt summary has the same time as the first."""

    def _new(self) -> VariantCount:
        return VariantCount(self._criteria, repeated=self._repeated)

    @classmethod
    def of(cls, plan: Plan, *, repeated: bool = False) -> Tally:
        """An empty count for a plan: by case if it repeats cases, or with `repeated`."""
        repeated = repeated or any(plan.trials_of(variant) > 1 for variant in plan.variants)
        return cls(
            [variant.name for variant in plan.variants],
            repeated=repeated,
            totals=totals_of(plan),
            criteria=plan.pass_criteria,
            evaluators=[spec.name for spec in plan.evaluators],
        )

    @property
    def variants(self) -> Mapping[str, VariantCount]:
        """Counts by variant: those of the plan in its order, then others as they appear."""
        return self._variants

    def add(self, trace: TraceLike, results: Collection[ResultLike], verdict: CaseVerdict) -> None:
        """Count one finished cell. Every cell must be added exactly once."""
        self.count(trace, results, verdict.status, verdict.score)
        if verdict.extra is not UNSET:
            self.count_extra(verdict.variant_name, verdict.extra)

    def count_extra(self, variant: str, extra: Mapping[str, Any]) -> None:
        """Count what a counted cell's verdict contains for the totals of its format."""
        if (add := getattr(self._totals, "add_extra", None)) is not None:
            add(variant, extra)

    def count(
        self, trace: TraceLike, results: Collection[ResultLike], status: Status, score: float | None = None
    ) -> None:
        """Count one finished cell of which only the status, and possibly the score, is known."""
        variant = self._variants.get(trace.variant_name)
        if variant is None:
            variant = self._variants[trace.variant_name] = self._new()
        variant.add(trace, results, status)
        last, moment = self._last, trace.finished_at
        if moment is not None and (last is None or moment > last):
            last = moment
        for result in results:
            moment = result.finished_at
            if moment is not None and (last is None or moment > last):
                last = moment
        self._last = last
        if self._totals is not None:
            self._totals.add(trace, results, status, score)

    def count_alike(self, trace: TraceLike, results: Collection[ResultLike], status: Status, times: int) -> None:
        """Count many finished cells that are alike: see `VariantCount.add_alike`."""
        self._variants.setdefault(trace.variant_name, self._new()).add_alike(trace, results, status, times)
        if isinstance(self._totals, AlikeTotals):
            self._totals.add_alike(trace, results, status, times)

    def count_measures(self, variant: str, measures: Measures) -> None:
        """Count what those cells of a variant took and cost that `count_alike` counts."""
        self._variants.setdefault(variant, self._new()).add_measures(measures)
        self.reached(measures.finished_at)

    def count_sums(self, variant: str, sums: CellSums) -> None:
        """Count what all cells of the only variant took and cost."""
        count = self._variants[variant]
        count.latency.add_sum(*sums.latency_ms)
        count.cost.add_sum(*sums.cost_usd)
        count.tokens_input.add_sum(*sums.tokens_in)
        count.tokens_output.add_sum(*sums.tokens_out)
        self.reached(sums.finished_at)

    @property
    def counts_alike(self) -> bool:
        """Whether cells that differ only in their cases can be counted together: neither the counts nor the totals of
        a format are by case."""
        return not self._repeated and (self._totals is None or isinstance(self._totals, AlikeTotals))

    @property
    def counts_only(self) -> bool:
        """Whether only the counts of one variant's cells are needed, and nothing by case."""
        return self.counts_alike and len(self._variants) == 1

    @property
    def needs_records(self) -> bool:
        """Whether a format has totals of its own, which may read anything of a result."""
        return self._totals is not None and not getattr(self._totals, "reads_scores_only", False)

    def reached(self, moment: datetime | None) -> None:
        """Note when a record was finished."""
        if moment is not None and (self._last is None or moment > self._last):
            self._last = moment

    def merge(self, other: Tally) -> None:
        """Add the count of another share of the same run."""
        self.reached(other._last)
        for name, variant in other._variants.items():
            self._variants.setdefault(name, self._new()).merge(variant)
        if self._totals is not None:
            self._totals.merge(other._totals)

    @property
    def cells(self) -> int:
        """How many cells have been counted."""
        return sum(sum(variant.cells.values()) for variant in self._variants.values())

    def summary(self, plan: Plan, finished_at: datetime) -> RunSummary:
        """The numbers of the run so far; `partial` while cells of the plan are missing.

        The run finished with the last of its records; `finished_at` is for a run without any. Replayed recordings do
        not tell when it finished.
        """
        missing = max(0, plan.cells_planned - self.cells)
        summary = RunSummary(
            plan.run_id,
            plan.started_at,
            finished_at if self._last is None else max(self._last, plan.started_at),
            plan.config_path,
            plan.config_hash,
            plan.cases_planned,
            [_summary(name, count) for name, count in self._variants.items()],
            self._rollups(),
            status="partial" if missing else "complete",
            cells_total=self.cells,
            cells_missing=missing,
            warnings=[*plan.warnings, *self._doubts(plan)],
            metadata=plan.metadata or UNSET,
        )
        if self._totals is not None:
            self._totals.finish(summary)
        if plan.shard is not None:  # its gate is the whole run's
            summary.shard, summary.gate = str(plan.shard), None
        return summary

    def _doubts(self, plan: Plan) -> Iterator[str]:
        """What the numbers do not show: that nothing was judged, or that a limit had no costs to go by."""
        cells = sum((Counter(count.cells) for count in self._variants.values()), Counter[str]())
        if cells["skip"] and cells["skip"] == cells.total():
            yield "nothing was judged: every cell was skipped"
        if not plan.cells_planned and plan.shard is None:
            yield "nothing was judged: there was no cell to run"
        if plan.run.cost_limit_usd is not None:
            yield from self._uncounted_costs()

    def _uncounted_costs(self) -> Iterator[str]:
        """That the limit of a run's cost did not have all costs to go by. A system without any may well be free."""
        counts = self._variants.values()
        if not any(count.cost.n for count in counts):
            if any(sum(count.cells.values()) > count.cells["error"] for count in counts):
                yield "run.cost_limit_usd limited nothing: no cost was reported, and no price is known"
            return
        for name, count in self._variants.items():
            answers = sum(count.cells.values()) - count.errored
            if count.cost.n and (unknown := answers - count.cost.n) > 0:
                least = "at least " if count.errored else ""  # an errored call may have a cost, too
                some = f"{least}{unknown} of {counted(answers, 'answer')}"
                yield f"{name}: the cost of {some} is unknown, and run.cost_limit_usd does not count it"

    def _rollups(self) -> list[EvaluatorRollup]:
        """Every evaluator of the plan on every variant that has cells: without results it has no rate."""
        counts = {name: count for name, count in self._variants.items() if any(count.cells.values())}
        names = {*self._evaluators, *(name for count in counts.values() for name in count.evaluators)}
        return [
            EvaluatorRollup(
                name, {v: c.rate(name) for v, c in counts.items() if name in c.evaluators or name in self._evaluators}
            )
            for name in sorted(names if counts else ())
        ]


def _summary(name: str, count: VariantCount) -> VariantSummary:
    cases = count.by_case()
    return VariantSummary(
        name=name,
        cases_total=cases.cases,
        cases_passed=cases.passed,
        cases_errored=cases.errored,
        pass_rate=cases.pass_rate,
        avg_latency_ms=count.latency.mean,
        avg_cost_usd=count.cost.mean,
        avg_tokens_input=count.tokens_input.mean,
        avg_tokens_output=count.tokens_output.mean,
        pass_rate_n=cases.judged,
        pass_rate_ci95=count.pass_interval(),
        cells_total=sum(count.cells.values()),
        cells=dict(count.cells),
        latency_n=count.latency.n,
        cost_n=count.cost.n,
        tokens_input_n=count.tokens_input.n,
        tokens_output_n=count.tokens_output.n,
        cost_total_usd=count.cost.total if count.cost.n else None,
        judge_cost_usd=count.judge_cost_usd(),
        trials=_trial_statistics(count.trials(), count.grouped),
        detectable=count.detectable(),
    )


def _trial_statistics(trials: Trials, groups: Mapping[str, str]) -> TrialStatistics | None:
    """pass@k and pass^k over the trials with a verdict, with the same kind of interval as a rate: both are means over
    cases."""
    most = max((judged for _, judged in trials.values()), default=0)
    if most < 2:
        return None
    ks = range(1, most + 1)
    counts = [sum(judged >= k for _, judged in trials.values()) for k in ks]
    at, hat = ([_over_cases(trials, groups, estimate, k) for k in ks] for estimate in (share_at_k, share_hat_k))
    flake_rate, flake_ends = _over_cases(trials, groups, _disagree, 2)
    mixed = sorted(
        (abs(passed / judged - 0.5), case) for case, (passed, judged) in trials.items() if 0 < passed < judged
    )
    named = [case for _, case in mixed[:_MOST_MIXED]]
    return TrialStatistics(
        most,
        len(trials),
        [rate for rate, _ in at],
        [rate for rate, _ in hat],
        counts,
        [ends for _, ends in at],
        [ends for _, ends in hat],
        flake_rate=flake_rate,
        flake_rate_ci95=flake_ends,
        mixed_cases=len(mixed),
        mixed=named,
    )


def _disagree(judged: int, passed: int, _: int) -> float:
    """The chance that two of these trials disagree."""
    return 2 * passed * (judged - passed) / (judged * (judged - 1))


def _over_cases(
    trials: Trials, groups: Mapping[str, str], estimate: Callable[[int, int, int], float], k: int
) -> tuple[float | None, Interval | None]:
    """The mean of an estimate over the cases with k trials."""
    enough = {case: (judged, passed) for case, (passed, judged) in trials.items() if judged >= k}
    # Cases have a handful of different counts, each of which is estimated once.
    known = {counts: estimate(*counts, k) for counts in set(enough.values())}
    if groups:
        units = [groups.get(case, (case,)) for case in enough]
        rate = rate_with_design_effect([known[counts] for counts in enough.values()], units)
    else:
        shares: dict[float, int] = {}
        for counts, number in Counter(enough.values()).items():
            shares[known[counts]] = shares.get(known[counts], 0) + number
        rate = rate_of_counts(shares)
    return rate.rate, rate.ci


def has_only_scores(plan: Plan) -> bool:
    """Whether a plan's suite has only scores, so that its cells neither pass nor fail; see `RunSummary.scored`."""
    return Tally.of(plan).summary(plan, plan.started_at).scored is True


def totals_of(plan: Plan) -> Totals | None:
    """The empty totals of a plan's format and of the plan's gate, if any; None if there are neither.

    Claims of a gate are not part of the totals.
    """
    used, gate = format_of_run(plan), plan.gate
    if gate is not None and gate["kind"] == "claims":
        gate = gate["conditions"]
    its_own = gate is None or gate["kind"] in used.gates
    totals: Totals | None = None
    if used.totals is not None:
        totals = resolve(used.totals)(msgspec.structs.replace(plan, gate=gate if its_own else None))
    if gate is None or its_own:
        return totals
    from evalwright.scoring.gate import GateTotals

    decided = GateTotals(plan, gate)
    return decided if totals is None else GatedTotals(totals, decided)
