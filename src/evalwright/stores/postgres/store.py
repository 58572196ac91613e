"""Runs in the tables of one schema of a PostgreSQL database, any number of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

from psycopg import sql
from psycopg.types.json import Jsonb

from evalwright.errors import InputError, did_you_mean
from evalwright.files.masker import Masker
from evalwright.files.paths import numbered, safe_id
from evalwright.model.plan import Plan
from evalwright.model.snapshot import Case
from evalwright.stores.documents import Masked, plan_to_json, reserved_words
from evalwright.stores.local_files.lines import LineEncoder
from evalwright.stores.postgres.database import Connection, Database
from evalwright.stores.postgres.lock import is_locked, lock_run
from evalwright.stores.postgres.run import PostgresRun
from evalwright.stores.tables.rows import spooled_cases
from evalwright.stores.tables.run import TableReader, TableWriter

__all__ = ["Postgres"]


class Postgres(Masked):
    """A schema of runs. Without a masker, secrets of the environment are masked in everything written.

    `runs` is the folder for artifacts: `<runs>/<run id>/artifacts`.
    """

    def __init__(
        self,
        database: Database,
        runs: Path,
        masker: Masker | None = None,
        namespace: Mapping[str, Any] | None = None,
    ) -> None:
        self._database, self._runs, self._namespace = database, Path(runs).absolute(), namespace
        super().__init__(masker)

    def create(self, plan: Plan, cases: Iterable[Case], documents: Mapping[str, bytes]) -> TableWriter:
        """A new run; see `Store.create`. Raises StorageError."""
        with self._database.writing():
            self._database.connect().close()  # an unreachable server is reported before a long dataset is read
        encoder = LineEncoder(self._masker.keeping(reserved_words(plan)))
        spool, plan.cases_total, plan.cases_sha256 = spooled_cases(cases, encoder)
        with spool, self._database.writing():
            connection = self._database.connect()
            try:
                self._database.prepare(connection)
                self._create(connection, plan, spool, documents)
            except BaseException:  # also Ctrl-C while a million cases are copied: the server then drops the transaction
                connection.close()
                raise
        return self._writer(plan.run_id, connection, new=True)

    def _create(self, connection: Connection, plan: Plan, spool: BinaryIO, documents: Mapping[str, bytes]) -> None:
        with connection.transaction():
            self._insert_run(connection, plan)
            with connection.cursor().copy("COPY cases (run_id, position, line) FROM STDIN") as copy:
                for position, line in enumerate(spool):
                    copy.write_row((plan.run_id, position, line.rstrip(b"\n").decode()))
            for name, content in documents.items():
                text = self._masker.mask_text(content.decode("utf-8", "surrogateescape"))
                row = (plan.run_id, name, text.encode("utf-8", "surrogateescape"))
                connection.execute("INSERT INTO documents (run_id, name, content) VALUES (%s, %s, %s)", row)
            # Inside the transaction: no other process can see the run and take its lock before its writer has it.
            lock_run(connection, self._database.schema, plan.run_id)

    def _insert_run(self, connection: Connection, plan: Plan) -> None:
        """Insert the run under the first free id; waits for another process that is creating one with that id."""
        namespace = None if self._namespace is None else Jsonb(self._masker.mask_strings(self._namespace))
        for run_id in numbered(safe_id(plan.run_id)):
            plan.run_id = run_id
            line = plan_to_json(plan, self._masker.keeping(reserved_words(plan))).decode()
            inserted = connection.execute(
                "INSERT INTO runs (run_id, started_at, namespace, plan) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT DO NOTHING RETURNING 1",
                (run_id, plan.started_at, namespace, line),
            )
            if inserted.fetchone() is not None:
                return

    def open(self, run_id: str) -> TableWriter:
        """Open a run for writing; see `Store.open`."""
        self._check(run_id)
        with self._database.writing():
            connection = self._database.connect()
            try:
                lock_run(connection, self._database.schema, run_id)
            except BaseException:
                connection.close()
                raise
        return self._writer(run_id, connection)

    def _writer(self, run_id: str, connection: Connection, *, new: bool = False) -> TableWriter:
        try:
            tables = PostgresRun(self._database, run_id, self._runs, connection)
        except BaseException:
            connection.close()
            raise
        return TableWriter(tables, self._masker, new=new)

    def read(self, run_id: str) -> TableReader:
        """Open a run for reading; needs no lock. Raises InputError if there is no such run."""
        self._check(run_id)
        return TableReader(PostgresRun(self._database, run_id, self._runs), self._masker)

    def is_written(self, run_id: str) -> bool:
        """Whether a process is writing the run."""
        with self._database.reading(), closing(self._database.connect()) as connection:
            return is_locked(connection, self._database.schema, run_id)

    def _check(self, run_id: str) -> None:
        ids = self.run_ids()
        if run_id not in ids:
            near = did_you_mean(run_id, ids)
            raise InputError(f"the schema {self._database.schema!r} contains no run {run_id!r}{near}")

    def run_ids(self) -> list[str]:
        """Ids of the stored runs, oldest first. Raises InputError."""
        with self._database.reading(), closing(self._database.connect()) as connection:
            self._database.check_rights(connection)
            table = connection.execute("SELECT to_regclass('runs')").fetchone()
            if table is None or table[0] is None:
                return []
            rows = connection.execute(sql.SQL("SELECT run_id FROM runs ORDER BY started_at, seq")).fetchall()
        return [run_id for (run_id,) in rows]
