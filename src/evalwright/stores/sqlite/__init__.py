"""Runs in a SQLite file, any number of them; readers, and writers of different runs, may use it at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from evalwright.errors import InputError, did_you_mean
from evalwright.files.durable import private_file, storage_error, sync_folder
from evalwright.files.masker import Masker
from evalwright.files.paths import numbered, path_in, safe_id
from evalwright.model.plan import Plan
from evalwright.model.snapshot import Case
from evalwright.stores.documents import Masked, plan_to_json, reserved_words
from evalwright.stores.local_files.lines import LineEncoder
from evalwright.stores.lock import RunLock, is_held
from evalwright.stores.sqlite.run import SqliteRun, connect, reading, writing
from evalwright.stores.tables.config import read_config
from evalwright.stores.tables.rows import spooled_cases
from evalwright.stores.tables.run import TableReader, TableWriter

__all__ = ["Sqlite", "sqlite"]

_CASES_AT_ONCE = 1000


class _Config(msgspec.Struct):
    path: str
    run_namespace: dict[str, Any] | None = None


def sqlite(config: Mapping[str, Any], masker: Masker | None, runs: Path) -> Sqlite:
    """Runs in a SQLite file: `path`, `run_namespace`. Raises InputError."""
    settings = read_config(_Config, config)
    return Sqlite(path_in(config, "file"), masker, settings.run_namespace)


class Sqlite(Masked):
    """A file of runs. Without a masker, secrets of the environment are masked in everything written."""

    def __init__(self, path: Path, masker: Masker | None = None, namespace: Mapping[str, Any] | None = None) -> None:
        self.path: Path = Path(path).absolute()  # user code may change the working directory
        super().__init__(masker)
        self._namespace = namespace

    @classmethod
    def at(cls, path: Path, masker: Masker | None = None) -> tuple[Sqlite, str]:
        """The store and the run id of `FILE/RUN_ID`, or of the newest run for `FILE`. Raises InputError."""
        path = path.absolute()
        file = next((place for place in (path, *path.parents) if place.is_file()), path)
        store = cls(file.resolve(), masker)
        if file != path:
            return store, path.relative_to(file).as_posix()
        ids = store.run_ids()
        if not ids:
            raise InputError(f"{path} contains no run")
        return store, ids[-1]

    def create(self, plan: Plan, cases: Iterable[Case], documents: Mapping[str, bytes]) -> TableWriter:
        """A new run; see `Store.create`. Raises StorageError."""
        run_id = safe_id(plan.run_id)
        encoder = LineEncoder(self._masker.keeping(reserved_words(plan)))
        spool, plan.cases_total, plan.cases_sha256 = spooled_cases(cases, encoder)
        with spool:
            try:
                if not self.path.exists():
                    private_file(self.path)
                with writing(self.path), closing(connect(self.path)) as connection:
                    lock = self._create_run(connection, plan, run_id, spool, documents)
            except OSError as error:
                raise storage_error("create a run in", self.path, error) from error
        return self._writer(plan.run_id, self._namespace_text(), lock, new=True)

    def _create_run(
        self,
        connection: sqlite3.Connection,
        plan: Plan,
        run_id: str,
        spool: BinaryIO,
        documents: Mapping[str, bytes],
    ) -> RunLock:
        connection.execute("BEGIN IMMEDIATE")  # no other process can choose the same id until the commit
        names = {text.decode() for (text,) in connection.execute("SELECT run_id FROM runs")}
        plan.run_id = next(name for name in numbered(run_id) if name not in names)
        lock = self._lock(plan.run_id)
        try:
            line = plan_to_json(plan, self._masker.keeping(reserved_words(plan)))
            row = (plan.run_id, plan.started_at.isoformat(), self._namespace_text(), line.decode())
            connection.execute("INSERT INTO runs (run_id, started_at, namespace, payload) VALUES (?, ?, ?, ?)", row)
            _insert_cases(connection, plan.run_id, spool)
            masked = (
                (plan.run_id, name, self._masker.mask_text(content.decode("utf-8", "surrogateescape")))
                for name, content in documents.items()
            )
            connection.executemany(
                "INSERT INTO documents (run_id, name, content) VALUES (?, ?, ?)",
                ((run, name, text.encode("utf-8", "surrogateescape")) for run, name, text in masked),
            )
            connection.execute("COMMIT")
            sync_folder(self.path.parent)
        except BaseException:  # closing the connection, which the caller does, rolls back; the lock is ours
            lock.release()
            raise
        return lock

    def _lock(self, run_id: str) -> RunLock:
        return RunLock(self._lock_place(run_id), self.path / run_id, remove=True)

    def _lock_place(self, run_id: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{safe_id(run_id)}.lock")

    def is_written(self, run_id: str) -> bool:
        """Whether a process is writing the run."""
        return is_held(self._lock_place(run_id))

    def _writer(self, run_id: str, namespace: str | None, lock: RunLock, *, new: bool = False) -> TableWriter:
        return TableWriter(SqliteRun(self.path, run_id, namespace, lock), self._masker, new=new)

    def open(self, run_id: str) -> TableWriter:
        """Open a run for writing; see `Store.open`."""
        return self._writer(run_id, self._stored_namespace(run_id), self._lock(run_id))

    def read(self, run_id: str) -> TableReader:
        """Open a run for reading; needs no lock. Raises InputError if there is no such run."""
        return TableReader(SqliteRun(self.path, run_id, self._stored_namespace(run_id)), self._masker)

    def _namespace_text(self) -> str | None:
        """The namespace of new runs as JSON with sorted keys, as evalh writes it: equal namespaces are equal texts."""
        import json

        if self._namespace is None:
            return None
        return json.dumps(self._masker.mask_strings(self._namespace), sort_keys=True, ensure_ascii=False)

    def _stored_namespace(self, run_id: str) -> str | None:
        """The namespace of a stored run; None if it has none. Raises InputError if there is no such run."""
        with reading(self.path), closing(self._connect()) as connection:
            row = connection.execute("SELECT namespace FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            if row is not None:
                return None if row[0] is None else str(row[0], "utf-8")
        raise InputError(f"{self.path} contains no run {run_id!r}{did_you_mean(run_id, self.run_ids())}")

    def run_ids(self) -> list[str]:
        """Ids of the stored runs, oldest first."""
        if not self.path.is_file():
            return []
        with reading(self.path), closing(self._connect()) as connection:
            rows = connection.execute("SELECT run_id FROM runs ORDER BY started_at, seq")
            return [str(run_id, "utf-8") for (run_id,) in rows]

    def _connect(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise InputError(f"{self.path} does not exist")
        return connect(self.path)


def _insert_cases(connection: sqlite3.Connection, run_id: str, spool: BinaryIO) -> None:
    lines: Iterator[tuple[int, bytes]] = enumerate(spool)
    while page := list(islice(lines, _CASES_AT_ONCE)):
        connection.executemany(
            "INSERT INTO cases (run_id, position, payload) VALUES (?, ?, ?)",
            [(run_id, position, line.rstrip(b"\n").decode()) for position, line in page],
        )
