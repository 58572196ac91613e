"""The index of a run in a database: made when a command first asks for it, beside the database and not in it.

The numbers of rows only grow, and a record that replaces another gets a new one. So the rows up to a number are the
same as long as there are as many of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat

from evalwright.errors import InputError, StorageError
from evalwright.model.plan import Plan
from evalwright.stores.index import index_at
from evalwright.stores.index.file import INDEX
from evalwright.stores.index.reading import RunIndex
from evalwright.stores.index.sources import RECORDS, CoveredRecords, RecordLines, RecordsReplaced
from evalwright.stores.tables.statements import RunTables

__all__ = ["index_of_tables"]

_TABLES = dict(zip(RECORDS, ("traces", "results", "verdicts"), strict=True))
_SHARE = 5000
"""Rows of all tables that are read at a time."""
_TAIL = 64
"""Bytes of the last row read that are remembered, to tell later whether that row is still there."""


def index_of_tables(tables: RunTables, plan: Plan | None, *, keep: bool, make: bool) -> RunIndex | None:
    """The index of a run in a database; see `evalwright.stores.index.opened_index`. Without `make`, only an existing
    one."""
    if not (make or _is_there(tables)):
        return None
    return index_at([tables.index_place] if keep else [], _TableSource(tables), plan)


def _is_there(tables: RunTables) -> bool:
    try:
        return (tables.index_place() / INDEX).exists()
    except OSError:
        return False


class _TableSource:
    def __init__(self, tables: RunTables) -> None:
        self._tables = tables
        self.location: str = tables.location

    @contextmanager
    def moment(self) -> Iterator[_Rows]:
        yield _Rows(self._tables)

    def matches(self, covered: Mapping[str, CoveredRecords]) -> bool:
        return all(_covered_until(self._tables, name, noted.length) == noted for name, noted in covered.items())

    def whole(self, covered: Mapping[str, CoveredRecords]) -> bool:
        return True  # a row is either complete or absent

    def is_written(self) -> bool:
        return False  # only readers make the index of a run in a database

    def near(self, covered: Mapping[str, CoveredRecords]) -> bool:
        return len(covered) == len(RECORDS)  # what other processes make appears at once, in one transaction

    def lines(self, name: str, places: Sequence[tuple[int, int]]) -> list[bytes]:
        numbers = [number for number, _ in places]
        lines = self._tables.rows(_TABLES[name], numbers)
        if len(lines) < len(numbers):
            return lines
        of_numbers = dict(zip(sorted(numbers), lines, strict=True))
        return [of_numbers[number] for number in numbers]

    def close(self) -> None:
        """The tables are closed by the reader that owns them."""


class _Rows:
    """The rows that exist when this is created. They are read one after another, and therefore checked again at the
    end."""

    def __init__(self, tables: RunTables) -> None:
        self._tables = tables
        # In this order: for every verdict and result that is seen, the trace was written before.
        self._noted = {name: _covered_until(tables, name) for name in reversed(RECORDS)}
        self.ends: Mapping[str, int] = {name: entry.length for name, entry in self._noted.items()}

    def shares(self, starts: Mapping[str, int], ends: Mapping[str, int]) -> int:
        return -(-sum(ends[name] - starts[name] for name in RECORDS) // _SHARE)

    def read(self, name: str, start: int, until: int) -> tuple[RecordLines, int]:
        with _reading():
            rows = list(self._tables.lines(_TABLES[name], (start + 1, until + 1)))
        return RecordLines([line for _, line in rows], [number for number, _ in rows], repeat(1)), until

    def covered(self, name: str, at: int) -> CoveredRecords:
        if _covered_until(self._tables, name, at) != self._noted[name]:
            raise RecordsReplaced
        return self._noted[name]


def _covered_until(tables: RunTables, name: str, until: int | None = None) -> CoveredRecords:
    table = _TABLES[name]
    with _reading():
        last, count = tables.span(table, until)
        tail = b"".join(tables.rows(table, [last]))[-_TAIL:] if count else b""
    return CoveredRecords(last, tail, count)


@contextmanager
def _reading() -> Iterator[None]:
    """A database that cannot be read says nothing about its records: this is not noted, and a scan will report it."""
    try:
        yield
    except (InputError, StorageError) as error:
        raise OSError(str(error)) from error
