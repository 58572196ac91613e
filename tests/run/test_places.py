"""Where runs are: what a suite names, and what a path leads to."""

from __future__ import annotations

import json
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from evalwright import built_in
from evalwright.errors import InputError, StorageError
from evalwright.model.plan import Plugin
from evalwright.model.suite import Suite
from evalwright.model.trace import Trace
from evalwright.run.locations import find_run, run_places
from evalwright.run.options import RunOptions
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.stores.sqlite import Sqlite
from run import shelf
from run.suites import SAYS_DONE, SAYS_LAST, suite


@pytest.fixture
def on_a_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setitem(built_in.KINDS["stores"], "shelf", "run.shelf:shelf")
    monkeypatch.setenv("SHELF_TOKEN", "token-0f-the-shelf")
    shelf.SHELVES.clear()
    config = {"name": "upper", "token": "token-0f-the-shelf", "password": "literal-passw0rd", "path": str(tmp_path)}
    return msgspec.structs.replace(suite(tmp_path, ["done", "raise"]), store=Plugin("shelf", config))


def test_no_name_of_a_run_in_a_file_leads_out_of_it(tmp_path: Path) -> None:
    outside = run_suite(suite(tmp_path, ["done"])).run_dir
    file = tmp_path / "runs.sqlite"
    kept = run_suite(suite(tmp_path, ["done"]), RunOptions(store=Sqlite(file))).place
    assert kept is not None
    assert [find_run(path).run_id for path in run_places(file)] == [kept.run_id]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE runs SET run_id = ?", (str(outside),))
    for path in run_places(file):
        with pytest.raises(InputError, match="contains no run"):
            open_run(path)


def test_a_run_in_another_packages_store_is_found_by_its_note(on_a_shelf: Suite, tmp_path: Path) -> None:
    folder = run_suite(on_a_shelf).run_dir
    assert folder.parent == tmp_path
    place = find_run(folder, named=on_a_shelf.store)
    assert "nothing to do" in str(resume(place).notes)
    assert retry(place).run_dir == folder
    changed = msgspec.structs.replace(on_a_shelf, evaluators=[SAYS_DONE, SAYS_LAST])
    assert re_evaluate(place, suite=changed, processes=1).run_dir == folder
    reader, plan = open_run(place)
    with closing(reader):
        assert [spec.name for spec in plan.evaluators] == ["says_done", "says_last"]
        assert {trace.case_id for trace in reader.traces(Trace)} == {"c0", "c1"}


def test_a_note_holds_no_secret_and_gets_it_back_from_the_environment(on_a_shelf: Suite) -> None:
    place = run_suite(on_a_shelf).run_dir
    note = (place / "store.json").read_text()
    assert json.loads(note)["store"]["config"]["token"] == "${SHELF_TOKEN}"
    assert "token-0f" not in note
    assert "literal-passw0rd" not in note
    find_run(place, trusted=True)
    assert shelf.told[-1]["token"] == "token-0f-the-shelf"


def test_a_note_whose_secret_is_not_at_hand_is_told(on_a_shelf: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    place = run_suite(on_a_shelf).run_dir
    monkeypatch.delenv("SHELF_TOKEN")
    with pytest.raises(InputError, match="set the environment variable SHELF_TOKEN"):
        find_run(place, trusted=True)


def suite_file(folder: Path, store: str) -> Path:
    """A suite whose system and store, if anything imported the one, would leave a trace."""
    (folder / "loud.py").write_text(f"open({str(folder / 'imported')!r}, 'w').close()\nanswer = print\n")
    (folder / "cases.jsonl").write_text('{"id": "a", "input": {}}')
    (folder / "eval.yaml").write_text(f"""
eval: {{name: loud}}
dataset: {{type: jsonl, path: cases.jsonl}}
systems: [{{name: s, adapter: python_function, target: "loud:answer"}}]
evaluators: [{{name: answered, type: answered}}]
output: {{type: {store}, name: upper, token: from-the-suite, path: {folder}}}
""")
    return folder / "eval.yaml"


@pytest.mark.parametrize(("kind", "token"), [("shelf", "from-the-suite"), ("local_files", None)])
def test_a_lost_secret_is_read_in_the_suite_if_it_names_that_store_without_its_code(
    on_a_shelf: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, token: str | None
) -> None:
    place = run_suite(on_a_shelf).run_dir
    monkeypatch.delenv("SHELF_TOKEN")
    monkeypatch.syspath_prepend(str(tmp_path))
    note = json.loads((place / "store.json").read_text())
    file = suite_file(tmp_path, kind)
    (place / "store.json").write_text(json.dumps({**note, "config_path": str(file), "dialect": "native"}))
    if token is None:
        with pytest.raises(InputError, match="set the environment variable SHELF_TOKEN"):
            find_run(place, trusted=True)
    else:
        find_run(place, trusted=True)
        assert shelf.told[-1]["token"] == token
    assert not (tmp_path / "imported").exists()


def test_the_address_in_a_note_is_not_used_unless_it_is_trusted(on_a_shelf: Suite) -> None:
    place = run_suite(on_a_shelf).run_dir
    told = len(shelf.told)
    with pytest.raises(InputError, match="name your suite with --suite FILE, or pass --trust-run"):
        find_run(place)
    assert len(shelf.told) == told


def test_a_suite_with_another_kind_of_store_is_not_where_the_run_is(on_a_shelf: Suite) -> None:
    place = run_suite(on_a_shelf).run_dir
    with pytest.raises(InputError, match="in a store of type 'shelf', the suite names 'sqlite'"):
        find_run(place, named=Plugin("sqlite", {"path": "x.db"}))


@pytest.mark.parametrize("run_id", ["../out", "/etc", "", "a/b"])
def test_the_id_in_a_note_leads_nowhere_else(on_a_shelf: Suite, run_id: str) -> None:
    place = run_suite(on_a_shelf).run_dir
    note = json.loads((place / "store.json").read_text())
    (place / "store.json").write_text(json.dumps({**note, "run_id": run_id}))
    with pytest.raises(InputError, match="is not the id of one"):
        find_run(place, trusted=True)


def test_a_damaged_note_is_named(on_a_shelf: Suite) -> None:
    place = run_suite(on_a_shelf).run_dir
    (place / "store.json").write_text("{")
    with pytest.raises(InputError, match=r"store\.json .*is not a note of a run"):
        open_run(place)


@pytest.mark.parametrize("processes", [1, 3])
def test_traces_in_a_file_are_judged_again_by_several_processes(tmp_path: Path, processes: int) -> None:
    kept = suite(tmp_path, ["done"] * 40, evaluators=[SAYS_DONE, SAYS_LAST])
    kept = msgspec.structs.replace(kept, store=Plugin("sqlite", {"path": str(tmp_path / "runs.db")}))
    place = run_suite(kept).run_dir
    assert place.parent == tmp_path / "runs.db"
    outcome = re_evaluate(place, processes=processes)
    assert outcome.notes == ["re-evaluated 40 traces"]
    assert [variant.cells["fail"] for variant in outcome.summary.variants] == [40]
    assert re_evaluate(place, add="says_done", processes=processes).summary.by_evaluator == outcome.summary.by_evaluator


def test_all_runs_of_a_place_are_listed(on_a_shelf: Suite, tmp_path: Path) -> None:
    folder = run_suite(on_a_shelf, RunOptions(out=tmp_path)).run_dir
    noted = run_suite(on_a_shelf).run_dir
    assert sorted(run_places(tmp_path)) == sorted({folder, noted})


def test_a_run_kept_elsewhere_than_the_suite_says_knows_it(on_a_shelf: Suite, tmp_path: Path) -> None:
    outcome = run_suite(on_a_shelf, RunOptions(out=tmp_path / "out"))
    assert outcome.plan.store == Plugin("local_files", {"path": str(tmp_path / "out")})


@pytest.mark.parametrize("name", ["missing", "x" * 5000, "a\0b", "postgres:nowhere/x"])
def test_what_leads_nowhere_is_an_input_error(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALWRIGHT_POSTGRES_DSN", raising=False)
    with pytest.raises(InputError):
        find_run(Path(name) if ":" in name else tmp_path / name)


def test_a_file_that_is_empty_stays_so(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="neither a run folder nor a SQLite file"):
        open_run(tmp_path / "empty")
    assert (tmp_path / "empty").read_bytes() == b""


@contextmanager
def no_more_files() -> Iterator[None]:
    """Meanwhile this process can open nothing."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_folder_that_cannot_be_listed_does_not_seem_empty(tmp_path: Path) -> None:
    run = run_suite(suite(tmp_path, ["done"])).run_dir
    for work in (run_places, find_run):
        folder = run.parent if work is run_places else run
        with no_more_files(), pytest.raises(StorageError, match=f"cannot read {folder}: Too many open files"):
            work(folder)
