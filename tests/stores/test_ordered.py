"""The cells of a run in the order of its cases, whatever the order in which they were written."""

from __future__ import annotations

from contextlib import closing

from evalwright.model.trace import Trace
from evalwright.stores.ordered import OrderedCells
from evalwright.testing import MemoryRun, MemoryStore, a_case, a_plan, a_result, a_trace, a_verdict


def written_backwards(*, attempts: int = 1) -> MemoryRun:
    """Two cases, two variants and two trials."""
    run = MemoryStore().create(a_plan(cases_total=2), [a_case(id=name) for name in ("x", "a")], {})
    for attempt in range(1, attempts + 1):
        for trial in (1, 0):
            for place, case in ((1, "a"), (0, "x")):
                for variant in ("v2", "v1"):
                    cell = {"case_id": case, "variant_name": variant, "trial": trial, "attempt": attempt}
                    run.append_results([a_result(**cell, evaluator=name) for name in ("two", "one")])
                    run.append_trace(a_trace(**cell, case_index=place))
                    if attempt == attempts:
                        run.append_verdict(a_verdict(**cell, case_index=place))
    return run


def named(trace: Trace) -> tuple[str, str, int]:
    return trace.case_id, trace.variant_name, trace.trial


def test_cells_are_ordered_by_case_then_variant_as_asked_then_trial() -> None:
    for variants in (["v1", "v2"], ["v2", "v1"]):
        with closing(written_backwards()) as run, OrderedCells(run) as cells:
            found = list(cells.all(variants))
        expected = [(case, variant, trial) for case in ("x", "a") for variant in variants for trial in (0, 1)]
        assert [named(trace) for trace, _, _ in found] == expected
        assert all(
            (row.case_id, row.variant_name, row.trial) == named(trace) for trace, rows, _ in found for row in rows
        )
        assert all(verdict is not None and verdict.case_id == trace.case_id for trace, _, verdict in found)
        assert [len(rows) for _, rows, _ in found] == [2] * 8


def test_the_cells_of_a_variant_and_trial_are_their_newest_attempts() -> None:
    with closing(written_backwards(attempts=2)) as run, OrderedCells(run) as cells:
        found = list(cells.of("v2", 1))
    assert [(*named(trace), trace.attempt) for trace, _ in found] == [("x", "v2", 1, 2), ("a", "v2", 1, 2)]
    assert [[(row.evaluator, row.attempt) for row in rows] for _, rows in found] == [[("two", 2), ("one", 2)]] * 2
