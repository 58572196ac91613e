"""Runs that evalh keeps in a SQLite file: records only, without cases, evaluators and folders of artifacts."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalwright.audit.audit import audit_run
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume

SUITE = """\
eval: {name: old}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: s, adapter: replay}]
evaluators:
- {name: says, type: contains_text}
- {name: kept, type: git_diff, config: {must_not_modify_files: [gone.txt]}}
output: [{type: sqlite, path: runs.sqlite}]
"""
CASES = """\
cases:
- {id: a, input: {}, expected: {answer_should_include: [Paris]}}
- {id: b, input: {}, expected: {answer_should_include: [Rome]}}
"""
TABLES = """\
CREATE TABLE traces (run_id TEXT NOT NULL, case_id TEXT NOT NULL, variant_name TEXT NOT NULL, started_at TEXT NOT NULL,
  namespace TEXT, cell_id TEXT, error_type TEXT, payload TEXT NOT NULL, PRIMARY KEY (run_id, case_id, variant_name));
CREATE TABLE results (run_id TEXT NOT NULL, case_id TEXT NOT NULL, variant_name TEXT NOT NULL, evaluator TEXT NOT NULL,
  started_at TEXT NOT NULL, namespace TEXT, payload TEXT NOT NULL,
  PRIMARY KEY (run_id, case_id, variant_name, evaluator));
CREATE TABLE artifacts (run_id TEXT NOT NULL, case_id TEXT NOT NULL, variant_name TEXT NOT NULL, namespace TEXT,
  payload TEXT NOT NULL, PRIMARY KEY (run_id, case_id, variant_name));
CREATE TABLE summaries (run_id TEXT PRIMARY KEY, started_at TEXT NOT NULL, namespace TEXT, payload TEXT NOT NULL);
"""
AT = "2026-01-01T00:00:00Z"


def trace(case: str) -> str:
    record = {"run_id": "r", "case_id": case, "variant_name": "s", "started_at": AT, "finished_at": AT, "input": {}}
    return json.dumps({**record, "latency_ms": 0, "output": {"final_answer": "Paris is nice"}})


def artifact(case: str) -> str:
    diff = {"added": [], "removed": ["gone.txt"], "modified": [], "text_diffs": {}}
    record = {"case_id": case, "variant_name": "s", "workspace_kind": "tempdir_snapshot", "diff": diff}
    return json.dumps({**record, "before_manifest": {}, "after_manifest": {}, "artifacts_path": "/tmp/evalh-gone"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "eval.yaml").write_text(SUITE)
    (tmp_path / "cases.yaml").write_text(CASES)
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as database, database:
        database.executescript(TABLES)
        for case in ("a", "b"):
            values = ("r", case, "s", AT, trace(case))
            database.execute(
                "INSERT INTO traces (run_id, case_id, variant_name, started_at, payload) VALUES (?, ?, ?, ?, ?)", values
            )
        database.execute("INSERT INTO artifacts VALUES ('r', 'a', 's', NULL, ?)", (artifact("a"),))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_are_judged_again_by_a_suite_that_is_named(folder: Path) -> None:
    run = folder / "runs.sqlite" / "r"
    suite = load_suite(folder / "eval.yaml", to_run=False)
    outcome = re_evaluate(run, suite=suite, processes=1)
    assert outcome.of_original
    with closing(sqlite3.connect(folder / "runs.sqlite")) as database:
        lines = database.execute("SELECT payload FROM results").fetchall()
    by_name = {(one["case_id"], one["evaluator"]): one for one in (json.loads(line) for (line,) in lines)}
    assert (by_name["a", "says"]["passed"], by_name["b", "says"]["passed"]) == (True, False)
    assert not by_name["a", "kept"]["passed"]
    assert "gone.txt" in by_name["a", "kept"]["reason"]
    assert by_name["b", "kept"]["error"] is not None  # nothing was kept of its files


def test_an_audit_finds_what_cells_did_to_files_and_puts_it_nowhere_beside_the_database(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "runs.sqlite")) as database, database:
        database.execute("UPDATE artifacts SET payload = replace(payload, 'gone.txt', 'b')")
    suite = load_suite(folder / "eval.yaml", to_run=False)
    re_evaluate(folder / "runs.sqlite" / "r", suite=suite, processes=1)
    shutil.rmtree(folder / "runs.sqlite.artifacts")
    names = {path.name for path in folder.iterdir()}
    report = audit_run(folder / "runs.sqlite" / "r", suite=suite, limit=10)
    assert (report.passed, report.traces, report.unjudged) == (1, 1, 0)
    assert {path.name for path in folder.iterdir()} == names


def test_without_a_suite_it_is_said_what_is_missing(folder: Path) -> None:
    with pytest.raises(InputError, match="neither cases nor evaluators: name its suite with --suite"):
        re_evaluate(folder / "runs.sqlite" / "r", processes=1)


def test_they_cannot_be_continued(folder: Path) -> None:
    with pytest.raises(InputError, match="can be re-evaluated, not resumed"):
        resume(folder / "runs.sqlite" / "r")
