"""The stores that tests run against, each with a way to change a stored record behind its back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from evalwright.files.masker import Masker
from evalwright.model.artifact import FileManifest, FilesystemArtifact, FilesystemDiff
from evalwright.model.protocols import RunWriter, Store
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.postgres import postgres
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from postgres_server import fresh_schema, server_dsn

__all__ = ["KINDS", "Kept", "an_artifact", "append_cell", "filled"]

KINDS = ("local_files", "sqlite", "postgres")


class Kept:
    """A store of one kind below a folder."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.schema = fresh_schema() if kind == "postgres" else ""

    def store(self, masker: Masker | None = None, namespace: dict[str, Any] | None = None) -> Store:
        if self.kind == "local_files":
            return LocalFiles(self.folder / "runs", masker)
        if self.kind == "sqlite":
            return Sqlite(self.folder / "runs.sqlite", masker, namespace)
        config = {"dsn": server_dsn(), "schema": self.schema, "run_namespace": namespace}
        return postgres(config, masker, self.folder / "runs")

    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement on the database of a store that has one; `?` stands for a value."""
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.folder / "runs.sqlite", isolation_level=None)) as connection:
                return connection.execute(statement, values).fetchall()
        with psycopg.connect(server_dsn(), autocommit=True) as connection:
            connection.execute(f"SET search_path TO {self.schema}")
            cursor = connection.execute(statement.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

    def replace(self, run_id: str, table: str, position: int, line: str) -> None:
        """Put other text in the place of a record."""
        if self.kind == "local_files":
            path = self.folder / "runs" / run_id / f"{table}.jsonl"
            lines = path.read_text().splitlines()
            path.write_text("".join(f"{x}\n" for x in [*lines[:position], line, *lines[position + 1 :]]))
            return
        column = "payload" if self.kind == "sqlite" else "line"
        order = "position" if table == "cases" else "seq"
        [(number,)] = self.query(
            f"SELECT {order} FROM {table} WHERE run_id = ? ORDER BY {order} LIMIT 1 OFFSET {position}", run_id
        )
        self.query(f"UPDATE {table} SET {column} = ? WHERE run_id = ? AND {order} = ?", line, run_id, number)

    def everything(self) -> Iterator[bytes]:
        """All bytes that the store has on disk or in its tables."""
        if self.kind == "postgres":
            tables = ("runs", "cases", "documents", "traces", "results", "verdicts", "artifacts", "summaries")
            yield from (repr(self.query(f"SELECT * FROM {table}")).encode() for table in tables)
        for path in self.folder.rglob("*"):
            if path.is_file():
                yield path.read_bytes()


def filled(kept: Kept, cells: int = 3, masker: Masker | None = None) -> str:
    """A stored run with some cells; its id."""
    writer = kept.store(masker).create(a_plan(), [a_case(id=f"c{i}") for i in range(cells)], {})
    for number in range(cells):
        append_cell(writer, f"c{number}", case_index=number)
    writer.close()
    assert writer.plan is not None
    return writer.plan.run_id


def append_cell(writer: RunWriter, case_id: str, **trace: object) -> None:
    writer.append_trace(a_trace(case_id=case_id, **trace))
    writer.append_results([a_result(case_id=case_id)])
    writer.append_verdict(a_verdict(case_id=case_id))


def an_artifact(**fields: object) -> FilesystemArtifact:
    nothing = FileManifest()
    defaults = {"before_manifest": nothing, "after_manifest": nothing, "diff": FilesystemDiff()}
    cell = {"case_id": "c0", "variant_name": "v1", "workspace_kind": "copy", "artifacts_path": "artifacts/c0/v1"}
    return FilesystemArtifact(**{**cell, **defaults, **fields})  # type: ignore[arg-type]
