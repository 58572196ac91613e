"""Where runs in SQLite files are found, and what a disk that fails costs."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evalwright.errors import InputError, StorageError
from evalwright.model.trace import Trace
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_trace
from unprivileged import as_nobody


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of two runs, of which the one that was written first started last."""
    store = Sqlite(tmp_path / "runs.sqlite")
    for days, name in ((2, "new"), (1, "old")):
        store.create(a_plan(run_id=name, started_at=a_plan().started_at + timedelta(days=days)), [], {}).close()
    return store.path


def test_a_file_leads_to_its_newest_run_and_a_path_inside_to_that_run(file: Path) -> None:
    store, run_id = Sqlite.at(file)
    assert (store.path, run_id) == (file, "new")
    store, run_id = Sqlite.at(file / "old")
    assert (store.path, run_id) == (file, "old")
    assert Sqlite.at(file / "a/b")[1] == "a/b"


def test_a_link_to_a_file_of_runs_is_followed(file: Path) -> None:
    (file.parent / "link").symlink_to(file)
    assert Sqlite.at(file.parent / "link" / "old")[0].path == file


def test_a_file_without_runs_and_one_that_is_not_there_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("empty", "missing"):
        with pytest.raises(InputError, match=f"{name} contains no run"):
            Sqlite.at(tmp_path / name)
    with pytest.raises(InputError, match="missing does not exist"):
        Sqlite(tmp_path / "missing").read("r")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_disk_that_fails_to_sync_ends_the_writing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Sqlite(file).create(a_plan(run_id="r"), [a_case()], {})
    writer.append_trace(a_trace())

    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(StorageError, match=r"cannot sync .*runs\.sqlite-wal: Input/output error"):
            writer.sync()
    for ask in (writer.sync, lambda: writer.append_trace(a_trace())):  # what the disk has is not known any more
        with pytest.raises(StorageError, match="Input/output error"):
            ask()
    writer.close()
    with closing(Sqlite(file).open("r")) as again:
        assert len([*again.traces(Trace)]) == 1


@pytest.mark.parametrize("new_file", [False, True])
def test_a_file_that_is_gone_ends_the_writing(file: Path, new_file: bool) -> None:
    """SQLite would go on writing to it, and nobody would find the run."""
    writer = Sqlite(file).create(a_plan(run_id="r"), [a_case()], {})
    writer.append_trace(a_trace())
    writer.sync()
    for path in file.parent.glob("runs.sqlite*"):
        path.unlink()
    if new_file:
        Sqlite(file).create(a_plan(), [], {}).close()
    writer.append_trace(a_trace(trial=1))
    with pytest.raises(StorageError, match=r"runs\.sqlite: it was deleted, moved or replaced"):
        writer.sync()
    writer.close()


def test_a_long_log_is_moved_into_its_file_while_the_run_goes_on(file: Path) -> None:
    with closing(Sqlite(file).create(a_plan(run_id="r"), [a_case()], {})) as writer:
        before = file.stat().st_size
        writer.append_trace(a_trace(input="x" * (17 << 20)))
        writer.sync()
        assert file.stat().st_size > before + (16 << 20)


def test_the_lock_of_a_run_is_gone_with_its_writer_and_names_the_run(file: Path) -> None:
    writer = Sqlite(file).open("old")
    assert [path.name for path in file.parent.glob(".*.lock")] == [".runs.sqlite.old.lock"]
    writer.close()
    assert not list(file.parent.glob(".*.lock"))


def test_a_run_that_could_not_be_made_leaves_no_lock(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TRIGGER full BEFORE INSERT ON documents BEGIN SELECT RAISE(ABORT, 'no room'); END")
    with pytest.raises(StorageError, match="no room"):
        Sqlite(file).create(a_plan(run_id="r"), [], {"config.yaml": b"x: 1"})
    assert not list(file.parent.glob(".*.lock"))


def test_a_run_whose_name_could_not_be_made_durable_leaves_no_lock(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StorageError, match=r"cannot create a run in .*: Input/output error"):
        Sqlite(file).create(a_plan(run_id="r"), [], {})
    assert not list(file.parent.glob(".*.lock"))


def _read_as_nobody(file: Path) -> list[str]:
    """The ids of the runs in a file of which each was read, by a user who may write neither it nor beside it."""

    def read() -> str:
        lines = []
        for run_id in Sqlite(file).run_ids():
            with closing(Sqlite(file).read(run_id)) as reader:
                lines.append(f"{run_id} {len([*reader.traces(Trace)])}")
        return "\n".join(lines)

    return as_nobody(read).splitlines()


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_is_read_where_nothing_can_be_written(killed: bool) -> None:
    with TemporaryDirectory() as name:  # not in the folders of pytest, which only their owner may enter
        folder = Path(name)
        store = Sqlite(folder / "runs.sqlite")
        writer = store.create(a_plan(run_id="r"), [], {})
        writer.append_trace(a_trace())
        writer.sync()
        if killed:  # its log of changes is left
            kept = {path.name: path.read_bytes() for path in folder.iterdir()}
        writer.close()
        if killed:
            for left, content in kept.items():
                (folder / left).write_bytes(content)
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        try:
            assert _read_as_nobody(store.path) == ["r 1"]
            assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
        finally:
            folder.chmod(0o755)
