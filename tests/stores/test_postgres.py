"""Runs in PostgreSQL: what is special about them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from evalwright.errors import InputError, StorageError
from evalwright.model.protocols import Store
from evalwright.model.result import CaseVerdict
from evalwright.model.trace import Trace
from evalwright.stores.postgres import DSN_VARIABLE, postgres
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from postgres_server import restart, server_dsn
from stores.stores import Kept


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept("postgres", tmp_path)


@pytest.fixture
def store(kept: Kept) -> Store:
    return kept.store(namespace={"project": "p", "branch": "main"})


def test_every_row_has_the_namespace(kept: Kept, store: Store) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    writer.append_results([a_result()])
    writer.close()
    for table in ("runs", "traces", "results"):
        assert kept.query(f"SELECT namespace ->> 'project' FROM {table}") == [("p",)]


@pytest.mark.parametrize("table", ["traces", "results", "artifacts", "summaries", "runs"])
def test_the_namespace_is_looked_up_in_its_index(kept: Kept, store: Store, table: str) -> None:
    store.create(a_plan(), [a_case()], {}).close()
    columns = {
        "runs": ("plan, started_at", "'', now()"),
        "summaries": ("line, started_at", "'', now()"),
        "results": ("key, seq, case_id, variant_name, trial, attempt, evaluator, line", "'', n, '', '', 0, 1, '', ''"),
    }
    names, values = columns.get(
        table, ("key, seq, case_id, variant_name, trial, attempt, line", "'', n, '', '', 0, 1, ''")
    )
    kept.query(
        f"INSERT INTO {table} (run_id, namespace, {names}) "
        f"SELECT 'r' || n, jsonb_build_object('build', n), {values} FROM generate_series(1, 3000) AS n"
    )
    kept.query(f"ANALYZE {table}")
    plan = kept.query(f"""EXPLAIN SELECT run_id FROM {table} WHERE namespace @> '{{"build": 77}}'""")
    assert any(f"Bitmap Index Scan on {table}_namespace" in line for (line,) in plan), plan


def test_payloads_can_be_asked_also_where_jsonb_takes_less_than_json(kept: Kept, store: Store) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace(case_id="nul", input="a\0b \U0001f600"))
    writer.append_trace(a_trace(case_id="half", input=msgspec.Raw(rb'"\ud800 \ud83d\ude00"')))
    writer.append_trace(a_trace(case_id="deep", input={"a\0": ["b\0", 2.5, None, True, {"c": 3}]}))
    writer.append_trace(a_trace(case_id="plain", input="as it is"))
    writer.close()
    assert kept.query("SELECT case_id, payload ->> 'input' FROM traces ORDER BY seq") == [
        ("nul", "a\ufffdb \U0001f600"),
        ("half", "\ufffd \U0001f600"),
        ("deep", '{"a\ufffd": ["b\ufffd", 2.5, null, true, {"c": 3}]}'),
        ("plain", "as it is"),
    ]


def test_what_jsonb_refuses_altogether_is_kept_as_its_line(kept: Kept, store: Store) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    number = b"1" + b"0" * 140_000
    for case_id, value in (("a", b"1"), ("b", number), ("c", b"3")):
        writer.append_trace(a_trace(case_id=case_id, input=msgspec.Raw(value)))
    writer.close()
    assert kept.query("SELECT case_id, payload = '{\"not_in_jsonb\": true}' FROM traces ORDER BY seq") == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert kept.query("SELECT length(line) > 140000 FROM traces WHERE case_id = 'b'") == [(True,)]


def test_what_is_too_complex_for_jsonb_is_kept_as_its_line(kept: Kept) -> None:
    join = "&" if "?" in server_dsn() else "?"
    dsn = f"{server_dsn()}{join}options=-c%20max_stack_depth%3D100kB"  # SQLSTATE 54001, statement_too_complex
    store = postgres({"dsn": dsn, "schema": kept.schema}, None, kept.folder)
    writer = store.create(a_plan(), [a_case()], {})
    for case_id, value in (("a", b"1"), ("b", b"[" * 3000 + b"]" * 3000)):
        writer.append_trace(a_trace(case_id=case_id, input=msgspec.Raw(value)))
    writer.close()
    assert kept.query("SELECT case_id, payload = '{\"not_in_jsonb\": true}' FROM traces ORDER BY seq") == [
        ("a", False),
        ("b", True),
    ]


@pytest.mark.parametrize("table", ["cases", "traces"])
def test_what_cannot_be_read_is_told_with_its_reason(kept: Kept, store: Store, table: str) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    writer.close()
    assert writer.plan is not None
    reader = store.read(writer.plan.run_id)
    kept.query(f"ALTER TABLE {table} RENAME COLUMN line TO away")
    with closing(reader), pytest.raises(InputError, match='cannot be read: column "line" does not exist'):
        list(reader.cases() if table == "cases" else reader.traces(Trace))


def test_ids_longer_than_an_index_takes_are_kept(store: Store) -> None:
    import random

    draw = random.Random(1)
    ids = ["".join(chr(draw.randrange(0x4E00, 0x9000)) for _ in range(5000)) for _ in range(3)]
    writer = store.create(a_plan(), [a_case()], {})
    for case_id in ids:
        writer.append_trace(a_trace(case_id=case_id))
    assert [trace.case_id for trace in writer.traces(Trace)] == ids
    writer.close()


def lose_connections() -> None:
    with psycopg.connect(server_dsn(), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")


@pytest.mark.parametrize("lose", [lose_connections, restart])
def test_a_writer_outlives_its_connection(store: Store, lose: Any) -> None:
    writer = store.create(a_plan(), [a_case(id=f"c{n}") for n in range(3)], {})
    cases = writer.cases()
    next(cases)
    for number in range(6):
        if number in (2, 4):
            writer.sync()
            lose()
        writer.append_trace(a_trace(case_id=f"c{number}"))
        writer.append_verdict(a_verdict(case_id=f"c{number}"))
    writer.sync()
    assert [case.id for case in cases] == ["c1", "c2"]
    writer.close()
    reader = store.read(a_plan().run_id)
    assert [trace.case_id for trace in reader.traces(Trace)] == [f"c{n}" for n in range(6)]
    assert [verdict.case_id for verdict in reader.verdicts(CaseVerdict)] == [f"c{n}" for n in range(6)]
    reader.close()


@pytest.mark.slow("loses the connection at each of its statements")
def test_a_connection_lost_at_any_moment_loses_and_doubles_nothing(store: Store) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    done = threading.Event()

    def disturb() -> None:
        while not done.wait(0.03):
            lose_connections()

    thread = threading.Thread(target=disturb)
    thread.start()
    for number in range(2000):
        writer.append_trace(a_trace(case_id=f"c{number}"))
        if number % 20 == 0:
            writer.sync()
    done.set()
    thread.join()
    writer.close()
    reader = store.read(a_plan().run_id)
    assert [trace.case_id for trace in reader.traces(Trace)] == [f"c{n}" for n in range(2000)]
    reader.close()


def test_a_writer_does_not_go_on_where_another_one_has_written(kept: Kept, store: Store) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    lose_connections()
    while kept.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):
        pass
    store.open(a_plan().run_id).close()
    writer.append_trace(a_trace())
    with pytest.raises(StorageError, match="another process has written to it"):
        writer.sync()
    writer.close()


def test_a_writer_does_not_go_on_with_a_run_that_is_gone(kept: Kept, store: Store) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    lose_connections()
    kept.query("DELETE FROM runs")
    while kept.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):
        pass
    writer.append_trace(a_trace())
    with pytest.raises(StorageError, match="was deleted while the server was away"):
        writer.sync()
    writer.close()
    assert kept.query("SELECT 1 FROM traces") == []


def test_a_child_leaves_the_connections_of_its_parent_alone(store: Store) -> None:
    writer = store.create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    writer.close()

    def lines() -> int:
        return sum(1 for _ in reader.traces(Trace))

    with closing(store.read(a_plan().run_id)) as reader:
        assert lines() == 1
        child = os.fork()
        if child == 0:
            try:
                os._exit(lines())
            finally:
                os._exit(99)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        assert lines() == 1


def test_a_schema_without_runs_has_none(store: Store) -> None:
    assert store.run_ids() == []


def test_a_schema_of_a_later_version_is_refused(kept: Kept, store: Store) -> None:
    store.create(a_plan(), [a_case()], {}).close()
    kept.query("UPDATE layout SET version = 2")
    with pytest.raises(InputError, match="version 2 of its tables"):
        store.create(a_plan(), [a_case()], {})


@pytest.fixture
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DSN_VARIABLE, raising=False)


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, f"dsn: expected a connection string, here or in {DSN_VARIABLE}"),
        (
            {"dsn": "hunter22 is my password"},
            "dsn: expected a connection string such as postgresql://user@host/database",
        ),
        (
            {"dsn": "postgresql://me:hunter22@hunter22@host/base"},
            "dsn: expected a URL whose password has %40 for @, %3A for : and %2F for /",
        ),
        ({"dsn": "postgresql://me:hunter22/x@host/base"}, "dsn: expected a URL whose password has %40"),
        ({"dsn": "postgresql://me:x@hunter22/y@host/base"}, "dsn: expected a URL whose password has %40"),
        ({"dsn": "host=x connect_timeout=soon"}, "dsn: expected a number of seconds as connect_timeout"),
        ({"dsn": "host=x", "schema": ""}, "schema: expected a name of 1 to 63 bytes"),
        ({"dsn": "host=x", "schema": "ä" * 32}, "schema: expected a name of 1 to 63 bytes"),
        ({"dsn": "host=x", "pool_size": 0}, "pool_size: expected at least 1, found 0"),
        ({"dsn": "host=x", "scheme": "a"}, 'scheme: unknown key; did you mean "schema"'),
    ],
)
def test_a_wrong_configuration_is_told_without_the_secret(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as told:
        postgres(config, None, Path("runs"))
    assert str(told.value).startswith(message)
    assert "hunter22" not in str(told.value)


def test_a_server_that_is_not_there_is_a_storage_error_without_the_secret(tmp_path: Path) -> None:
    store = postgres({"dsn": "postgresql://me:hunter22@127.0.0.1:9/x"}, None, tmp_path)
    with pytest.raises(StorageError, match="cannot write to the schema 'evalwright': connection failed") as told:
        store.create(a_plan(), [a_case()], {})
    assert "hunter22" not in str(told.value)
    with pytest.raises(StorageError, match="cannot be read: connection failed"):
        store.read("r")


WITHOUT = """
import sys
sys.modules["psycopg"] = None
from pathlib import Path
from evalwright.errors import InputError
from evalwright.registry import load
try:
    load("stores", "postgres")({"dsn": "host=x"}, None, Path("runs"))
except InputError as error:
    print(error)
"""


def test_a_missing_extra_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout == "the store 'postgres' needs: pip install 'evalwright[postgres]'\n"
