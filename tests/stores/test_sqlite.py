"""Runs in SQLite files: what is special about them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.model.trace import Trace
from evalwright.stores.sqlite import Sqlite, sqlite
from evalwright.stores.sqlite.run import SqliteRun
from evalwright.stores.tables.rows import Row
from evalwright.testing import a_case, a_plan, a_result, a_trace
from stores.sqlite_files import fill, rows


@pytest.mark.parametrize(
    ("namespace", "text"),
    [({"project": "p", "branch": "main"}, '{"branch": "main", "project": "p"}'), (None, None)],
    ids=["given", "not given"],
)
def test_every_row_has_the_namespace(tmp_path: Path, namespace: dict[str, str] | None, text: str | None) -> None:
    file = tmp_path / "runs.db"
    fill(Sqlite(file, None, namespace))
    for table in ("runs", "traces", "results", "verdicts", "summaries"):
        assert set(rows(file, f"SELECT namespace FROM {table}")) == {(text,)}


def test_payloads_are_json_that_sqlite_can_ask(tmp_path: Path) -> None:
    fill(Sqlite(tmp_path / "runs.db"))
    query = "SELECT case_id, json_extract(payload, '$.evaluator'), started_at FROM results ORDER BY case_id"
    started = a_result().started_at.isoformat()
    assert rows(tmp_path / "runs.db", query) == [("c0", "says_hello", started), ("c1", "says_hello", started)]


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    fill(Sqlite(tmp_path / "runs.db"))
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(InputError, match=r"runs\.db .*version 2 of its tables"):
        Sqlite(tmp_path / "runs.db").run_ids()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Shopping list, much longer than the head of a database would be\n" * 20)
    with pytest.raises(InputError, match=r"notes\.txt .*not a database"):
        Sqlite(tmp_path / "notes.txt").run_ids()


WRITING = """
import sys
from pathlib import Path
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import *
store = Sqlite(Path(sys.argv[1]))
writer = store.create(a_plan(), [a_case()], {})
for number in range(60):
    writer.append_trace(a_trace(case_id=f"c{number}"))
    writer.append_verdict(a_verdict(case_id=f"c{number}"))
    if number % 3 == 0:
        writer.sync()
writer.close()
"""


@pytest.mark.slow("starts interpreters")
def test_processes_that_write_different_runs_do_not_hinder_each_other(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"

    def write(_: int) -> str:
        done = subprocess.run([sys.executable, "-c", WRITING, str(file)], capture_output=True, text=True, check=False)
        return done.stderr

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(write, range(3))) == ["", "", ""]
    store = Sqlite(file)
    base = a_plan().run_id
    assert sorted(store.run_ids()) == [base, f"{base}-2", f"{base}-3"]
    for run_id in store.run_ids():
        reader = store.read(run_id)
        assert [trace.case_id for trace in reader.traces(Trace)] == [f"c{n}" for n in range(60)]
        reader.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.db"]


def test_a_run_that_is_judged_again_and_one_that_is_written_do_not_hinder_each_other(tmp_path: Path) -> None:
    store = Sqlite(tmp_path / "runs.db")
    fill(store, "old")
    with (
        closing(store.create(a_plan(run_id="new"), [a_case()], {})) as writer,
        closing(SqliteRun(store.path, "old")) as judged,
        ThreadPoolExecutor(1) as pool,
    ):
        writer.append_trace(a_trace())
        writing = []

        def results() -> Iterator[Row]:
            writing.append(pool.submit(writer.sync))
            wait(writing, 0.1)
            return iter(())

        judged.replace_judgements(results, lambda: iter(()))
        writing[0].result()
    assert rows(store.path, "SELECT run_id FROM traces ORDER BY seq") == [("old",), ("old",), ("new",)]
    assert rows(store.path, "SELECT count(*) FROM results") == [(0,)]


def test_judgements_that_cannot_be_replaced_stay_and_nobody_has_to_wait(tmp_path: Path) -> None:
    store = Sqlite(tmp_path / "runs.db")
    fill(store, "old")

    def broken() -> Iterator[Row]:
        raise RuntimeError("no verdicts")

    with closing(SqliteRun(store.path, "old")) as judged:
        with pytest.raises(RuntimeError, match="no verdicts"):
            judged.replace_judgements(lambda: iter(()), broken)
        fill(store, "new")
    assert rows(store.path, "SELECT count(*) FROM results WHERE run_id = 'old'") == [(2,)]


def test_a_file_where_its_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot create a run in .*/file is a file, not a folder"):
        Sqlite(tmp_path / "file" / "runs.db").create(a_plan(), [a_case()], {})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "path: the required key 'path' is missing, expected a text"),
        ({"path": 5}, "path: expected a text, found a whole number"),
        ({"path": "x", "namespace": {}}, 'namespace: unknown key; did you mean "run_namespace"'),
        ({"path": "x", "run_namespace": "p"}, "run_namespace: expected a mapping, found a text"),
    ],
)
def test_a_wrong_configuration_is_told(config: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as told:
        sqlite(config, None, Path("runs"))
    assert message in str(told.value)


def test_all_mistakes_of_a_configuration_are_told_at_once() -> None:
    with pytest.raises(InputError) as told:
        sqlite({"paht": "x", "run_namespace": "p"}, None, Path("runs"))
    assert [problem.key for problem in told.value.problems] == ["path", "paht", "run_namespace"]


def test_a_run_that_cannot_be_opened_is_not_locked_by_the_attempt(tmp_path: Path) -> None:
    store = Sqlite(tmp_path / "runs.sqlite")
    with closing(store.create(a_plan(), [a_case()], {})) as writer:
        assert writer.plan is not None
        run_id = writer.plan.run_id
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET payload = '{'")
    for _ in range(2):
        with pytest.raises(InputError, match="not a valid plan"):
            store.open(run_id)
    assert not list(tmp_path.glob(".*.lock"))


def test_syncs_leave_no_file_open(tmp_path: Path, descriptors: Callable[[], dict[str, str]]) -> None:
    writer = Sqlite(tmp_path / "runs.sqlite").create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    writer.sync()
    before = descriptors()
    for attempt in range(2, 6):
        writer.append_trace(a_trace(attempt=attempt))
        writer.sync()
    assert not descriptors().items() - before.items()
    writer.close()
