"""SQLite files that evalh wrote, and those that have nothing to do with runs."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from evalwright.errors import InputError
from evalwright.model.artifact import FileManifest, FilesystemArtifact, FilesystemDiff
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.outcomes import folded_summary
from evalwright.run.resumption import resume
from evalwright.run.stored_run import open_run
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_result, a_trace
from stores.sqlite_files import fill, rows


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
