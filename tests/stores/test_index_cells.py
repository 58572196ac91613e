"""What an index says of single cells: their records, in pages, orders and columns."""

from __future__ import annotations

from contextlib import closing

from evalwright.model.cell_index import CellSelection, index_of
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import CaseVerdict
from evalwright.reports.cells import Choice, chosen_cells
from evalwright.run.stored_run import open_run
from evalwright.stores.index import reading
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from stores.histories import Scanned, a_run, must_add_up


def test_counts_pages_and_orders_are_those_of_the_cells(tmp_path):
    history = a_run(tmp_path)
    reader, plan = open_run(history.folder)
    with closing(reader), closing(index_of(reader, "always")) as index:
        assert not (history.folder / INDEX).exists(), "a small run keeps none"
        everything = list(index.cells())
        cells = {
            (c.trace.case_key, c.trace.variant_name, c.trace.trial): c
            for c in chosen_cells(Scanned(reader), plan, [], Choice())
        }
        assert len(index) == len(everything) == len(cells) > 10
        assert index.superseded() == sum(history.attempts.values()) - len(index) > 0
        assert [entry.number for entry in everything] == sorted(entry.number for entry in everything)
        for entry in everything:
            cell = cells[entry.case_key, entry.variant, entry.trial]
            trace = cell.trace
            assert index.cell(entry.case_key, entry.variant, entry.trial) == entry
            assert index.records(entry)[:2] == (trace, cell.results)
            assert (entry.error, entry.latency_ms) == (trace.error and trace.error.type, trace.latency_ms)
            measured = trace.metrics.cost_usd, trace.metrics.token_input, trace.metrics.token_output
            assert (entry.cost_usd, entry.tokens_in, entry.tokens_out) == measured
            assert [(o.evaluator, o.passed, o.skipped, o.score, o.cost_usd) for o in entry.outcomes] == [
                (r.evaluator, r.passed, r.skipped, r.score, r.cost_usd) for r in cell.results
            ]
        assert sum(count.n for count in index.counts()) == len(everything)
        for chosen in (
            CellSelection(),
            CellSelection(variant="v2", trial=1),
            CellSelection(failed=True),
            CellSelection(statuses=["fail", None]),
            CellSelection(evaluator="says", outcome="fail"),
            CellSelection(outcome="error"),
            CellSelection(error="timeout"),
            CellSelection(case_contains="B"),
            CellSelection(case="b"),
            CellSelection(singular=True),
        ):
            found = list(index.cells(chosen))
            assert found == [entry for entry in everything if fits(entry, chosen)]
            assert index.count(chosen) == len(found)
            records = list(map(index.records, found))
            assert list(index.chosen_records(chosen)) == records
            written = [one.verdict for one in records if one.verdict is not None]
            assert sorted(index.verdicts(CaseVerdict, chosen), key=str) == sorted(written, key=str)
        by_latency = [e.latency_ms for e in index.cells(order="latency_ms", descending=True, offset=3, limit=9)]
        assert by_latency == sorted((e.latency_ms for e in everything), reverse=True)[3:12]
        must_add_up(index, reader)
        costs = [entry.cost_usd for entry in index.cells(order="cost_usd")]
        assert costs == sorted(costs, key=lambda cost: (cost is None, cost))


def test_what_cells_took_comes_in_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 3)
    history = a_run(tmp_path)
    reader, plan = open_run(history.folder)
    with closing(reader), closing(index_of(reader, "always")) as index:
        for variant in plan.variants:
            cells = [entry for entry in index.cells() if entry.variant == variant.name]
            listed = [row for block in index.measured(variant.name) for row in zip(*block, strict=True)]
            assert listed == [
                (e.case_key, e.group, e.latency_ms, e.cost_usd, e.tokens_in, e.tokens_out, e.kind) for e in cells
            ]


def fits(entry, chosen) -> bool:
    asked = [
        not chosen.singular or entry.alike is None,
        chosen.case in (None, entry.case_id, entry.case_key),
        chosen.variant in (None, entry.variant),
        chosen.trial in (None, entry.trial),
        not chosen.failed or entry.failed,
        chosen.statuses is None or entry.status in chosen.statuses,
        chosen.error in (None, entry.error),
        (chosen.case_contains or "").lower() in entry.case_key.lower(),
    ]
    outcomes = [o for o in entry.outcomes if chosen.evaluator in (None, o.evaluator)]
    if chosen.evaluator or chosen.outcome:
        asked.append(any(chosen.outcome in (None, o.status) for o in outcomes))
    return all(asked)


def test_cells_that_are_through_at_once_need_not_be_looked_at_one_by_one(tmp_path):
    with closing(LocalFiles(tmp_path).create(a_plan(cases_total=3), [a_case(id=name) for name in "abc"], {})) as writer:
        with closing(index_of(writer, "always")) as index:
            assert (index.attempts().usual, list(index.attempts().others)) == (0, [])
        for place, name in enumerate("abc"):
            cell = {"case_id": name, "case_index": place}
            writer.append_trace(a_trace(**cell))
            writer.append_results([a_result(case_id=name)])
            writer.append_verdict(a_verdict(**cell, status="fail" if name == "b" else "pass"))
        writer.sync()
        with closing(index_of(writer, "always")) as index:
            usual, others = index.attempts()
            assert (usual, list(others)) == (3, [(1, 1, False, "fail")])


def test_an_index_of_a_run_without_a_plan_goes_on_behind_the_last_cell(tmp_path):
    with closing(LocalFiles(tmp_path).create(a_plan(cases_total=3), [a_case(id=name) for name in "abc"], {})) as writer:
        for place, name in enumerate("abc"):
            writer.append_trace(a_trace(case_id=name, case_index=place))
            writer.append_verdict(a_verdict(case_id=name, case_index=place))
    (writer.folder / "plan.json").unlink()
    whole = {name: (writer.folder / name).read_bytes() for name in ("traces.jsonl", "verdicts.jsonl")}
    numbers = []
    for lines in (2, 3):
        for name, content in whole.items():
            (writer.folder / name).write_bytes(b"".join(content.splitlines(keepends=True)[:lines]))
        with (
            closing(LocalFiles(tmp_path).read(writer.folder.name)) as reader,
            closing(reader.index("to_keep")) as index,
        ):
            numbers.append({cell.case_id: cell.number for cell in index.cells()})
    assert numbers == [{"a": 0, "b": 1}, {"a": 0, "b": 1, "c": 2}]


def test_records_that_lie_apart_or_were_written_again_are_found(tmp_path):
    plan = a_plan(cases_total=2, evaluators=[EvaluatorSpec(name, "contains_text") for name in ("e0", "e1", "e2")])
    with closing(LocalFiles(tmp_path).create(plan, [a_case(id=name) for name in ("a", "b")], {})) as writer:
        cells = [{"case_id": name, "case_index": place, "variant_name": "v1"} for place, name in enumerate("ab")]
        for latency in (1, 2):  # both of attempt 1
            for cell in cells:
                writer.append_trace(a_trace(**cell, latency_ms=latency))
        for name in ("e0", "e1", "e2"):
            for cell in cells:
                case = cell["case_id"]
                row = a_result(case_id=case, variant_name="v1", evaluator=name, passed=case == "a", score=0.3)
                writer.append_results([row])
        for cell in cells:
            writer.append_verdict(a_verdict(**cell, status="pass" if cell["case_id"] == "a" else "fail"))
    reader, _ = open_run(writer.folder)
    with closing(reader), closing(index_of(reader, "always")) as index:
        for entry in index.cells():
            trace, results, verdict = index.records(entry)
            assert (entry.latency_ms, trace.latency_ms, trace.case_id) == (2, 2, entry.case_id)
            assert [(row.evaluator, row.case_id) for row in results] == [(f"e{n}", entry.case_id) for n in range(3)]
            assert (verdict.case_id, entry.status) == (entry.case_id, "pass" if entry.case_id == "a" else "fail")
            passed = entry.case_id == "a"
            said = [(outcome.evaluator, outcome.status, outcome.passed, outcome.score) for outcome in entry.outcomes]
            assert said == [(f"e{n}", "pass" if passed else "fail", passed, 0.3) for n in range(3)]
        assert [entry.case_id for entry in index.cells(CellSelection(statuses=["fail"]))] == ["b"]
        assert [entry.case_id for entry in index.cells(CellSelection(statuses=["pass"]))] == ["a"]


def test_cells_of_a_folder_without_verdicts_have_none(tmp_path):
    with closing(LocalFiles(tmp_path).create(a_plan(), [a_case()], {})) as writer:
        writer.append_trace(a_trace(case_index=0))
        writer.append_results([a_result()])
    (writer.folder / "verdicts.jsonl").unlink(missing_ok=True)
    with closing(LocalFiles(tmp_path).read(writer.folder.name)) as reader, closing(index_of(reader, "always")) as index:
        assert [records.verdict for records in index.chosen_records()] == [None]
