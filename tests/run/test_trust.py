"""Runs that somebody else made, or changed, go on only by the word of the user."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.files.yaml import dump
from evalwright.formats.loading import load_suite
from evalwright.model.protocols import RunWriter
from evalwright.run.options import RunOptions
from evalwright.run.origin import Trust
from evalwright.run.outcomes import Outcome
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.stores.local_files import LocalFiles

AGENT = "import os\ndef answer(case, variant):\n    return 'done ' + variant.config['token']\n"
SUITE = {
    "eval": {"name": "s"},
    "dataset": {"type": "yaml", "path": "cases.yaml"},
    "systems": [{"name": "a", "adapter": "python_function", "target": "trust_agent:answer", "token": "${TRUST_TOKEN}"}],
    "evaluators": [{"name": "e", "type": "contains_text", "config": {"all_of": ["done"]}}],
    "output": {"type": "local_files", "path": "runs"},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TRUST_TOKEN", "secret-of-mine")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "trust_agent.py").write_text(AGENT)
    (folder / "cases.yaml").write_text("cases: [{id: a, input: {}}, {id: b, input: {}}]\n")
    (folder / "eval.yaml").write_text(dump(SUITE))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def unfinished(project: Path) -> Path:
    outcome = run_suite(load_suite(project / "eval.yaml"), RunOptions(out=project / "runs", limit=None))
    for name in ("traces", "results", "verdicts"):
        file = outcome.run_dir / f"{name}.jsonl"
        file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    return outcome.run_dir


def changed(run: Path, key: str, **values: object) -> None:
    plan = json.loads((run / "plan.json").read_text())
    plan[key][0].update(values)
    (run / "plan.json").write_text(json.dumps(plan))


def called_at(run: Path, address: str) -> None:
    """Somebody has the systems called by a cluster of theirs, which would be sent the secrets."""
    plan = json.loads((run / "plan.json").read_text())
    plan["run"]["executor"] = {"type": "ray", "address": address}
    (run / "plan.json").write_text(json.dumps(plan))


def cells(outcome: Outcome) -> int:
    return outcome.summary.cells_total


def test_a_run_of_ones_own_goes_on_wherever_it_lies(project: Path) -> None:
    run = unfinished(project)
    moved = shutil.move(run, project.parent / "moved")
    assert cells(resume(Path(moved))) == 2
    assert cells(retry(Path(moved))) == 2
    assert cells(re_evaluate(Path(moved), add="e")) == 2
    assert cells(resume(Path(moved))) == 2  # the new judgement stored the plan again
    key = project.parent / "state" / "evalwright" / "key"
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("how", ["another account", "another system", "another cluster", "another case", "no seal"])
def test_a_run_of_somebody_else_does_not(project: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    run = unfinished(project)
    if how == "another account":
        monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    elif how == "another system":
        changed(run, "variants", config={"target": "os:system", "token": "${TRUST_TOKEN}"})
    elif how == "another cluster":
        called_at(run, "127.0.0.1:9")
    elif how == "another case":
        stored = (run / "cases.jsonl").read_bytes()
        (run / "cases.jsonl").write_bytes(stored.replace(b'"input":{', b'"input":{"added":"${TRUST_TOKEN}",', 1))
    else:
        plan = json.loads((run / "plan.json").read_text())
        del plan["seal"]
        (run / "plan.json").write_text(json.dumps(plan))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for going_on in (resume, retry):
        with pytest.raises(InputError, match="not known to be a run of your own"):
            going_on(run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("made", [True, False])
def test_without_a_key_it_is_said_that_none_can_tell_whose_run_it_is(
    project: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    (project / "no-folder").write_text("")
    if made:
        run = unfinished(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "no-folder"))
    if not made:
        run = unfinished(project)
    with pytest.raises(InputError, match=f"no key in {project / 'no-folder' / 'evalwright' / 'key'} .* --trust-run"):
        resume(run)


def test_the_cases_in_a_database_are_sealed_too(project: Path) -> None:
    (project / "eval.yaml").write_text(dump({**SUITE, "output": {"type": "sqlite", "path": "runs.sqlite"}}))
    run = run_suite(load_suite(project / "eval.yaml")).address
    assert cells(resume(run)) == 2
    with closing(sqlite3.connect(project.parent / "elsewhere" / "runs.sqlite")) as database, database:
        database.execute('UPDATE cases SET payload = replace(payload, \'"id":"b"\', \'"id":"c"\')')
    with pytest.raises(InputError, match="not known to be a run of your own"):
        resume(run)


def test_cases_of_a_run_with_an_index_are_looked_at_only_where_a_cell_is_left(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
    run = run_suite(load_suite(project / "eval.yaml"), RunOptions(out=project / "runs")).run_dir
    assert (run / "index.sqlite").is_file()
    (run / "cases.jsonl").write_bytes((run / "cases.jsonl").read_bytes().replace(b'"id":"b"', b'"id":"c"'))
    assert "nothing to do" in " ".join(resume(run).notes)
    with pytest.raises(InputError, match="not known to be a run of your own"):
        retry(run)
    verdicts = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(verdicts[0])
    with pytest.raises(InputError, match="not known to be a run of your own"):
        resume(run)


def test_cases_are_looked_at_where_a_record_was_lost_since_no_cell_seemed_left(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)
    run = run_suite(load_suite(project / "eval.yaml"), RunOptions(out=project / "runs")).run_dir
    (run / "cases.jsonl").write_bytes((run / "cases.jsonl").read_bytes().replace(b'"id":"b"', b'"id":"c"'))
    opened = LocalFiles.open

    def open_late(store: LocalFiles, run_id: str) -> RunWriter:
        for name in ("traces", "results", "verdicts"):
            (run / f"{name}.jsonl").write_bytes(b"")
        return opened(store, run_id)

    monkeypatch.setattr(LocalFiles, "open", open_late)
    with pytest.raises(InputError, match="not known to be a run of your own"):
        resume(run)
    assert (run / "traces.jsonl").read_bytes() == b""


def test_a_suite_of_the_users_says_what_is_called(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = unfinished(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    called_at(run, "127.0.0.1:9")
    suite = load_suite(project / "eval.yaml", to_run=False)
    outcome = resume(run, trust=Trust(suite))
    assert (cells(outcome), outcome.exit_code) == (2, 0)
    assert b"secret-of-mine" not in (run / "traces.jsonl").read_bytes()
    (project / "eval.yaml").write_text(dump({**SUITE, "metadata": {"new": True}}))
    with pytest.raises(InputError, match="was not made with"):
        retry(run, trust=Trust(load_suite(project / "eval.yaml", to_run=False)))


def test_what_changed_in_the_users_suite_since_another_user_made_the_run_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = unfinished(project)
    mine = shutil.copytree(project, project.parent / "mine", ignore=shutil.ignore_patterns("runs"))
    (mine / "cases.yaml").write_text("cases: [{id: a, input: {}}]\n")
    (project / "trust_agent.py").write_text("not mine, and not looked at")
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    (note,) = resume(run, trust=Trust(load_suite(mine / "eval.yaml", to_run=False))).notes
    changed = f"changed since the run was made: {mine / 'cases.yaml'} (suite and cases are those that the run stored)"
    assert note.partition("; ")[2] == changed


def test_the_suite_of_the_project_that_the_user_works_in_is_theirs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = unfinished(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    monkeypatch.chdir(project)
    assert cells(resume(run)) == 2


def test_who_trusts_a_run_by_name_goes_on_with_what_it_says(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = unfinished(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    assert cells(resume(run, trust=Trust(run=True))) == 2


def test_a_foreign_run_is_judged_by_what_only_looks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = unfinished(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    assert cells(re_evaluate(run)) == 1
    changed(run, "evaluators", type="command", config={"cmd": ["touch", "CANARY"], "cwd": str(project)})
    with pytest.raises(InputError, match="not known to be a run of your own"):
        re_evaluate(run)
    suite = load_suite(project / "eval.yaml", to_run=False)
    assert cells(re_evaluate(run, suite=suite)) == 1
    with pytest.raises(InputError, match="not known to be a run of your own"):
        resume(run)  # the new judgement vouches for nothing else
    assert not (project / "CANARY").exists()


def test_what_a_foreign_run_names_outlives_its_new_judgement(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = unfinished(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    before = json.loads((run / "plan.json").read_text())
    re_evaluate(run)
    assert json.loads((run / "plan.json").read_text()) == before
    re_evaluate(run, suite=load_suite(project / "eval.yaml", to_run=False))
    assert json.loads((run / "plan.json").read_text())["import_paths"] == before["import_paths"]
    assert cells(resume(run, trust=Trust(run=True))) == 2
