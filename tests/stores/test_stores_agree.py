"""Every store tells the same story as the one in memory, whatever happens to its writers.

A new store is one more `Harness` in `HARNESSES`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from evalwright.model.protocols import RunReader, RunWriter, Store
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.postgres import postgres
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_summary, a_trace, a_verdict
from postgres_server import fresh_schema, server_dsn

FILES = ("traces", "results", "verdicts")


class Harness(Protocol):
    """What the machine does to a store besides using it."""

    store: Store

    def crash(self, run_id: str) -> None:
        """Go on as another process after this one's death, with what it left behind."""

    def settle(self, writer: RunWriter) -> None:
        """Let other processes see what the store may hold back until `sync`."""

    def close(self) -> None: ...


class LocalHarness:
    """A crash is a copy of the folder as it is: nothing was closed, nothing put in order."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp())
        self._generation = 0
        self.store: Store = LocalFiles(self._folder())

    def _folder(self) -> Path:
        return self._root / str(self._generation)

    def crash(self, run_id: str) -> None:
        before = self._folder()
        self._generation += 1
        shutil.copytree(before, self._folder())
        self.store = LocalFiles(self._folder())

    def tear(self, run_id: str, file: str, size: int) -> None:
        """Lose the last `size` bytes of one kind of record."""
        path = self._folder() / run_id / f"{file}.jsonl"
        with path.open("r+b") as torn:
            torn.truncate(max(0, path.stat().st_size - size))

    def settle(self, writer: RunWriter) -> None:
        pass

    def close(self) -> None:
        shutil.rmtree(self._root)


class SqliteHarness:
    """A crash is a copy of the file and its log."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp())
        self._generation = 0
        self.store: Store = Sqlite(self._file())

    def _file(self) -> Path:
        return self._root / f"{self._generation}.sqlite"

    def crash(self, run_id: str) -> None:
        before = self._file()
        self._generation += 1
        for ending in ("", "-wal"):
            shutil.copy(f"{before}{ending}", f"{self._file()}{ending}")
        self.store = Sqlite(self._file())

    def settle(self, writer: RunWriter) -> None:
        writer.sync()

    def close(self) -> None:
        shutil.rmtree(self._root)


class PostgresHarness:
    """A crash cuts the writer's connection; the database stays."""

    def __init__(self) -> None:
        self._root = tempfile.mkdtemp()
        self._schema = fresh_schema()
        self.store: Store = postgres({"dsn": server_dsn(), "schema": self._schema}, None, Path(self._root))

    def crash(self, run_id: str) -> None:
        with psycopg.connect(server_dsn(), autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
            while connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone():
                pass

    def settle(self, writer: RunWriter) -> None:
        writer.sync()

    def close(self) -> None:
        shutil.rmtree(self._root)
        with psycopg.connect(server_dsn(), autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE")


HARNESSES = [
    LocalHarness,
    SqliteHarness,
    pytest.param(PostgresHarness, marks=pytest.mark.slow("a server answers at each step")),
]

strange = st.text(max_size=30) | st.sampled_from(
    ["\0", "a\u2028b\u2029c\x85d", "\r\n", "x" * 5000, "***MASKED***", '"}']
)
strange = strange.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | strange,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strange, inner, max_size=3),
    max_leaves=5,
)


def newest(records: Iterable[Any]) -> list[Any]:
    """The last record of each key, in order: a store may or may not keep those that were written over."""
    kept: dict[tuple[object, ...], Any] = {}
    for record in records:
        key = (record.case_id, record.variant_name, record.trial, record.attempt, getattr(record, "evaluator", None))
        kept.pop(key, None)
        kept[key] = record
    return list(kept.values())


def everything(reader: RunReader) -> dict[str, Any]:
    """All that a reader has to say, through every way of asking."""
    parts = reader.parts(3)
    by_part = [trace for part in parts for trace in reader.traces(Trace, part)]
    cases = list(reader.cases())
    assert [reader.case(i) for i in range(len(cases))] == cases
    assert list(reader.cases(1)) == cases[1:]
    traces = list(reader.traces(Trace))
    assert by_part == traces
    return {
        "plan": reader.plan,
        "cases": cases,
        "traces": newest(traces),
        "results": newest(reader.results(EvaluationResult)),
        "verdicts": newest(reader.verdicts(CaseVerdict)),
        "summary": reader.summary(),
    }


class Agreement(RuleBasedStateMachine):
    harness_type: type[Harness]

    def __init__(self) -> None:
        super().__init__()
        self.harness: Harness = self.harness_type()
        self.model_store = MemoryStore()

    @initialize(inputs=st.lists(values, max_size=4), name=strange)
    def create(self, inputs: list[Any], name: str) -> None:
        def cases() -> Iterator[Case]:
            return (a_case(id=f"{name}{i}", input=value) for i, value in enumerate(inputs))

        documents = {"config.yaml": b"a: 1\n"}
        self.real: RunWriter = self.harness.store.create(a_plan(name=name), cases(), documents)
        self.model: RunWriter = self.model_store.create(a_plan(name=name), cases(), documents)
        assert self.real.plan is not None
        self.run_id = self.real.plan.run_id

    @rule(text=strange, value=values, upto=st.integers(1, 3), rows=st.integers(0, 3))
    def append_cell(self, text: str, value: Any, upto: int, rows: int) -> None:
        for writer in (self.real, self.model):
            writer.append_trace(a_trace(case_id=text, input=value, output=Output(text)))
            if upto > 1:
                writer.append_results([a_result(case_id=text, reason=text, score=i / 3) for i in range(rows)])
            if upto > 2:
                writer.append_verdict(a_verdict(case_id=text, reasons=[text]))

    @rule()
    def sync(self) -> None:
        self.real.sync()

    @rule(name=strange)
    def save_summary(self, name: str) -> None:
        for writer in (self.real, self.model):
            writer.save_summary(a_summary(config_path=name))

    @rule(name=strange)
    def save_plan(self, name: str) -> None:
        for writer in (self.real, self.model):
            writer.save_plan(a_plan(run_id=self.run_id, name=name))

    @rule(texts=st.lists(strange, max_size=4), shares=st.integers(1, 3), commit=st.booleans())
    def rewrite(self, texts: list[str], shares: int, commit: bool) -> None:
        for writer in (self.real, self.model):
            judgements = writer.rewrite_judgements()
            for number in reversed(range(shares)):
                share = judgements.share(number)
                for text in texts[number::shares]:
                    share.append_results([a_result(case_id=text), a_result(case_id=text, passed=False)])
                    share.append_verdict(a_verdict(case_id=text))
                share.close()
            if commit:
                judgements.commit()
            else:
                judgements.abandon()

    @rule()
    def close_and_open(self) -> None:
        self.real.close()
        self.real = self.harness.store.open(self.run_id)

    @rule()
    def crash(self) -> None:
        dead = self.real
        self.harness.settle(dead)
        self.harness.crash(self.run_id)
        dead.close()
        self.real = self.harness.store.open(self.run_id)

    @precondition(lambda self: hasattr(self, "real"))
    @rule(file=st.sampled_from(FILES), size=st.integers(2, 400))
    def lose_a_tail(self, file: str, size: int) -> None:
        """A power cut: of the last record, a part may be missing; whole ones stay."""
        reading = {"traces": (Trace, self.model.traces), "results": (EvaluationResult, self.model.results)}
        kind, of_model = reading.get(file, (CaseVerdict, self.model.verdicts))
        kept = everything(self.model)
        kept[file] = list(of_model(kind))
        if not kept[file] or not isinstance(self.harness, LocalHarness):
            return
        dead = self.real
        self.harness.crash(self.run_id)
        dead.close()
        self.harness.tear(self.run_id, file, min(size, 60))
        kept[file].pop()
        self._rebuild_model(kept)
        self.real = self.harness.store.open(self.run_id)
        assert [note for note in self.real.damage if "torn tail" in note]

    def _rebuild_model(self, kept: dict[str, Any]) -> None:
        self.model_store = MemoryStore()
        self.model = self.model_store.create(a_plan(), kept["cases"], {})
        for trace in kept["traces"]:
            self.model.append_trace(trace)
        self.model.append_results(kept["results"])
        for verdict in kept["verdicts"]:
            self.model.append_verdict(verdict)
        self.model.save_plan(kept["plan"])
        if kept["summary"]:
            self.model.save_summary(kept["summary"])

    @invariant()
    def all_readers_agree(self) -> None:
        if not hasattr(self, "real"):
            return
        expected = everything(self.model)
        self.harness.settle(self.real)
        reader = self.harness.store.read(self.run_id)
        assert everything(reader) == expected
        assert everything(self.real) == expected
        assert reader.damage == []
        assert self.harness.store.run_ids() == [self.run_id]
        reader.close()

    def teardown(self) -> None:
        if hasattr(self, "real"):
            self.real.close()
        self.harness.close()


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.__name__)
def test_the_store_agrees_with_the_one_in_memory(harness: type[Harness]) -> None:
    harness().close()  # what it needs is started before the first example
    machine = type("Machine", (Agreement,), {"harness_type": harness})
    examples = settings().max_examples // 4  # each is 15 steps long
    few = settings(max_examples=examples, stateful_step_count=15, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=few)
