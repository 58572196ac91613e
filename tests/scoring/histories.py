"""Stored runs with all that can happen to one: retries, rows written again, missing rows, any order of writing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import strategies as st

from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plan, RunSettings, Variant
from evalwright.model.result import EvaluationResult, Status
from evalwright.model.trace import Metrics, Trace, TraceError
from evalwright.scoring.tally import Tally
from evalwright.testing import MemoryRun, MemoryStore, a_plan, a_result, a_trace, a_verdict

EVALUATORS = ("e0", "e1", "e2")
VARIANTS = ("v0", "v1")
MOMENT = datetime(2026, 1, 2, tzinfo=UTC)

Record = Trace | EvaluationResult


def plan(**fields: Any) -> Plan:
    defaults: dict[str, Any] = {
        "cases_total": 4,
        "variants": [Variant(name, "replay") for name in VARIANTS],
        "evaluators": [EvaluatorSpec(name, "contains_text") for name in EVALUATORS],
    }
    return a_plan(**{**defaults, **fields})


def plan_of_one(**fields: Any) -> Plan:
    """The same with the first variant only."""
    return plan(variants=[Variant(VARIANTS[0], "replay")], **fields)


def stored(records: list[Record], of: Plan) -> MemoryRun:
    run = MemoryStore().create(of, [], {})
    for record in records:
        if isinstance(record, Trace):
            run.append_trace(record)
        else:
            run.append_results([record])
    return run


traces = st.builds(
    a_trace,
    case_id=st.sampled_from(["c0", "c1", "c2"]),
    occurrence=st.sampled_from([msgspec.UNSET, msgspec.UNSET, 2]),
    variant_name=st.sampled_from(VARIANTS),
    trial=st.integers(0, 2),
    attempt=st.sampled_from([1, 1, 1, 2, 3]),
    latency_ms=st.none() | st.integers(0, 5000),
    metrics=st.builds(
        Metrics,
        st.none() | st.integers(0, 900),
        st.none() | st.integers(0, 900),
        cost_usd=st.none() | st.integers(0, 64).map(lambda n: n / 64),
    ),
    error=st.none() | st.none() | st.just(TraceError("timeout", "no answer")),
)
"""Costs and scores are multiples of 1/64, so that sums do not depend on the order."""

words = st.fixed_dictionaries(
    {
        "passed": st.booleans(),
        "score": st.none() | st.sampled_from([0.0, 0.25, 1.0]),
        "skipped": st.sampled_from([False, False, False, True]),
        "error": st.none() | st.none() | st.none() | st.just(TraceError("ValueError", "no")),
    }
)


@st.composite
def judged(draw: st.DrawFn) -> list[Record]:
    """A trace with some rows, a few of them written twice."""
    trace = draw(traces)
    names = draw(st.lists(st.sampled_from(EVALUATORS), max_size=4) | st.just(list(EVALUATORS)))
    rows = [row_of(trace, name, **draw(words)) for name in names]
    return [trace, *rows]


def row_of(trace: Trace, evaluator: str, **fields: Any) -> EvaluationResult:
    return a_result(
        case_id=trace.case_id,
        occurrence=trace.occurrence,
        variant_name=trace.variant_name,
        trial=trace.trial,
        attempt=trace.attempt,
        evaluator=evaluator,
        **fields,
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Records of several attempts in any order."""
    records = [record for part in draw(st.lists(judged(), max_size=12)) for record in part]
    return draw(st.permutations(records)) if draw(st.booleans()) else records


@st.composite
def tidy_runs(draw: st.DrawFn) -> list[Record]:
    """Each cell once, all rows there, results written in another order than traces."""
    by_name = {(t.case_key, t.variant_name, t.trial): t for t in draw(st.lists(traces, max_size=15))}
    cells = list(by_name.values())
    for trace in cells:
        trace.attempt = 1
    late = draw(st.permutations(cells))
    return [*cells, *(row_of(trace, name, **draw(words)) for trace in late for name in EVALUATORS)]


plans = st.builds(
    lambda criteria, trials, baseline: plan(
        pass_criteria=criteria, run=RunSettings(trials=trials, baseline_variant=baseline)
    ),
    st.builds(
        PassCriteria,
        st.lists(st.sampled_from(EVALUATORS), max_size=2),
        st.lists(st.sampled_from(EVALUATORS), max_size=2),
        st.sampled_from(["error", "evaluate", "count"]),
        st.sampled_from(["error", "fail"]),
    ),
    st.sampled_from([1, 3]),
    st.sampled_from([None, "v0"]),
)


def counted(cells: list[tuple[str, str, Status]], of: Plan, **trace: Any) -> Tally:
    """A tally of cells given as case, variant and status."""
    tally = Tally.of(of)
    for case, variant, status in cells:
        found = a_trace(case_id=case, variant_name=variant, **trace)
        tally.add(found, [], a_verdict(case_id=case, variant_name=variant, status=status))
    return tally


def repeated(case: str, *statuses: Status, variant: str = "v0") -> list[tuple[str, str, Status]]:
    """The trials of a case, for `counted`."""
    return [(case, variant, status) for status in statuses]
