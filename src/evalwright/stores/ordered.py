"""The cells of a stored run by variant and trial, in the order of the dataset, for reports in which order matters."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from types import TracebackType

import msgspec

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace

__all__ = ["OrderedCells"]

# No journal: the file is temporary, so it never has to be recovered.
_TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE traces (
    variant TEXT, trial INTEGER, case_id TEXT, attempt INTEGER, body BLOB, position INTEGER,
    PRIMARY KEY (variant, trial, case_id)
);
CREATE TABLE verdicts (
    variant TEXT, trial INTEGER, case_id TEXT, attempt INTEGER, body BLOB, position INTEGER,
    PRIMARY KEY (variant, trial, case_id)
);
CREATE TABLE results (
    variant TEXT, trial INTEGER, case_id TEXT, attempt INTEGER, body BLOB, evaluator TEXT,
    PRIMARY KEY (variant, trial, case_id, evaluator)
);
"""
# The newest attempt of a cell wins; of two records of the same attempt, the later one.
_KEEP = (
    "INSERT INTO {0} VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
    "SET attempt = excluded.attempt, body = excluded.body WHERE excluded.attempt >= attempt"
)
_TRACES = "SELECT case_id, attempt, body FROM traces WHERE (variant, trial) = (?, ?) ORDER BY position"
_RESULTS = "SELECT body FROM results WHERE (variant, trial, case_id, attempt) = (?, ?, ?, ?) ORDER BY rowid"

_ALL = """
SELECT t.variant, t.trial, t.case_id, t.attempt, t.body, v.body
FROM traces t LEFT JOIN variants p USING (variant) LEFT JOIN verdicts v USING (variant, trial, case_id, attempt)
ORDER BY t.position, t.case_id, p.place, t.variant, t.trial
"""


class OrderedCells:
    """The newest trace of each cell with its results, in a temporary file that is removed with this object."""

    def __init__(self, reader: RunReader) -> None:
        encode = msgspec.json.encode
        self._reader = reader
        # SQLite keeps such a database in memory and, if it grows, in an unnamed file. If a generator over it is
        # abandoned before its end, whichever thread collects the generator closes it.
        self._spool = sqlite3.connect("", check_same_thread=False)
        self._spool.executescript(_TABLES)
        traces = (
            (t.variant_name, t.trial, t.case_key, t.attempt, encode(t), t.case_index) for t in reader.traces(Trace)
        )
        self._spool.executemany(_KEEP.format("traces"), traces)
        results = (
            (r.variant_name, r.trial, r.case_key, r.attempt, encode(r), r.evaluator)
            for r in reader.results(EvaluationResult)
        )
        self._spool.executemany(_KEEP.format("results"), results)

    def of(self, variant: str, trial: int) -> Iterator[tuple[Trace, list[EvaluationResult]]]:
        """The cells of one variant in one trial, by position of their cases."""
        for case_id, attempt, body in self._spool.execute(_TRACES, (variant, trial)):
            key = (variant, trial, case_id, attempt)
            rows = [msgspec.json.decode(row, type=EvaluationResult) for (row,) in self._spool.execute(_RESULTS, key)]
            yield msgspec.json.decode(body, type=Trace), rows

    def all(self, variants: Sequence[str]) -> Iterator[tuple[Trace, list[EvaluationResult], CaseVerdict | None]]:
        """Every cell by position of its case, position of its variant in `variants`, and trial; with the stored
        verdict."""
        self._spool.execute("CREATE TABLE variants (variant TEXT PRIMARY KEY, place INTEGER)")
        self._spool.executemany("INSERT INTO variants VALUES (?, ?)", ((name, i) for i, name in enumerate(variants)))
        verdicts = (
            (v.variant_name, v.trial, v.case_key, v.attempt, msgspec.json.encode(v), v.case_index)
            for v in self._reader.verdicts(CaseVerdict)
        )
        self._spool.executemany(_KEEP.format("verdicts"), verdicts)
        for variant, trial, case_id, attempt, body, verdict in self._spool.execute(_ALL):
            rows = self._spool.execute(_RESULTS, (variant, trial, case_id, attempt))
            yield (
                msgspec.json.decode(body, type=Trace),
                [msgspec.json.decode(row, type=EvaluationResult) for (row,) in rows],
                None if verdict is None else msgspec.json.decode(verdict, type=CaseVerdict),
            )

    def __enter__(self) -> OrderedCells:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        self._spool.close()
