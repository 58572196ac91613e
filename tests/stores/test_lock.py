"""Who may write to a run, and how long a server that went away is waited for."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
from pathlib import Path

import psycopg
import pytest

from evalwright.errors import RunLockedError, StorageError
from evalwright.stores.lock import RunLock, is_held, turn_to_create
from evalwright.stores.postgres.database import is_lost, persist
from unprivileged import as_nobody


def test_a_lock_excludes_others_until_it_is_released_and_names_its_owner(tmp_path: Path) -> None:
    lock = RunLock(tmp_path / "lock", "run r")
    with pytest.raises(RunLockedError, match=f"run r is being written by.*{os.getpid()}"):
        RunLock(tmp_path / "lock", "run r")
    lock.release()
    with (tmp_path / "other").open("w") as other:  # takes the descriptor that is free now
        lock.release()
        other.write("x")
    RunLock(tmp_path / "lock", "run r").release()
    assert (tmp_path / "lock").read_bytes() == b""


def test_what_an_owner_that_was_killed_left_in_the_file_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4194304 a-host-with-a-long-name and more than a living process would write\n" * 9)
    lock = RunLock(tmp_path / "lock", "run r")
    assert (tmp_path / "lock").read_text() == f"{os.getpid()} {os.uname().nodename}\n"
    lock.release()


def test_a_lock_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StorageError, match=r"cannot lock .*/lock: Is a directory"):
        RunLock(tmp_path / "lock", "run r")


def test_a_file_system_that_cannot_lock_is_an_error_and_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []

    def no_locks(descriptor: int, operation: int) -> None:
        used.append(descriptor)
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(StorageError, match="No locks available"):
        RunLock(tmp_path / "lock", "run r")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(used[0])


def test_the_file_of_a_lock_goes_with_it_where_that_is_asked_for(tmp_path: Path) -> None:
    RunLock(tmp_path / "lock", "run r", remove=True).release()
    assert not (tmp_path / "lock").exists()


def test_nothing_is_left_of_a_lock_whose_file_cannot_be_written(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # as on a full disk, where a file without content fits
    try:
        with pytest.raises(StorageError, match="cannot lock"):
            RunLock(tmp_path / "lock", "run r", remove=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "lock").exists()


def test_a_lock_on_a_file_that_its_last_owner_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, path = fcntl.flock, tmp_path / "lock"

    def late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.unlink()  # what the last owner does between opening and locking
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    lock = RunLock(path, "run r", remove=True)
    with pytest.raises(RunLockedError):
        RunLock(path, "run r", remove=True)
    lock.release()


def test_a_lock_that_a_forked_child_releases_is_still_that_of_its_parent(tmp_path: Path) -> None:
    lock = RunLock(tmp_path / "lock", "run r")
    child = os.fork()
    if child == 0:
        try:
            with (tmp_path / "other").open("w") as other:  # takes the descriptor that the lock had
                lock.release()
                other.write("x")
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with pytest.raises(RunLockedError, match=str(os.getpid())):
        RunLock(tmp_path / "lock", "run r")
    lock.release()


def test_a_turn_that_creates_nothing_leaves_no_folder_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to create"), turn_to_create(tmp_path / "a" / "b", "r", "run r"):
        raise ValueError("nothing to create")
    assert list(tmp_path.iterdir()) == []


def test_another_users_process_may_hold_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text(f"1 {os.uname().nodename}")
    with path.open() as file:
        assert as_nobody(lambda: str(is_held(Path(f"/proc/self/fd/{file.fileno()}")))) == "True"


def test_who_looks_believes_the_file_of_a_lock(tmp_path: Path) -> None:
    path, here = tmp_path / "lock", os.uname().nodename
    assert not is_held(path)
    lock = RunLock(path, "run r")
    assert is_held(path)
    lock.release()
    assert not is_held(path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    for owner, held in (
        (f"{ended.pid} {here}", False),
        (f"{os.getppid()} {here}", True),
        (f"{ended.pid} another-host", True),
        (f"{os.getpid()}", False),
        (f"nobody {here}", False),
        (f"{10**30} {here}", False),
    ):
        path.write_text(owner)
        assert is_held(path) is held, owner


@pytest.mark.parametrize(("gone", "patience", "calls"), [(False, 60.0, 1), (True, 0.0, 1), (True, 60.0, 2)])
def test_a_server_that_is_gone_is_waited_for_while_there_is_patience(gone: bool, patience: float, calls: int) -> None:
    made: list[int] = []

    def work() -> None:
        made.append(1)
        if len(made) < 2:
            raise psycopg.OperationalError("the server closed the connection")

    if calls == 2:
        persist(work, lambda _: gone, lambda: patience)
    else:
        with pytest.raises(psycopg.OperationalError):
            persist(work, lambda _: gone, lambda: patience)
    assert len(made) == calls


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (psycopg.OperationalError("connection refused"), True),
        (psycopg.InterfaceError("the connection is closed"), True),
        (psycopg.DataError("bad value"), False),
        (psycopg.errors.ConnectionFailure("08006"), True),
        (psycopg.errors.AdminShutdown("57P01"), True),
        (psycopg.errors.CannotConnectNow("57P03"), True),
        (psycopg.errors.QueryCanceled("57014"), False),
        (psycopg.errors.UndefinedTable("42P01"), False),
    ],
)
def test_a_rejected_statement_is_no_lost_server(error: psycopg.Error, lost: bool) -> None:
    assert is_lost(error) is lost
