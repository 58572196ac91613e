"""What the cells of an index took and cost together, where it cannot be kept while records come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from math import inf
from pathlib import Path

from evalwright.model.cell_index import CellIndex, CellSum, index_of
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.trace import Metrics
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict

MOMENT = a_trace().finished_at
HOUR = timedelta(hours=1)


@contextmanager
def indexed(folder: Path, *times: list[dict[str, object]]) -> Iterator[CellIndex]:
    """The index of a run of two cases to which these traces were added, each time after the index was brought up."""
    run_id = a_plan().run_id
    plan = a_plan(evaluators=[EvaluatorSpec("says_hello", "contains_text")], cases_total=2)
    LocalFiles(folder).create(plan, [a_case(id=name) for name in "ab"], {}).close()
    for traces in times:
        with closing(LocalFiles(folder).open(run_id)) as writer:
            for trace in traces:
                writer.append_trace(a_trace(case_index="ab".index(str(trace["case_id"])), **trace))
        with closing(LocalFiles(folder).read(run_id)) as reader, closing(reader.index("to_keep")):
            pass
    with closing(LocalFiles(folder).read(run_id)) as reader, closing(index_of(reader, "always")) as index:
        yield index


def test_the_last_end_is_that_of_a_cell_that_counts(tmp_path: Path) -> None:
    first = [{"case_id": "a", "finished_at": MOMENT + 2 * HOUR}, {"case_id": "b", "finished_at": MOMENT}]
    again = [{"case_id": "a", "finished_at": MOMENT + HOUR, "attempt": 2, "latency_ms": 5}]  # the clock was put back
    with indexed(tmp_path, first, again) as index:
        sums = index.sums()
        assert (sums.finished_at, sums.latency_ms) == (MOMENT + HOUR, CellSum(2, 5.0))
        assert (sums.tokens_in, sums.tokens_out) == (CellSum(0, 0.0), CellSum(0, 0.0))


def test_a_later_end_is_known_again(tmp_path: Path) -> None:
    first = [{"case_id": "a", "finished_at": MOMENT + 2 * HOUR}]
    again = [{"case_id": "a", "finished_at": MOMENT, "attempt": 2}]
    last = [{"case_id": "b", "finished_at": MOMENT + HOUR}]
    with indexed(tmp_path, first, again, last) as index:
        assert index.sums().finished_at == MOMENT + HOUR


def test_costs_beyond_the_range_of_numbers_are_infinite(tmp_path: Path) -> None:
    metrics = Metrics(3, 4, cost_usd=1e308)
    with indexed(tmp_path, [{"case_id": name, "metrics": metrics, "latency_ms": 2} for name in "ab"]) as index:
        sums = index.sums()
        assert (sums.cost_usd, sums.spent_usd) == (CellSum(2, inf), inf)
        assert (sums.latency_ms, sums.tokens_in, sums.tokens_out) == (CellSum(2, 4), CellSum(2, 6), CellSum(2, 8))
        everything = [count.alike for count in index.counts()]
        assert index.total("cost_usd", everything) == CellSum(2, inf)


def test_what_was_spent_on_an_attempt_before_is_not_what_a_cell_cost(tmp_path: Path) -> None:
    metrics = Metrics(cost_usd=1e308)
    first, again = {"case_id": "a", "metrics": metrics}, {"case_id": "a", "metrics": metrics, "attempt": 2}
    with indexed(tmp_path, [first], [again]) as index:
        assert (index.sums().cost_usd, index.sums().spent_usd) == (CellSum(1, 1e308), inf)


def test_a_cell_ends_with_the_last_of_its_results_also_where_those_are_read_before_its_trace(tmp_path: Path) -> None:
    """Files are read side by side, by shares of their length: behind one long trace, results are far ahead."""
    plan = a_plan(cases_total=3)
    with closing(LocalFiles(tmp_path).create(plan, [a_case(id=name) for name in "abc"], {})) as writer:
        for place, name in enumerate("abc"):
            text = "x" * 5_000_000 if place == 0 else ""
            writer.append_trace(a_trace(case_id=name, case_index=place, input=text, finished_at=MOMENT))
        for place, name in enumerate("abc"):
            ends = {"first": MOMENT + place * HOUR, "second": MOMENT}
            writer.append_results([a_result(case_id=name, evaluator=one, finished_at=end) for one, end in ends.items()])
            writer.append_verdict(a_verdict(case_id=name, case_index=place))
    with (
        closing(LocalFiles(tmp_path).read(writer.folder.name)) as reader,
        closing(index_of(reader, "always")) as index,
    ):
        assert [entry.finished_at for entry in index.cells()] == [MOMENT + place * HOUR for place in range(3)]
        assert [len(index.records(entry).results) for entry in index.cells()] == [2, 2, 2]
