"""The runs that can be viewed: listed for each request, each opened on demand."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evalwright.errors import EvalwrightError, InputError
from evalwright.model.damage import missing_results
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary
from evalwright.scoring.verdict import names_needed
from evalwright.viewer.filters import Filter
from evalwright.viewer.kept_tables import connection, kept_table
from evalwright.viewer.labels import LabelFile, LabelOrder, cells_to_label
from evalwright.viewer.live import LiveRun, Mark
from evalwright.viewer.records import CellReader, StoredCell
from evalwright.viewer.search import MessageSearch
from evalwright.viewer.table import CellRow, CellTable
from evalwright.viewer.table_build import fill_table

if TYPE_CHECKING:
    from evalwright.decisions.runs import JudgedRuns

__all__ = ["OpenRun", "OpenedRun", "RunSource", "Shelf"]

_IN_MEMORY = 40 << 20
"""Bytes of traces up to which a table is made at once and in memory."""
_PATIENCE = 0.4
"""Seconds for which a page waits for a table that is being made."""
_MOST_OPEN = 8
_NEVER = datetime.min.replace(tzinfo=UTC)
_MOST_SEARCHES = 20


OpenedRun = tuple[RunReader, Plan]


class RunSource(Protocol):
    """A stored run, as it is handed to the viewer."""

    @property
    def id(self) -> str:
        """Its name in addresses."""

    @property
    def path(self) -> str:
        """The path of the run for commands."""

    def open(self) -> OpenedRun:
        """Raises EvalwrightError if it cannot be read."""

    def judges(self, earlier: OpenedRun, opened: OpenedRun) -> tuple[Sequence[JudgedRuns], Sequence[str]]:
        """The evaluators of an earlier run and of this one that have human labels, and the names of judges without any.
        Raises EvalwrightError."""

    def started_at(self) -> datetime:
        """When the run was started; it does not change. Raises EvalwrightError."""

    def summary(self) -> RunSummary:
        """The stored summary, or one computed from the records. Raises EvalwrightError."""

    def stamp(self) -> str:
        """A text that changes when records are added."""

    def size(self) -> int:
        """Bytes of its traces, as far as known."""

    def is_written(self) -> bool:
        """Whether a process is writing it now."""

    def labels_path(self) -> Path:
        """The file of human labels."""

    def is_baseline(self) -> bool:
        """Whether later runs of its eval are compared with it."""

    def appended(self, kind: str, offset: int) -> tuple[Sequence[Mark], int]:
        """The records of a kind that were appended after a position, and the position after them."""


class OpenRun:
    """One run at one moment: plan, summary and the table of its cells."""

    def __init__(self, source: RunSource, stamp: str) -> None:
        self.id: str = source.id
        self.path: str = source.path
        self.stamp: str = stamp
        self.source: RunSource = source
        self._made, self._took = time.monotonic(), 0.1
        self._reader, plan = source.open()
        self._cells = CellReader(self._reader)
        self.plan: Plan = plan
        self._judged = bool(names_needed(self._reader, plan)) and not plan.needs_verdicts
        self.artifacts: Path = self._reader.artifacts
        self.has_artifacts: bool = self.artifacts.is_dir()
        self.summary: RunSummary = source.summary()
        self.scored: bool = self.summary.scored is True
        self.read: int = 0
        self.problem: str | None = None
        self._table: CellTable | None = None
        self._labels_read: tuple[int, int] | None = None
        self._ready = threading.Event()
        self._searching, self._reading = threading.Lock(), threading.Lock()
        self._to_label: dict[LabelOrder, list[CellRow]] = {}
        self._searches: dict[tuple[str, ...], MessageSearch] = {}
        threading.Thread(target=self._make, daemon=True, name=f"table of {self.id}").start()

    @property
    def is_fresh(self) -> bool:
        """Whether it was made a moment ago: a run that is being written is not reread for each page."""
        age = time.monotonic() - self._made
        return age < 20 * self._took and self.source.is_written()

    def case_name(self, position: int) -> str:
        """The name of the case at a position of the dataset."""
        try:
            return self._reader.case(position).key
        except EvalwrightError:
            return f"case {position + 1}"

    @cached_property
    def labels(self) -> LabelFile:
        """The human labels of its answers."""
        return LabelFile(self.source.labels_path())

    @property
    def table(self) -> CellTable | None:
        """None while the table is being made."""
        self._ready.wait(_PATIENCE if self.source.size() > _IN_MEMORY else None)
        if self._table is not None:
            self._note_labels(self._table)
        return self._table

    def whole_table(self) -> CellTable:
        """The table, once it is made. Raises InputError if it cannot be."""
        self._ready.wait()
        if self._table is None:
            raise InputError(f"{self.path}: {self.problem or 'the cells cannot be read'}")
        self._note_labels(self._table)
        return self._table

    def _note_labels(self, table: CellTable) -> None:
        """Labels are given while a run is looked at: they are read again when their file has changed."""
        stamp = self.labels.stamp()
        if stamp == self._labels_read:
            return
        table.labelled.replace(
            (*answer, label.evaluator, label.verdict_at(self.plan.lowest_passing(label.evaluator)))
            for answer, labels in self.labels.by_answer().items()
            for label in labels
        )
        self._labels_read = stamp

    @property
    def unread(self) -> list[str]:
        """The records that cannot be read and are not in the table."""
        table = self.table
        if table is None:
            return []
        if table.unread or not (self._judged and table.without_results):
            return table.unread
        # of a cell that ended while the table was made, the table may have the verdict without the results
        return [] if self.source.is_written() else [missing_results(table.without_results)]

    @property
    def progress(self) -> float:
        """The share of the records that are in the table so far; a cell has a trace, a verdict and its results."""
        of_a_cell = 2 + len(self.plan.evaluators)
        return min(0.99, self.read / max(1, self.summary.cells_total * of_a_cell))

    @property
    def indexing(self) -> str:
        """How far the table is, or why it cannot be made, as text."""
        return self.problem or f"indexing {100 * self.progress:.0f} %"

    def search(self, chosen: Filter) -> MessageSearch | None:
        """The search for the words of a filter in all records; None while there is no table."""
        table, words = self.table, tuple(chosen.words)
        if table is None:
            return None
        with self._searching:
            known = self._searches.get(words)
            if known is None:
                while len(self._searches) >= _MOST_SEARCHES:
                    self._searches.pop(next(iter(self._searches))).stop()
                known = self._searches[words] = MessageSearch(self.source.open, table, words, table.total)
        return known.wait()

    def cells_to_label(self, order: LabelOrder, threshold: float) -> list[CellRow]:
        """The answers to be labelled; empty while there is no table."""
        table = self.table
        if table is None:
            return []
        if order not in self._to_label:
            self._to_label = {order: cells_to_label(table, order, threshold)}
        return self._to_label[order]

    def _make(self) -> None:
        try:
            if self.source.size() > _IN_MEMORY:
                file = kept_table(self.path, self.stamp, lambda place: self._built(place).close())
            else:
                file = self._built(":memory:")
            self._table = CellTable(file)
        except (EvalwrightError, OSError, sqlite3.Error) as error:
            self.problem = str(error)
        finally:
            self._took = time.monotonic() - self._made
            self._ready.set()

    def _built(self, place: str | Path) -> sqlite3.Connection:
        file = connection(place)
        file.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        reader, plan = self.source.open()
        with closing(reader):
            fill_table(file, reader, plan, self._note)
        file.execute("INSERT INTO facts VALUES ('stamp', ?)", [self.stamp])
        file.commit()
        return file

    def _note(self, count: int) -> None:
        self.read = count

    def records(self, row: CellRow) -> StoredCell:
        """The records of a cell. Raises EvalwrightError."""
        with self._reading:
            return self._cells.records(row)


class Shelf:
    """All runs by their names in addresses, newest first."""

    def __init__(self, sources: Callable[[], Iterable[RunSource]]) -> None:
        self._sources, self._lock = sources, threading.Lock()
        self._open: dict[str, OpenRun] = {}
        self._summaries: dict[str, tuple[str, RunSummary | str]] = {}
        self._live: dict[str, LiveRun] = {}
        self._listed: tuple[float, dict[str, RunSource]] = (0.0, {})
        self._starts: dict[str, datetime] = {}

    def sources(self) -> dict[str, RunSource]:
        """Listed for each request, but at most once in a tenth of a second."""
        now = time.monotonic()
        if now - self._listed[0] > 0.1 or not self._listed[1]:
            sources: dict[str, RunSource] = {}
            for source in self._sources():
                sources.setdefault(source.id, source)
            order = sorted(sources, key=lambda run: (self._started_at(sources[run]), run), reverse=True)
            self._listed = (now, {run: sources[run] for run in order})
        return self._listed[1]

    def _started_at(self, source: RunSource) -> datetime:
        """In whole seconds, as ids have it; runs that cannot be read are the last."""
        if source.id not in self._starts:
            try:
                self._starts[source.id] = source.started_at().astimezone(UTC).replace(microsecond=0)
            except (EvalwrightError, OSError):
                return _NEVER
        return self._starts[source.id]

    def source(self, run_id: str) -> RunSource | None:
        """The run of that name; if it is not listed, it may be newer than the list, which is then rebuilt."""
        if run_id not in self.sources():
            self._listed = (0.0, {})
        return self.sources().get(run_id)

    def summary(self, source: RunSource) -> RunSummary | str:
        """The summary of a run, or why it cannot be read."""
        try:
            stamp = source.stamp()
            known = self._summaries.get(source.id)
            if known is None or known[0] != stamp:
                known = self._summaries[source.id] = (stamp, source.summary())
            return known[1]
        except (EvalwrightError, OSError) as error:
            return str(error)

    def live(self, run: OpenRun) -> LiveRun:
        """The progress of a run, shared by all its viewers."""
        with self._lock:
            return self._live.setdefault(run.id, LiveRun(run.source, run.plan, run.case_name, scored=run.scored))

    def open(self, run_id: str) -> OpenRun:
        """Raises KeyError for a run that is not listed, EvalwrightError for one that cannot be read."""
        source = self.source(run_id)
        if source is None:
            raise KeyError(run_id)
        with self._lock:
            stamp = source.stamp()
            known = self._open.get(run_id)
            if known is None or (known.stamp != stamp and not known.is_fresh):
                self._open.pop(run_id, None)
                known = self._open[run_id] = OpenRun(source, stamp)
                while len(self._open) > _MOST_OPEN:
                    del self._open[next(iter(self._open))]
            return known
