"""Sessions of a PostgreSQL server: who holds a run, what is told of the server, and where tables come from."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from evalwright.errors import InputError, Interrupted, RunLockedError, StorageError
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.stores.postgres import postgres
from evalwright.stores.postgres.database import Connection, Database
from evalwright.stores.postgres.lock import lock_run
from evalwright.testing import a_case, a_plan, a_trace
from postgres_server import fresh_schema, frozen, server_dsn
from stores.stores import Kept


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept("postgres", tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [("psql", "another process"), ("evalwright 17 there", "process 17 on host there"), ("", "another process")],
)
def test_who_holds_a_run_is_named_if_it_is_one_of_us(kept: Kept, name: str, said: str) -> None:
    run_id = a_plan().run_id
    kept.store().create(a_plan(), [a_case()], {}).close()
    with closing(psycopg.connect(server_dsn(), autocommit=True, application_name=name)) as other:
        lock_run(other, kept.schema, run_id)
        with pytest.raises(RunLockedError, match=f"{kept.schema}/{run_id} is being written by {said}; wait"):
            kept.store().open(run_id)
        kept.store().read(run_id).close()
    with closing(psycopg.connect(server_dsn(), autocommit=True)) as other:
        lock_run(other, "another schema", run_id)
        lock_run(other, kept.schema, "another run")
        kept.store().open(run_id).close()


def test_a_schema_that_is_there_gets_the_tables(kept: Kept) -> None:
    with psycopg.connect(server_dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {kept.schema}")
        connection.execute(f"CREATE TABLE {kept.schema}.theirs (name text)")
    assert kept.store().run_ids() == []
    with pytest.raises(InputError, match="contains no run 'r'"):
        kept.store().read("r")
    kept.store().create(a_plan(), [a_case()], {}).close()
    assert kept.store().run_ids() == [a_plan().run_id]
    assert kept.query("SELECT count(*) FROM theirs") == [(0,)]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(tmp_path: Path, encoding: str) -> None:
    name = fresh_schema()
    with psycopg.connect(server_dsn(), autocommit=True) as connection:
        other = f"TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(f"CREATE DATABASE {name} {other}")
    store = postgres({"dsn": make_conninfo(server_dsn(), dbname=name)}, None, tmp_path)
    with pytest.raises(InputError, match=f"the database has the encoding {encoding}: .* ENCODING 'UTF8'"):
        store.create(a_plan(), [a_case()], {})
    assert store.run_ids() == []


def test_a_schema_that_a_role_must_not_use_does_not_seem_empty(kept: Kept) -> None:
    kept.store().create(a_plan(), [a_case()], {}).close()
    role = fresh_schema()
    with psycopg.connect(server_dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role}")
    dsn = make_conninfo(server_dsn(), options=f"-c role={role}")
    store = postgres({"dsn": dsn, "schema": kept.schema}, None, kept.folder)
    for work in (store.run_ids, lambda: store.read(a_plan().run_id), lambda: store.create(a_plan(), [a_case()], {})):
        with pytest.raises(InputError, match=f"the schema '{kept.schema}' cannot be used: this role lacks the right"):
            work()
    kept.query(f"GRANT USAGE ON SCHEMA {kept.schema} TO {role}")
    kept.query(f"GRANT SELECT ON ALL TABLES IN SCHEMA {kept.schema} TO {role}")
    with closing(store.read(a_plan().run_id)) as reader:
        assert [case.id for case in reader.cases()] == [a_case().id]


def test_a_server_that_is_not_there_is_told_before_the_first_case_is_read(tmp_path: Path) -> None:
    read: list[str] = []

    def cases() -> Iterator[Case]:
        read.append("c1")
        yield a_case()

    store = postgres({"dsn": "postgresql://me@127.0.0.1:9/x"}, None, tmp_path)
    with pytest.raises(StorageError):
        store.create(a_plan(), cases(), {})
    assert read == []


@pytest.mark.parametrize("given", ["sk/cret", "sk%2Fcret"])
def test_what_a_server_says_is_told_in_one_line_without_the_password(given: str) -> None:
    database = Database("postgresql://me:sk%2Fcret@host/x", "s", 1)
    told = database.why(psycopg.OperationalError(f"connection failed:\n  {given} is wrong"))
    assert told == "connection failed: ***MASKED*** is wrong"
    assert "cret" not in database.name


@pytest.mark.parametrize(("size", "made_anew"), [(1, 1), (2, 0)])
def test_as_many_connections_are_kept_as_asked_for(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, size: int, made_anew: int
) -> None:
    made: list[object] = []
    connect = Connection.connect

    def counting(*args: Any, **more: Any) -> Any:
        made.append(connect(*args, **more))
        return made[-1]

    with closing(kept.store().create(a_plan(), [a_case()], {})) as writer:
        for attempt in (1, 2):
            writer.append_trace(a_trace(attempt=attempt))
    monkeypatch.setattr(Connection, "connect", counting)
    store = postgres({"dsn": server_dsn(), "schema": kept.schema, "pool_size": size}, None, kept.folder)
    with closing(store.read(a_plan().run_id)) as reader:
        before = len(made)
        for _ in range(3):
            assert len([*reader.traces(Trace)]) == 2
            assert reader.summary() is None
        assert len(made) == before, "the connection that read the plan is used again"
        for expected in (before + 1, before + 1 + made_anew):
            both = [reader.traces(Trace), reader.traces(Trace)]
            assert [len([*one]) for one in zip(*both, strict=True)] == [2, 2]
            assert len(made) == expected
    assert all(one.closed for one in made)  # type: ignore[attr-defined]


def test_a_database_without_a_password_tells_all() -> None:
    assert Database("postgresql://me@host/x", "s", 1).why(psycopg.OperationalError("no\nanswer")) == "no answer"


def test_a_connection_that_is_interrupted_while_it_is_prepared_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Connection] = []

    def interrupted(connection: Connection, *_: Any, **__: Any) -> Any:
        made.append(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Database(server_dsn(), "s", 1).connect()
    assert [one.closed for one in made] == [True]


@pytest.mark.parametrize(("more", "expected"), [("", "20000"), ("&tcp_user_timeout=5000", "5000")])
def test_a_machine_that_vanishes_is_given_up_soon(kept: Kept, more: str, expected: str) -> None:
    dsn = server_dsn()
    dsn += more if "?" in dsn else more.replace("&", "?")
    with closing(Database(dsn, kept.schema, 1).connect()) as connection:
        told = connection.info.get_parameters()
    assert (told["tcp_user_timeout"], told["keepalives_idle"]) == (expected, "10")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are given up after a moment."""
    monkeypatch.setattr("evalwright.stores.postgres.database._SILENCE", 0.05)
    monkeypatch.setattr("evalwright.stores.postgres.database._TO_CONNECT", 2)
    monkeypatch.setattr("evalwright.stores.postgres.run._PATIENCE", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_stops_answering_is_given_up_and_keeps_what_was_written(kept: Kept) -> None:
    store = kept.store()
    writer = store.create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace(attempt=1))
    writer.sync()
    writer.append_trace(a_trace(attempt=2))
    with frozen(), pytest.raises(StorageError, match="stopped answering"):
        writer.close()
    with closing(store.read(a_plan().run_id)) as reader:
        assert [trace.attempt for trace in reader.traces(Trace)] == [1]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are given up after a moment, but only in a hurry."""
    monkeypatch.setattr("evalwright.stores.postgres.database._HURRIED", 0.5)
    monkeypatch.setattr("evalwright.stores.postgres.database._SILENCE", 1000.0)


@pytest.mark.usefixtures("hurried")
def test_a_server_that_does_not_answer_is_soon_given_up_in_a_hurry(kept: Kept) -> None:
    writer = kept.store().create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    told: list[BaseException] = []

    def closes() -> None:
        try:
            writer.close()
        except StorageError as error:
            told.append(error)

    with frozen():
        closing_it = threading.Thread(target=closes, daemon=True)
        closing_it.start()
        writer.hurry()
        closing_it.join(30)
        assert ["stopped answering" in str(error) or "timeout" in str(error) for error in told] == [True]


@pytest.mark.usefixtures("hurried")
def test_a_write_that_a_signal_ends_is_made_again(kept: Kept) -> None:
    def ends(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, ends)
    writer = kept.store().create(a_plan(), [a_case()], {})
    try:
        writer.append_trace(a_trace(attempt=1))
        writer.hurry()
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
        with frozen():
            timer.start()
            with pytest.raises(Interrupted):
                writer.sync()
    finally:
        signal.signal(signal.SIGUSR1, before)
    writer.append_trace(a_trace(attempt=2))
    writer.close()
    with closing(kept.store().read(a_plan().run_id)) as reader:
        assert [trace.attempt for trace in reader.traces(Trace)] == [1, 2]


@pytest.mark.usefixtures("impatient")
def test_a_statement_may_take_long_while_the_server_answers(kept: Kept) -> None:
    with closing(Database(server_dsn(), kept.schema, 1).connect()) as connection:
        assert connection.execute("SELECT pg_sleep(0.5)").fetchall() == [("",)]
