"""Small runs whose cells are given as cases and outcomes."""

from __future__ import annotations

from evalwright.decisions.claims import decided_rates
from evalwright.decisions.comparison import against_baseline
from evalwright.decisions.runs import one_run
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Terms
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.summary import ComparisonReport, GateOutcome
from evalwright.model.trace import Metrics, TraceError
from evalwright.testing import a_trace
from scoring.histories import Record, plan, row_of, stored

PLAN = plan(variants=[Variant("v0", "replay")], evaluators=[EvaluatorSpec("e0", "contains_text")])


def run(
    *outcomes: tuple[str, bool], variant: str = "v0", latency: int | None = 10, cost: float | None = None
) -> list[Record]:
    """Cells of one variant as cases and whether they passed; a case that is given again is a further trial."""
    records: list[Record] = []
    for trial, (case, passed) in enumerate(outcomes):
        earlier = sum(other == case for other, _ in outcomes[:trial])
        trace = a_trace(
            case_id=case,
            variant_name=variant,
            trial=earlier,
            latency_ms=latency,
            metrics=Metrics(cost_usd=cost),
        )
        records += [trace, row_of(trace, "e0", passed=passed)]
    return records


def scored(*scores: float, variant: str = "v0") -> list[Record]:
    """A case for each of these scores."""
    records = run(*((f"c{i}", True) for i in range(len(scores))), variant=variant)
    for row, score in zip(records[1::2], scores, strict=True):
        row.score = score  # type: ignore[union-attr]
    return records


def against(cells: dict[str, dict[str, str]], variants: tuple[str, ...] = ("v0", "v1")) -> ComparisonReport:
    """Variants against v0: by variant and case `1` for a trial that passed, `0` failed, `e` an error."""
    of = plan(
        variants=[Variant(name, "replay") for name in variants], evaluators=[EvaluatorSpec("e0", "contains_text")]
    )
    records: list[Record] = []
    for variant, cases in cells.items():
        for case, outcomes in cases.items():
            for trial, outcome in enumerate(outcomes):
                error = TraceError("timeout", "") if outcome == "e" else None
                trace = a_trace(case_id=case, variant_name=variant, trial=trial, error=error)
                records += [trace] if error else [trace, row_of(trace, "e0", passed=outcome == "1")]
    baseline = against_baseline(one_run(stored(records, of), of, Terms()), "v0")
    assert baseline is not None
    return baseline


def at_least(least: float, rule: str, passed: int, of: int) -> GateOutcome:
    """The gate on a pass rate of `least`, by a run in which `passed` of `of` cases passed."""
    claim = {"at_least": least, "metric": "pass_rate", "alpha": 0.05, "on_undecided": "fail", "group": None}
    claim["rule"] = rule
    records = run(*((f"c{i}", i < passed) for i in range(of)))
    return decided_rates(claim, one_run(stored(records, PLAN), PLAN, Terms()))


def of_passes(*passed: int) -> SideCounts:
    """A case for each of these, with one trial: whether it passed."""
    return SideCounts("v", passes={f"c{i}": CaseTotal(float(value), 1) for i, value in enumerate(passed)})
