"""One run in the tables of a database: what SQLite and PostgreSQL have in common."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from evalwright.errors import StorageError
from evalwright.files.masker import Masker
from evalwright.model.artifact import FilesystemArtifact
from evalwright.model.damage import MendedDamage
from evalwright.model.plan import Plan
from evalwright.model.protocols import JudgementWriter, Part
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace, is_newer
from evalwright.stores.artifacts import artifact_path, folder_of, write_artifact
from evalwright.stores.documents import (
    INDEXED_FROM,
    PlanSecrets,
    cells_of,
    newer_version,
    plan_to_json,
    reserved_words,
    summary_to_plain,
)
from evalwright.stores.local_files.lines import LineDecoder, decoded_case
from evalwright.stores.tables.cases import CaseLines
from evalwright.stores.tables.judgements import TableJudgements
from evalwright.stores.tables.rows import Batch, Row, RowEncoder
from evalwright.stores.tables.statements import RunTables

if TYPE_CHECKING:
    from evalwright.model.cell_index import IndexCreation
    from evalwright.stores.index.reading import RunIndex

__all__ = ["TableReader", "TableWriter"]

T = TypeVar("T")

_MOST_BYTES = 8 << 20
_MOST_ROWS = 5000
"""Limits on what waits in memory; normally `sync` writes it long before, every quarter of a second."""


class TableReader(PlanSecrets):
    """A stored run, read only; may be used while another process writes."""

    def __init__(self, tables: RunTables, masker: Masker, variables: Mapping[str, str] = {}) -> None:
        """`variables` replace `${NAME}`, which is stored for secrets: none for merely looking, as the run may come from
        anyone."""
        self._tables, self._cases = tables, CaseLines(tables)
        self.location: str = tables.location
        self.artifacts: Path = tables.artifacts
        self.damage: list[str] = []
        super().__init__(self.location, tables.plan, masker, variables)
        self._numbering = self.plan
        """Determines the numbers of cells in an index: commands give runs of other programs a plan of their own."""

    def cases(self, start: int = 0) -> Iterator[Case]:
        """The cases as they were run, from position `start`. Raises InputError at a damaged one."""
        for index, line in enumerate(self._cases.since(start), start):
            yield self._case(index, line)

    def case_lines(self) -> Iterator[bytes]:
        """The cases as stored, a line each."""
        return self._cases.since(0)

    def case(self, index: int) -> Case:
        """The case at a position of the dataset. Raises InputError if there is none, or it is damaged."""
        return self._case(index, self._cases[index])

    def _case(self, index: int, line: bytes) -> Case:
        return decoded_case(f"{self.location} cases", line, index + 1, self._variables, recorded=self._recorded)

    def parts(self, count: int) -> list[Part]:
        return self._tables.parts(count)

    def traces(self, kind: type[T], part: Part | None = None) -> Iterator[T]:
        return self._records("traces", kind, part)

    def results(self, kind: type[T]) -> Iterator[T]:
        return self._records("results", kind)

    def verdicts(self, kind: type[T]) -> Iterator[T]:
        return self._records("verdicts", kind)

    def _records(self, table: str, kind: type[T], part: Part | None = None) -> Iterator[T]:
        rows = _Rows(self._tables.lines(table, part))
        return LineDecoder(table, self.damage, f"{self.location} {table}").records(kind, rows, lambda _: rows.number)

    def document(self, name: str) -> bytes | None:
        """A document that the run was created with; None if there is none."""
        return self._tables.document(name)

    def summary(self) -> RunSummary | None:
        """The stored summary; None if there is none or it cannot be read, as it can be rebuilt."""
        line = self._tables.summary()
        if line is None:
            return None
        try:
            summary = msgspec.json.decode(line, type=RunSummary, strict=False)
        except (ValueError, RecursionError) as error:
            self.damage.append(MendedDamage(f"summaries: {error}"))
            return None
        if is_newer(summary.schema_version):
            raise newer_version(f"{self.location} summaries", summary.schema_version)
        return summary

    def index(self, create: IndexCreation = "if_large", least: int | None = None) -> RunIndex | None:
        """See `evalwright.model.cell_index.index_of`."""
        keep = create == "to_keep" or self._is_large(least)
        if not (keep or create == "always"):
            return None
        from evalwright.stores.tables.index import index_of_tables

        return index_of_tables(self._tables, self._numbering, keep=keep, make=create != "never")

    def _is_large(self, least: int | None) -> bool:
        cells = INDEXED_FROM if least is None else min(least, INDEXED_FROM)
        if self._numbering is None:
            return self._tables.span("traces")[1] >= cells
        return cells_of(self._numbering) >= cells and self._numbering.run.index is not False

    def unpack_artifacts(self, into: Path) -> None:
        """Put the workspace contents that evalh stores only in its tables into a folder, where evaluators look for
        them."""
        for line in self._tables.artifact_lines():
            try:
                artifact = msgspec.json.decode(line, type=FilesystemArtifact)
            except (ValueError, RecursionError) as error:
                self.damage.append(f"artifacts: {error}")
                continue
            folder = artifact_path(artifact.case_id, artifact.variant_name, artifact.trial, 1)
            if not folder_of(into, folder).exists():
                write_artifact(into, folder, line)

    def close(self) -> None:
        self._tables.close()


class _Rows:
    """The lines of a table; `number` is the number of the last one read."""

    def __init__(self, rows: Iterator[tuple[int, bytes]]) -> None:
        self._rows, self.number = rows, 0

    def __iter__(self) -> Iterator[bytes]:
        for number, line in self._rows:
            self.number = number
            yield line


class TableWriter(TableReader):
    """A stored run with the exclusive right to write. `sync` may be called from another thread."""

    plan: Plan | None

    def __init__(self, tables: RunTables, masker: Masker, *, new: bool = False) -> None:
        """The cases of a new run are read back with its secrets."""
        try:
            super().__init__(tables, masker, masker.secrets if new else {})
        except BaseException:  # the tables hold the run's lock, and no caller has a writer to close yet
            tables.close()
            raise
        self._encoder = RowEncoder(self._masker)
        self._pending, self._size = Batch(), 0
        # Two locks, so that a cell can add its records while a batch is being written.
        self._adding, self._writing = threading.Lock(), threading.RLock()
        self._flushed = 0.0
        self._failure: StorageError | None = None
        self._closed = False
        if self.plan is None:
            self.unpack_artifacts(self.artifacts)

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """See `RunReader.reveal`."""
        named = super().reveal(variables)
        self._encoder = RowEncoder(self._masker)
        return named

    def append_trace(self, trace: Trace) -> None:
        rows = self._encoder.rows([trace])
        self._add("traces", rows)

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        if results:
            self._add("results", self._encoder.rows(results))

    def append_verdict(self, verdict: CaseVerdict) -> None:
        self._add("verdicts", self._encoder.rows([verdict]))
        # Only after a verdict, so that a batch rarely ends within a cell.
        if time.monotonic() - self._flushed >= self._tables.pace:
            self._flush()

    def _add(self, table: str, rows: list[Row]) -> None:
        self._check()
        with self._adding:
            getattr(self._pending, table).extend(rows)
            self._size += sum(len(row.line) for row in rows)
        if self._size >= _MOST_BYTES or len(self._pending) >= _MOST_ROWS:
            self._flush()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise StorageError(f"{self.location} is closed")

    def _flush(self) -> None:
        """Write what waits. A failure is final: no later batch may be stored without this one."""
        with self._writing:
            self._check()
            with self._adding:
                batch, size = self._pending, self._size
                self._pending, self._size = Batch(), 0
            try:
                if batch:
                    self._tables.write(batch)
                    self._flushed = time.monotonic()
            except StorageError as error:
                self._failure = error
                raise
            except BaseException:  # the user's patience is at its end: it is unknown whether the rows were written
                with self._adding:
                    batch.extend(self._pending)
                    self._pending, self._size = batch, self._size + size
                raise

    def hurry(self) -> None:
        """See `RunWriter`."""
        self._tables.hurry()

    def sync(self) -> None:
        self._flush()
        try:
            self._tables.make_durable()
        except StorageError as error:
            self._failure = error
            raise

    def index(self, create: IndexCreation = "if_large", least: int | None = None) -> RunIndex | None:
        self._settle()
        return super().index(create, least)

    def _records(self, table: str, kind: type[T], part: Part | None = None) -> Iterator[T]:
        self._settle()
        return super()._records(table, kind, part)

    def parts(self, count: int) -> list[Part]:
        self._settle()
        return super().parts(count)

    def _settle(self) -> None:
        """Write what waits, so that it can be read."""
        if self._pending:  # never after closing, nor in another process, which could not write it
            self._flush()

    def save_summary(self, summary: RunSummary) -> None:
        self._flush()
        plain = self._masker.mask_strings(summary_to_plain(summary))
        self._tables.put_summary(summary, msgspec.json.encode(plain))

    def save_artifact(self, artifact: FilesystemArtifact) -> None:
        self._check()
        [row] = self._encoder.rows([artifact])
        write_artifact(self.artifacts, artifact.artifacts_path, row.line.encode() + b"\n")
        with self._writing:
            self._tables.put_artifact(row)

    def save_plan(self, plan: Plan) -> None:
        self._flush()
        masker = self._masker.keeping(reserved_words(plan))
        self._tables.put_plan(plan_to_json(plan, masker, self._placeholders))
        self.plan = plan

    def rewrite_judgements(self) -> JudgementWriter:
        self._flush()
        self._tables.prepare_to_fork()
        return TableJudgements(self.location, self._masker, self._tables.replace_judgements)

    def close(self) -> None:
        """Write and sync what waits, then release the lock. Raises StorageError."""
        if self._closed:
            return
        try:
            if self._failure is None:
                self.sync()
        finally:
            self._closed = True
            super().close()
