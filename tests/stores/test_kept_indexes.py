"""An index that is kept goes on with its run, and is made anew where the run is another."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from acceptance.projects import project
from evalwright.model.cell_index import CellSelection, index_of
from evalwright.stores.index import opened_index
from evalwright.stores.index.file import INDEX
from evalwright.stores.index.keeper import IndexKeeper
from evalwright.stores.index.schema import is_named
from evalwright.stores.local_files import LocalFiles
from stores.histories import History, a_run, must_add_up, said


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
            cells = [(cell.case_key, cell.variant, cell.trial) for cell in index.cells()]
            assert [cell.number for cell in index.cells()] == [*range(len(history.attempts))]
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


def test_cells_of_a_run_that_is_being_written_are_found_by_their_names(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.stores.index._PATIENCE", 0)
    history = History(tmp_path, 5)
    plan = history.writer.plan
    with closing(IndexKeeper(history.folder, plan)) as keeper:
        for _ in range(20):
            history.cell()
            keeper.follow()
        with closing(opened_index(history.folder, plan)) as index:
            names = by_names(index)
        keeper.follow(last=True)
        with closing(opened_index(history.folder, plan)) as index:
            assert by_names(index) == names
    assert all(number in found for number, *both in names for found in both)
    history.close()


def by_names(index) -> list[tuple[int, list[int], list[int]]]:
    """Each cell, and those that are found by the name and by the id of its case."""
    cells = list(index.cells())
    assert [index.cell(cell.case_key, cell.variant, cell.trial) for cell in cells] == cells
    return [
        (
            cell.number,
            [found.number for found in index.cells(CellSelection(case=cell.case_key))],
            [found.number for found in index.cells(CellSelection(case=cell.case_id))],
        )
        for cell in cells
    ]


def test_nobody_waits_for_the_index_of_a_run_that_is_being_written(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
    history = History(tmp_path, 5)
    history.cell()
    history.writer.sync()
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it was waited for"))
    with closing(opened_index(history.folder, history.writer.plan)) as index:
        assert len(index) == 1
    monkeypatch.undo()
    history.close()


def test_an_index_that_cannot_be_kept_is_removed_and_the_run_goes_on(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
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
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
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


def test_a_cell_whose_records_come_one_sync_after_the_other_is_one_cell(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
    history = History(tmp_path, 3)
    writer = history.writer
    for append in (writer.append_trace, writer.append_results, writer.append_verdict):
        monkeypatch.setattr(writer, append.__name__, lambda record, append=append: (append(record), writer.sync()))
    for _ in range(30):
        history.cell()
    with closing(sqlite3.connect(history.folder / INDEX)) as connection:
        assert not is_named(connection), "names are sorted at the end: no cell had to be found by its name"
    history.close()
    made = (history.folder / INDEX).read_bytes()
    with closing(opened_index(history.folder, writer.plan)) as index, closing(history.reader()) as reader:
        assert index.superseded() == 30 - len(index) > 0
        must_add_up(index, reader)
    assert said(history, scanned=False) == said(history, scanned=True)
    assert (history.folder / INDEX).read_bytes() == made


def test_new_judgements_come_with_their_index(tmp_path, monkeypatch):
    history = a_run(tmp_path)
    history.indexed()
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
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
    keeper.follow(last=True)
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
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
    made = project(tmp_path, {"a": "x"})
    kept, none = made.run("--out", "one"), made.run("--out", "other", "--no-index")
    with closing(LocalFiles.at(kept)[0].read(kept.name)) as reader, closing(index_of(reader)) as index:
        assert len(index) == 1
    with closing(LocalFiles.at(none)[0].read(none.name)) as reader:
        assert (index_of(reader), (none / INDEX).exists()) == (None, False)
        with closing(reader.index("to_keep")) as index:
            assert len(index) == 1
