"""What the readers and writers of runs need from one kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from evalwright.model.protocols import Part
from evalwright.model.summary import RunSummary
from evalwright.stores.tables.rows import Batch, Row

__all__ = ["Rows", "RunTables"]

Rows = Callable[[], Iterable[Row]]


class RunTables(Protocol):
    """The rows of one run in one kind of database. Lines are bytes and end with LF.

    Reading raises InputError, writing StorageError; each writing method is one transaction.
    """

    location: str
    artifacts: Path
    pace: float
    """Minimum seconds between two writes while cells finish; `sync` writes what is left."""

    def plan(self) -> bytes | None: ...

    def cases(self, start: int, most: int) -> list[tuple[int, bytes]]:
        """The first cases from a position on, at most so many, each with its position and in their order."""

    def parts(self, count: int) -> list[Part]: ...

    def lines(self, table: str, part: Part | None) -> Iterator[tuple[int, bytes]]:
        """Row numbers and records of a table in the order of writing, as of the moment when the first one is read."""

    def span(self, table: str, until: int | None = None) -> tuple[int, int]:
        """The highest row number of a table, and the number of its rows, both up to a number."""

    def rows(self, table: str, numbers: Sequence[int]) -> list[bytes]:
        """The records with these numbers, sorted by them; fewer if some no longer exist."""

    def index_place(self) -> Path:
        """The folder in which the index of the run is kept, made if it is missing. Raises OSError."""

    def summary(self) -> bytes | None: ...

    def document(self, name: str) -> bytes | None: ...

    def artifact_lines(self) -> Iterable[bytes]:
        """The records of artifacts, which our own runs also have in folders."""

    def write(self, batch: Batch) -> None:
        """Write rows; they replace rows with the same key."""

    def make_durable(self) -> None: ...

    def hurry(self) -> None:
        """See `RunWriter`."""

    def put_plan(self, line: bytes) -> None: ...

    def put_summary(self, summary: RunSummary, line: bytes) -> None: ...

    def put_artifact(self, row: Row) -> None: ...

    def replace_judgements(self, results: Rows, verdicts: Rows) -> None:
        """Replace all old rows by these, with greater numbers. Each function is called once for each attempt to
        write."""

    def prepare_to_fork(self) -> None:
        """Close what another process must not inherit."""

    def close(self) -> None: ...
