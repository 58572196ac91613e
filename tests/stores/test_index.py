"""A run index says what a scan of the records says, whatever happened to the run and to the index."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from math import fsum
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acceptance.projects import project
from evalwright.model.cell_index import CellSelection, index_of
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import CaseVerdict
from evalwright.model.trace import Trace
from evalwright.reports.cells import Choice, chosen_cells
from evalwright.run.stored_run import open_run
from evalwright.stores.index import opened_index, reading
from evalwright.stores.index.file import INDEX
from evalwright.stores.index.keeper import IndexKeeper
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from stores.histories import History, Scanned, TableHistory, must_agree, said
from stores.stores import Kept

STEPS = (*["cell"] * 12, *["indexed"] * 3, "reopened", "judged_again", "meddled")
HARM = ("damaged", "torn")


@pytest.mark.slow("renders three reports of many histories, twice each")
@example(571052975, ["indexed", *["cell"] * 7], ["damaged", "damaged"])  # a date of a trace that is none any more
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from(STEPS), max_size=40), st.lists(st.sampled_from(HARM), max_size=2)
)
def test_an_index_says_what_a_scan_says(tmp_path_factory, seed, steps, harm):
    for place, what in enumerate(harm):
        steps.insert(seed % (len(steps) + 1) - place, what)
    folder = tmp_path_factory.mktemp("run")
    must_agree(History(folder, seed), steps)
    shutil.rmtree(folder)


@pytest.mark.parametrize("share", [None, 2_000])
def test_an_index_says_what_a_scan_says_of_a_run_that_has_seen_it_all(tmp_path, monkeypatch, share):
    if share is not None:  # bytes that are read at a time, and cells that may wait for the rest of their records
        monkeypatch.setattr("evalwright.stores.index.sources._SHARE", share)
        monkeypatch.setattr("evalwright.stores.index.follow._WAITING", 3)
    steps = ["cell"] * 9 + ["indexed", "reopened", "cell", "meddled", "cell", "indexed", "judged_again", "cell", "cell"]
    must_agree(History(tmp_path, 3), steps)


OF_A_DATABASE = given(
    st.integers(0, 2**32), st.lists(st.sampled_from((*STEPS, "repeated")), max_size=40), st.booleans()
)


def database_must_agree(kind: str, folder: Path, seed: int, steps: list[str], harm: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        must_agree(TableHistory(Kept(kind, folder), seed), [*steps, "damaged"] if harm else steps, reports=False)
    shutil.rmtree(folder)


@pytest.mark.slow("reads many histories, four times each")
@OF_A_DATABASE
def test_an_index_of_a_sqlite_run_says_what_a_scan_says(tmp_path_factory, seed, steps, harm):
    database_must_agree("sqlite", tmp_path_factory.mktemp("run"), seed, steps, harm)


@pytest.mark.slow("reads a dozen histories, four times each")
@settings(max_examples=12)  # a history of forty steps asks the server four hundred times
@OF_A_DATABASE
def test_an_index_of_a_postgres_run_says_what_a_scan_says(tmp_path_factory, seed, steps, harm):
    database_must_agree("postgres", tmp_path_factory.mktemp("run"), seed, steps, harm)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_index_of_a_database_says_what_a_scan_says_of_a_run_that_has_seen_it_all(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    steps = ["cell"] * 9 + ["indexed", "reopened", "cell", "meddled", "cell", "indexed", "judged_again", "indexed"]
    history = TableHistory(Kept(kind, tmp_path), 3)
    must_agree(history, [*steps, "repeated", "cell"], reports=False)
    assert list(tmp_path.rglob(INDEX))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_results_that_were_judged_anew_have_numbers_that_no_row_had_before(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    history = TableHistory(Kept(kind, tmp_path), 3)
    for _ in range(9):
        history.cell()
    history.indexed()
    before = history.kept.query("SELECT seq, case_id FROM results WHERE run_id = ?", history.writer.plan.run_id)
    history.judged_again()
    after = history.kept.query("SELECT seq, case_id FROM results WHERE run_id = ?", history.writer.plan.run_id)
    assert min(after)[0] > max(before)[0]
    assert said(history, scanned=False) == said(history, scanned=True)
    history.close()


def a_run(folder: Path, cells: int = 40) -> History:
    history = History(folder, 7)
    for _ in range(cells):
        history.cell()
    history.writer.close()
    return history


def test_counts_pages_and_orders_are_those_of_the_cells(tmp_path):
    history = a_run(tmp_path)
    reader, plan = open_run(history.folder)
    with closing(reader), closing(index_of(reader, small=True)) as index:
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
            written = [one.verdict for one in map(index.records, found) if one.verdict is not None]
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
    with closing(reader), closing(index_of(reader, small=True)) as index:
        for variant in plan.variants:
            cells = [entry for entry in index.cells() if entry.variant == variant.name]
            found = [row for block in index.measured(variant.name) for row in zip(*block, strict=True)]
            assert found == [
                (e.case_key, e.group, e.latency_ms, e.cost_usd, e.tokens_in, e.tokens_out, e.kind) for e in cells
            ]


def must_add_up(index, reader) -> None:
    """The sums that an index keeps are those of its cells, whatever was replaced."""
    cells = list(index.cells())
    found = index.sums()
    for name in ("latency_ms", "cost_usd", "tokens_in", "tokens_out"):
        values = [value for cell in cells if (value := getattr(cell, name)) is not None]
        assert getattr(found, name) == (len(values), fsum(values))
    assert found.finished_at == max(cell.finished_at for cell in cells)
    assert found.grouped == sum(cell.group is not None for cell in cells)
    assert found.measured == sum(cell.alike is None for cell in cells)
    assert found.spent_usd == fsum(trace.metrics.cost_usd or 0 for trace in reader.traces(Trace))


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


def test_an_index_goes_on_where_it_ended_and_is_made_anew_where_the_run_is_another(tmp_path):
    history = a_run(tmp_path)
    history.indexed()
    with (history.folder / INDEX).open("rb") as held:  # while it is open, no new file gets its number
        made = os.fstat(held.fileno()).st_ino
        history.reopened()
        history.cell()
        history.indexed()
        assert (history.folder / INDEX).stat().st_ino == made
        history.judged_again()
        history.indexed()
        assert (history.folder / INDEX).stat().st_ino != made
    history.writer.close()


@pytest.mark.parametrize("longer", [True, False])
def test_an_index_of_records_that_were_cut_and_grew_again_is_made_anew(tmp_path, longer):
    history = a_run(tmp_path, cells=20)
    files = [history.folder / f"{name}.jsonl" for name in ("traces", "results", "verdicts")]
    sizes, attempts = [file.stat().st_size for file in files], dict(history.attempts)
    history.reopened()
    for _ in range(20):
        history.cell()
    history.close()
    history.indexed()
    for file, size in zip(files, sizes, strict=True):
        os.truncate(file, size)
    history.attempts = attempts
    history.reopened()
    for _ in range(40 if longer else 5):
        history.cell()
    history.close()
    assert said(history, scanned=False) == said(history, scanned=True)


def test_an_index_of_records_that_were_replaced_by_others_of_their_size_is_made_anew(tmp_path):
    history = a_run(tmp_path)
    history.indexed()
    file = history.folder / "verdicts.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"pass"', b'"fail"', 3))  # the end is as it was
    os.utime(file, ns=(1, 1))
    assert said(history, scanned=False) == said(history, scanned=True)


def test_cells_of_a_run_without_a_plan_are_numbered_as_they_come(tmp_path):
    """As of other programs, which leave none."""
    history = a_run(tmp_path, cells=4)
    seen = []
    for _ in range(3):
        with closing(opened_index(history.folder, None)) as index:
            cells = [(one.case_key, one.variant, one.trial) for one in index.cells()]
            assert [one.number for one in index.cells()] == [*range(len(history.attempts))]
            assert cells[: len(seen)] == seen
            seen = cells
        history.reopened()
        for _ in range(4):
            history.cell()
        history.writer.close()
    assert len(seen) > 4


def test_the_index_of_a_run_that_is_being_written_is_read_if_it_is_close_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.stores.index._PATIENCE", 0)
    history = History(tmp_path, 5)
    plan = history.writer.plan
    with closing(IndexKeeper(history.folder, plan)) as keeper, closing(IndexKeeper(history.folder, plan)) as late:
        for _ in range(10):
            history.cell()
        keeper.follow()
        kept = len(history.attempts)
        while len(history.attempts) == kept:
            history.cell()
        late.follow()  # the first one has it
        with closing(opened_index(history.folder, plan)) as index:
            assert len(index) == kept
        monkeypatch.setattr("evalwright.stores.index.sources._BEHIND", 0)
        assert opened_index(history.folder, plan) is None
    assert said(history, scanned=False) == said(history, scanned=True)
    history.close()


def test_an_index_that_cannot_be_kept_is_removed_and_the_run_goes_on(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("evalwright.stores.local_files.run.INDEXED_FROM", 0)
    history = History(tmp_path, 5)
    history.cell()
    history.writer.sync()
    assert (history.folder / INDEX).exists()
    traces = history.folder / "traces.jsonl"
    traces.rename(tmp_path / "aside")
    traces.mkdir()
    for _ in range(5):
        history.cell()
        history.writer.sync()
    assert ("no index is kept of this run" in caplog.text, (history.folder / INDEX).exists()) == (True, False)
    traces.rmdir()
    (tmp_path / "aside").rename(traces)
    history.close()
    assert said(history, scanned=False) == said(history, scanned=True)


def test_a_run_that_keeps_its_index_has_all_of_it_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.stores.local_files.run.INDEXED_FROM", 0)
    history = History(tmp_path, 5)
    for number in range(12):
        history.cell()
        if number < 3:
            history.writer.sync()
    history.close()
    made = (history.folder / INDEX).read_bytes()
    with closing(opened_index(history.folder, history.writer.plan)) as index:
        assert len(index) == len(history.attempts)
    assert (history.folder / INDEX).read_bytes() == made


def test_new_judgements_come_with_their_index(tmp_path, monkeypatch):
    history = a_run(tmp_path)
    history.indexed()
    monkeypatch.setattr("evalwright.stores.local_files.run.INDEXED_FROM", 0)
    history.reopened()
    history.judged_again()
    history.close()
    made = (history.folder / INDEX).read_bytes()
    assert said(history, scanned=False) == said(history, scanned=True)
    assert (history.folder / INDEX).read_bytes() == made


def test_an_index_that_was_kept_while_a_run_was_written_is_used_as_it_is(tmp_path):
    history = History(tmp_path, 5)
    keeper = IndexKeeper(history.folder, history.writer.plan)
    for _ in range(40):
        history.cell()
        keeper.follow()
    history.writer.close()
    keeper.close()
    kept = (history.folder / INDEX).read_bytes()
    with closing(opened_index(history.folder, history.writer.plan)) as index, closing(history.reader()) as reader:
        assert len(index) == len(history.attempts)
        must_add_up(index, reader)
    assert (history.folder / INDEX).read_bytes() == kept
    assert said(history, scanned=False) == said(history, scanned=True)


def test_a_folder_that_cannot_be_written_has_its_index_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    history = a_run(tmp_path)
    (history.folder / "index.lock").mkdir()  # as root may write into every folder
    with closing(opened_index(history.folder, history.writer.plan)) as index:
        assert len(index)
    assert list((tmp_path / "cache").rglob(INDEX))
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with closing(opened_index(history.folder, history.writer.plan)) as index:
        assert len(index)


@pytest.mark.parametrize("name", ["results.jsonl", "verdicts.jsonl"])
def test_records_without_their_trace_leave_the_run_to_a_scan(tmp_path, name):
    history = a_run(tmp_path)
    (history.folder / "traces.jsonl").write_bytes(b"")
    if name == "results.jsonl":
        (history.folder / "verdicts.jsonl").write_bytes(b"")
    assert opened_index(history.folder, history.writer.plan) is None
    assert opened_index(history.folder, history.writer.plan) is None


def test_the_command_makes_an_index_of_any_run_and_says_why_there_is_none(tmp_path):
    history, made = a_run(tmp_path), project(tmp_path, {"a": "x"})
    done = made.evalwright("index", history.folder)
    assert (done.code, (history.folder / INDEX).exists(), "cells in" in done.out) == (0, True, True)
    with (history.folder / "results.jsonl").open("ab") as file:
        file.write(b"{\n")
    refused = made.evalwright("index", history.folder)
    assert (refused.code, "cannot be read" in refused.err) == (2, True)


def test_a_run_may_keep_no_index(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.stores.local_files.run.INDEXED_FROM", 0)
    made = project(tmp_path, {"a": "x"})
    kept, none = made.run("--out", "one"), made.run("--out", "other", "--no-index")
    with closing(LocalFiles.at(kept)[0].read(kept.name)) as reader, closing(index_of(reader)) as index:
        assert len(index) == 1
    with closing(LocalFiles.at(none)[0].read(none.name)) as reader:
        assert (index_of(reader), (none / INDEX).exists()) == (None, False)
        with closing(reader.index(keep=True)) as index:
            assert len(index) == 1


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
    with closing(reader), closing(index_of(reader, small=True)) as index:
        for entry in index.cells():
            trace, results, verdict = index.records(entry)
            assert (entry.latency_ms, trace.latency_ms, trace.case_id) == (2, 2, entry.case_id)
            assert [(row.evaluator, row.case_id) for row in results] == [(f"e{n}", entry.case_id) for n in range(3)]
            assert (verdict.case_id, entry.status) == (entry.case_id, "pass" if entry.case_id == "a" else "fail")
            passed = entry.case_id == "a"
            said = [(one.evaluator, one.status, one.passed, one.score) for one in entry.outcomes]
            assert said == [(f"e{n}", "pass" if passed else "fail", passed, 0.3) for n in range(3)]
        assert [entry.case_id for entry in index.cells(CellSelection(statuses=["fail"]))] == ["b"]
        assert [entry.case_id for entry in index.cells(CellSelection(statuses=["pass"]))] == ["a"]
