"""Runs in SQLite files: what is special about them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.cli.locate import folded_summary
from evalwright.errors import InputError
from evalwright.model.artifact import FileManifest, FilesystemArtifact, FilesystemDiff
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.resumption import resume
from evalwright.run.stored_run import open_run
from evalwright.stores.sqlite import Sqlite, sqlite
from evalwright.testing import a_case, a_plan, a_result, a_summary, a_trace, a_verdict

CELLS = 20
LATER = a_plan().started_at + timedelta(days=1)


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def fill(store: Sqlite, run_id: str = "r", cells: int = 2) -> None:
    writer = store.create(a_plan(run_id=run_id, started_at=LATER), [a_case()], {})
    for number in range(cells):
        writer.append_trace(a_trace(case_id=f"c{number}"))
        writer.append_results([a_result(case_id=f"c{number}")])
        writer.append_verdict(a_verdict(case_id=f"c{number}"))
    writer.save_summary(a_summary())
    writer.close()


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


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A file as the original writes it: no namespace, and none of the tables that are ours."""
    file = tmp_path / "older.db"
    cell = "run_id TEXT, case_id TEXT, variant_name TEXT"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for table, key in (("traces", ""), ("results", ", evaluator TEXT")):
            connection.execute(
                f"CREATE TABLE {table} ({cell}{key}, started_at TEXT, payload TEXT, "
                f"PRIMARY KEY (run_id, case_id, variant_name{', evaluator' if key else ''}))"
            )
        connection.execute("CREATE TABLE summaries (run_id TEXT PRIMARY KEY, started_at TEXT, payload TEXT)")
        for i in range(2):
            key = ("old", f"c{i}", "v1")
            trace, result = (msgspec.to_builtins(record(case_id=f"c{i}")) for record in (a_trace, a_result))
            row = (*key, trace["started_at"], json.dumps(trace))
            connection.execute("INSERT INTO traces VALUES (?, ?, ?, ?, ?)", row)
            row = (*key, "says_hello", result["started_at"], json.dumps(result))
            connection.execute("INSERT INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
    return file


def test_an_older_file_is_altered_when_it_is_opened_and_its_rows_have_no_namespace(older: Path) -> None:
    store = Sqlite(older, None, {"project": "p"})
    assert store.run_ids() == ["old"]
    reader = store.read("old")
    assert [trace.case_id for trace in reader.traces(Trace)] == ["c0", "c1"]
    assert [result.case_id for result in reader.results(EvaluationResult)] == ["c0", "c1"]
    assert (reader.plan, reader.damage) == (None, [])
    reader.close()
    assert rows(older, "SELECT run_id, namespace FROM traces") == [("old", None)] * 2
    assert rows(older, "SELECT name FROM sqlite_master WHERE name LIKE 'older%'") == []


def test_a_run_of_another_program_can_be_shown(older: Path) -> None:
    reader, plan = open_run(older)
    with closing(reader):
        assert (plan.run_id, plan.cases_total, [v.name for v in plan.variants]) == ("old", 2, ["v1"])
        assert [(e.name, e.type) for e in plan.evaluators] == [("says_hello", "contains_text")]
        assert [v.cases_passed for v in folded_summary(reader, plan).variants] == [2]


def test_an_older_file_takes_new_runs(older: Path) -> None:
    store = Sqlite(older, None, {"project": "p"})
    fill(store, "new")
    assert store.run_ids() == ["old", "new"]
    assert (
        rows(older, "SELECT run_id, namespace FROM traces WHERE namespace NOTNULL") == [("new", '{"project": "p"}')] * 2
    )


def test_a_run_without_a_plan_can_be_judged_again_but_not_resumed(older: Path) -> None:
    with closing(Sqlite(older).open("old")) as writer:
        assert writer.plan is None
    with pytest.raises(InputError, match="was not written by evalwright"):
        resume(older)


def test_nothing_of_a_database_of_another_program_is_changed_by_writing_or_looking(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE users (name TEXT)")
    before = file.read_bytes()
    for use in (lambda: Sqlite(file).create(a_plan(), [a_case()], {}), Sqlite(file).run_ids):
        with pytest.raises(InputError, match=r"shop\.db .*another program, with the tables 'users'"):
            use()
    assert file.read_bytes() == before


def test_the_log_that_a_killed_writer_of_another_program_left_stays_where_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "living.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE users (name TEXT)")
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"living.db{end}", tmp_path / f"shop.db{end}")
    before = [(tmp_path / f"shop.db{end}").read_bytes() for end in ("", "-wal")]
    with pytest.raises(InputError, match="with the tables 'users'"):
        Sqlite(tmp_path / "shop.db").run_ids()
    assert [(tmp_path / f"shop.db{end}").read_bytes() for end in ("", "-wal")] == before


def test_the_tables_of_another_program_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE results (winner TEXT)")
    with pytest.raises(InputError, match=r"shop\.db .*'results' of another program"):
        Sqlite(file).create(a_plan(), [a_case()], {})
    assert rows(file, "SELECT name FROM sqlite_master") == [("results",)]


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


def test_a_payload_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    fill(Sqlite(file), cells=3)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE traces SET payload = NULL WHERE case_id = 'c0'")
        connection.execute("UPDATE traces SET payload = x'ff00' WHERE case_id = 'c1'")
    reader = Sqlite(file).read("r")
    assert [trace.case_id for trace in reader.traces(Trace)] == ["c2"]
    assert [note[:10] for note in reader.damage] == ["traces:1: ", "traces:2: "]
    reader.close()


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A whole file, without a log beside it."""
    folder = tmp_path_factory.mktemp("intact")
    fill(Sqlite(folder / "runs.db"), cells=CELLS)
    return (folder / "runs.db").read_bytes()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run whose cells are all in the log of a process that is gone."""
    folder = tmp_path_factory.mktemp("killed")
    writer = Sqlite(folder / "runs.db").create(a_plan(run_id="r"), [a_case()], {})
    for number in range(CELLS):
        writer.append_trace(a_trace(case_id=f"c{number}"))
        writer.append_results([a_result(case_id=f"c{number}")])
        writer.append_verdict(a_verdict(case_id=f"c{number}"))
        writer.sync()
    yield folder / "runs.db"
    writer.close()


@given(lost=st.integers(0, 150_000))
@settings(suppress_health_check=list(HealthCheck))
def test_a_torn_log_costs_the_last_cells_whole(killed: Path, lost: int) -> None:
    folder = Path(tempfile.mkdtemp())
    for ending in ("", "-wal"):
        shutil.copy(f"{killed}{ending}", folder / f"runs.db{ending}")
    log = folder / "runs.db-wal"
    kept = max(60_000, log.stat().st_size - lost)
    with log.open("r+b") as file:
        file.truncate(kept)
    writer = Sqlite(folder / "runs.db").open("r")
    cells = [trace.case_id for trace in writer.traces(Trace)]
    assert cells == [f"c{number}" for number in range(len(cells))]
    assert [verdict.case_id for verdict in writer.verdicts(CaseVerdict)] == cells
    assert [result.case_id for result in writer.results(EvaluationResult)] == cells
    assert writer.damage == []
    writer.close()
    shutil.rmtree(folder)


@given(st.lists(st.tuples(st.floats(0, 0.9999), st.integers(0, 255)), min_size=1, max_size=40))
@settings(suppress_health_check=list(HealthCheck))
def test_a_damaged_file_ends_in_a_named_error_or_is_read(intact: bytes, flips: list[tuple[float, int]]) -> None:
    data = bytearray(intact)
    for place, byte in flips:
        data[int(place * len(data))] = byte
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.db"
        file.write_bytes(data)
        read: list[object] = []
        with suppress(InputError):
            for run_id in Sqlite(file).run_ids():
                with closing(Sqlite(file).read(run_id)) as reader:
                    read += [*reader.cases(), *reader.traces(Trace), *reader.verdicts(CaseVerdict), reader.summary()]
        assert len(read) <= 2 * CELLS + 2


FULL = """
import resource, sys
from pathlib import Path
from evalwright.cli.locate import folded_summary
from evalwright.errors import StorageError
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import *
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
limit(9000)
try:
    Sqlite(Path(sys.argv[1] + ".new")).create(a_plan(run_id="r"), [a_case()], {})
except StorageError as error:
    print(error)
limit(resource.RLIM_INFINITY)
Sqlite(Path(sys.argv[1])).create(a_plan(run_id="r"), [a_case()], {}).close()
limit(100)
try:
    Sqlite(Path(sys.argv[1])).run_ids()
except StorageError as error:
    print(error)
limit(400_000)
writer = Sqlite(Path(sys.argv[1])).open("r")
written = 0
try:
    while True:
        writer.append_trace(a_trace(case_id=f"c{written}"))
        writer.append_verdict(a_verdict(case_id=f"c{written}"))
        writer.sync()
        written += 1
except StorageError as error:
    print(written, error)
try:
    writer.append_trace(a_trace(case_id="late"))
except StorageError as error:
    print("again")
"""


def test_a_full_disk_ends_the_run_and_keeps_what_was_synced(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    done = subprocess.run([sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, check=True)
    new, reading, first, second = done.stdout.splitlines()
    # What failed is told, and not that the transaction is over; a disk that fails is no fault of the file's content.
    assert new == f"cannot write {file}.new: disk I/O error"
    assert reading == f"cannot read {file}: disk I/O error"
    assert f"cannot write {file}" in first
    assert second == "again"
    reader = Sqlite(file).read("r")
    assert [trace.case_id for trace in reader.traces(Trace)] == [f"c{n}" for n in range(int(first.split()[0]))]
    reader.close()


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


def test_a_file_where_its_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot create a run in .*/file is a file, not a folder"):
        Sqlite(tmp_path / "file" / "runs.db").create(a_plan(), [a_case()], {})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "missing required field `path`"),
        ({"path": 5}, "path: expected `str`, got `int`"),
        ({"path": "x", "namespace": {}}, 'namespace: unknown key; did you mean "run_namespace"'),
        ({"path": "x", "run_namespace": "p"}, "run_namespace: expected `object | null`, got `str`"),
    ],
)
def test_a_wrong_configuration_is_told(config: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as told:
        sqlite(config, None, Path("runs"))
    assert message in str(told.value)


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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files")
def test_syncs_leave_no_file_open(tmp_path: Path) -> None:
    writer = Sqlite(tmp_path / "runs.sqlite").create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    writer.sync()
    before = len([*Path("/proc/self/fd").iterdir()])
    for attempt in range(2, 6):
        writer.append_trace(a_trace(attempt=attempt))
        writer.sync()
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    writer.close()


def test_a_damaged_artifact_of_another_program_is_named_and_those_after_it_are_laid_out(older: Path) -> None:
    with closing(Sqlite(older).open("old")) as writer:
        for case in ("c0", "c1"):
            writer.save_artifact(
                FilesystemArtifact(
                    case, "v1", "copy", FileManifest(), FileManifest(), FilesystemDiff(), f"artifacts/{case}/v1"
                )
            )
        shutil.rmtree(writer.artifacts)
    with closing(sqlite3.connect(older, isolation_level=None)) as connection:
        connection.execute("UPDATE artifacts SET payload = '[' WHERE case_id = 'c0'")
    with closing(Sqlite(older).open("old")) as writer:
        assert [str(damage).partition(":")[0] for damage in writer.damage] == ["artifacts"]
        assert [file.parent.parent.name for file in writer.artifacts.rglob("artifact.json")] == ["c1"]


def test_the_name_of_a_run_of_another_program_is_its_id_without_its_date(older: Path) -> None:
    with closing(sqlite3.connect(older, isolation_level=None)) as connection:
        for table in ("traces", "results"):
            connection.execute(f"UPDATE {table} SET run_id = '2026-01-02T03-04-05_shop'")
    reader, plan = open_run(older)
    reader.close()
    assert plan.name == "shop"
