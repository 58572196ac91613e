"""The cells of two runs, or of two variants, case by case: which changed, and in which direction."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from evalwright.decisions.clusters import explain
from evalwright.decisions.runs import TwoRuns, one_run, two_runs
from evalwright.decisions.terms import Terms
from evalwright.errors import EvalwrightError, InputError
from evalwright.model.decision import Decision
from evalwright.viewer.filters import Filter
from evalwright.viewer.shelf import OpenedRun, OpenRun
from evalwright.viewer.table import CellTable

__all__ = ["CHANGES", "ComparedPair", "PairSide", "PairedRuns", "Pairings"]

CHANGES = ("worse", "better", "not comparable", "only in A", "only in B", "unchanged")
"""In the order of the page."""
_MOST = 4
"""How many comparisons are kept, and how many filters of each."""
_PATIENCE = 0.4
"""Seconds for which a page waits for a comparison that is being made."""
_ALL = Filter()
_SIDE = """
CREATE TABLE {0} (case_key TEXT PRIMARY KEY, number INTEGER, key TEXT, status TEXT, passed INTEGER, judged INTEGER,
    cells INTEGER, latency REAL, cost REAL, failed TEXT, answer TEXT) WITHOUT ROWID;
"""
_FIELDS = ("key", "status", "passed", "judged", "cells", "latency", "cost", "failed", "answer")
_OF_A, _OF_B = (", ".join(f"{side}.{name} AS {name}_{side}" for name in _FIELDS) for side in "ab")
_NO_B = ", ".join(f"NULL AS {name}_b" for name in _FIELDS)
_NO_A = _NO_B.replace("_b", "_a")
_COLUMNS = ", ".join(["number", "case_key", "change", "size", *(f"{name}_{side}" for side in "ab" for name in _FIELDS)])
_PAIRS = f"""
CREATE TABLE pairs AS
SELECT a.number AS number, a.case_key AS case_key,
    CASE WHEN b.case_key IS NULL THEN 'only in A' WHEN NOT a.judged OR NOT b.judged THEN 'not comparable'
        WHEN b.passed * a.judged < a.passed * b.judged THEN 'worse'
        WHEN b.passed * a.judged > a.passed * b.judged THEN 'better' ELSE 'unchanged' END AS change,
    coalesce(abs(1.0 * b.passed / b.judged - 1.0 * a.passed / a.judged), 0) AS size,
    {_OF_A}, {_OF_B}
FROM a LEFT JOIN b USING (case_key)
UNION ALL
SELECT b.number, b.case_key, 'only in B', 0, {_NO_A}, {_OF_B}
FROM b WHERE b.case_key NOT IN (SELECT case_key FROM a);
CREATE INDEX by_change ON pairs (change, size DESC, number);
DROP TABLE a;
DROP TABLE b;
"""


class PairSide(NamedTuple):
    """A case on one side: its first cell, and how many of those with a verdict passed."""

    key: str
    status: str | None
    passed: int
    judged: int
    cells: int
    latency: float | None
    cost: float | None
    failed: str
    answer: str

    @property
    def failures(self) -> dict[str, Fraction]:
        """The share of the trials that each evaluator failed; those that failed none are not in it."""
        counts = Counter(name for name in self.failed.split("\n") if name)
        return {name: Fraction(number, self.judged or self.cells) for name, number in counts.items()}

    @property
    def share(self) -> str:
        """The share that passed of several trials; empty for a single one, or if none was judged."""
        return f"{self.passed}/{self.judged}" if self.cells > 1 and self.judged else ""


class ComparedPair(NamedTuple):
    """A case on both sides; None on one that does not have it."""

    number: int
    case_key: str
    change: str
    size: float
    """By how much the share of trials that passed differs, 0 to 1."""
    a: PairSide | None
    b: PairSide | None

    @property
    def evaluators(self) -> list[str]:
        """Evaluators that failed different shares of the trials."""
        if self.a is None or self.b is None:
            return []
        before, after = self.a.failures, self.b.failures
        return sorted(name for name in {*before, *after} if before.get(name, 0) != after.get(name, 0))

    @property
    def key(self) -> str:
        """The key in addresses: of the cell of A, or of B if A has none."""
        side = self.a or self.b
        return side.key if side is not None else ""


class PairedRuns:
    """Two sides with their decision, and the pairs of their cases."""

    def __init__(self, a: OpenRun, b: OpenRun, variant_a: str, variant_b: str) -> None:
        self.a: OpenRun = a
        self.b: OpenRun = b
        self.variant_a: str = variant_a
        self.variant_b: str = variant_b
        self.problem: str = ""
        self.decision: Decision | None = None
        self.warnings: list[str] = []
        self.differences: dict[str, float | None] = {}
        """By variant, where two runs have several in both; decided as the one that is shown, None where no case was
        judged in both."""
        self._names: Mapping[str, str] = {}
        """The names in B of cases of A, where they differ."""
        self._lock = threading.Lock()
        self._narrowed: list[str] = []
        self._file = sqlite3.connect("", check_same_thread=False)
        self._file.execute(
            "CREATE TABLE narrowed (query TEXT, case_key TEXT, PRIMARY KEY (query, case_key)) WITHOUT ROWID"
        )
        try:
            self.decision = self._decide()
        except EvalwrightError as error:
            self.problem = str(error)
        self._fill()

    def _decide(self) -> Decision:
        terms = Terms(slices=("tag",) if self.b.whole_table().values("tag") else ())
        a = self.a.source.open()
        with closing(a[0]):
            if self.a.id == self.b.id:
                return self._explained_decision(one_run(*a, terms), a, a)
            b = self.b.source.open()
            with closing(b[0]):
                return self._explained_decision(two_runs(*a, *b, terms), a, b)

    def _explained_decision(self, runs: TwoRuns, a: OpenedRun, b: OpenedRun) -> Decision:
        """The decision with its reasons; warnings are kept."""
        runs.know(*self.b.source.judges(a, b))
        decision = runs.decision(self.variant_a, self.variant_b)
        explain(runs.before, b[0], [decision])
        self._names = getattr(runs.before, "names", {})
        self.warnings = list(dict.fromkeys(decision.warnings))
        shared = [name for name in runs.a if name in runs.b]
        if self.a.id != self.b.id and len(shared) > 1:
            plain = msgspec.structs.replace(runs, known=runs.known._replace(slices={}))
            self.differences = {name: plain.decision(name, name).difference for name in shared}
        return decision

    def _fill(self) -> None:
        for name, run, variant in (("a", self.a, self.variant_a), ("b", self.b, self.variant_b)):
            self._file.executescript(_SIDE.format(name))
            try:
                rows = _side_rows(run.whole_table(), variant, self._names if name == "a" else {})
            except InputError as error:
                self.problem = str(error)
                continue
            self._file.executemany(f"INSERT OR IGNORE INTO {name} VALUES (?,?,?,?,?,?,?,?,?,?,?)", rows)
        self._file.executescript(_PAIRS)

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._file.execute("SELECT change, count(*) FROM pairs GROUP BY change"))

    def pairs(
        self, chosen: Sequence[str], narrowed: Filter = _ALL, after: int = 0, limit: int = 100
    ) -> list[ComparedPair]:
        """The pairs with one of these changes, worst first: by kind of change, the largest of a kind first, then in the
        order of the suite. Only cases with a cell on either side that matches `narrowed`."""
        where, values = self._where(chosen, narrowed)
        order = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(CHANGES))
        sql = (
            f"SELECT {_COLUMNS} FROM pairs {where} ORDER BY CASE change {order} END, size DESC, number LIMIT ? OFFSET ?"
        )
        with self._lock:
            rows = self._file.execute(sql, [*values, limit, after]).fetchall()
        return [_pair(row) for row in rows]

    def count(self, chosen: Sequence[str], narrowed: Filter = _ALL) -> int:
        where, values = self._where(chosen, narrowed)
        with self._lock:
            return int(self._file.execute(f"SELECT count(*) FROM pairs {where}", values).fetchone()[0])

    def _where(self, chosen: Sequence[str], narrowed: Filter) -> tuple[str, list[Any]]:
        where, values = f"WHERE change IN ({_marks(chosen)})", [*chosen]
        if narrowed.narrows:
            query = narrowed.query()
            self._narrow(query, narrowed)
            where += " AND case_key IN (SELECT case_key FROM narrowed WHERE query = ?)"
            values.append(query)
        return where, values

    def _narrow(self, query: str, narrowed: Filter) -> None:
        """Note the cases that a filter leaves; those of recent filters are kept for their next pages."""
        with self._lock:
            if query in self._narrowed:
                return
            while len(self._narrowed) >= _MOST:
                self._file.execute("DELETE FROM narrowed WHERE query = ?", [self._narrowed.pop(0)])
            for run, variant, names in ((self.a, self.variant_a, self._names), (self.b, self.variant_b, {})):
                if run.table is not None:
                    cases = run.table.case_keys(replace(narrowed, variant=(variant,)))
                    self._file.executemany(
                        "INSERT OR IGNORE INTO narrowed VALUES (?, ?)",
                        ((query, names.get(case, case)) for case in cases),
                    )
            self._narrowed.append(query)

    def of_key(self, key: str) -> ComparedPair | None:
        sql = f"SELECT {_COLUMNS} FROM pairs WHERE key_a = ? OR key_b = ? LIMIT 1"
        with self._lock:
            row = self._file.execute(sql, [key, key]).fetchone()
        return None if row is None else _pair(row)

    def next_changed(
        self, pair: ComparedPair, listed: Sequence[str] = CHANGES, narrowed: Filter = _ALL
    ) -> ComparedPair | None:
        """The next changed pair of the list that `pairs` gives; after one that did not change, the first."""
        changed = [name for name in CHANGES[:-1] if name in listed] or CHANGES[:-1]
        if pair.change == "unchanged":
            return next(iter(self.pairs(changed, narrowed, limit=1)), None)
        where, values = self._where([pair.change], narrowed)
        with self._lock:
            row = self._file.execute(
                f"SELECT {_COLUMNS} FROM pairs {where} AND (size < ? OR size = ? AND number > ?) "
                "ORDER BY size DESC, number LIMIT 1",
                [*values, pair.size, pair.size, pair.number],
            ).fetchone()
        if row is not None and pair.change in changed:
            return _pair(row)
        later = [name for name in changed if CHANGES.index(name) > CHANGES.index(pair.change)]
        return next(iter(self.pairs(later, narrowed, limit=1)), None) if later else None

    def close(self) -> None:
        with self._lock:
            self._file.close()


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _pair(row: tuple[Any, ...]) -> ComparedPair:
    ours, a, b = row[: -2 * len(_FIELDS)], row[-2 * len(_FIELDS) : -len(_FIELDS)], row[-len(_FIELDS) :]
    return ComparedPair(*ours, *(PairSide(*side) if side[0] else None for side in (a, b)))


def _side_rows(table: CellTable, variant: str, names: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    for case, *rest in table.by_case(variant):
        yield names.get(case, case), *rest


class _ComparisonInProgress(NamedTuple):
    """A comparison of two runs as they were at a moment; `shown` once a page has shown it."""

    stamps: tuple[str, str]
    result: Future[PairedRuns]
    shown: threading.Event


class Pairings:
    """Recent comparisons, as folding two runs takes time; made in threads, one by one."""

    def __init__(self) -> None:
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._known: dict[tuple[str, ...], _ComparisonInProgress] = {}

    def of(self, a: OpenRun, b: OpenRun, variant_a: str, variant_b: str) -> PairedRuns | None:
        """None while it is being made; a later request gets it."""
        key, stamps = (a.id, b.id, variant_a, variant_b), (a.stamp, b.stamp)
        with self._lock:
            pair = self._known.get(key)
            # For a run that keeps growing, it must not be restarted before it has been shown once.
            if pair is None or (pair.stamps != stamps and pair.shown.is_set()):
                self._known.pop(key, None)
                done = [key for key, making in self._known.items() if making.result.done()]
                for oldest in done[: max(0, len(done) + 1 - _MOST)]:
                    del self._known[oldest]
                pair = self._known[key] = _ComparisonInProgress(stamps, Future(), threading.Event())
                job = (pair.result, a, b, variant_a, variant_b)
                threading.Thread(target=self._make, args=job, daemon=True, name=f"comparison of {a.id}").start()
        result = pair.result
        wait([result], _PATIENCE)
        if not result.done():
            return None
        pair.shown.set()
        if result.exception() is not None or result.result().problem:
            with self._lock:  # reported once, and tried again at the next request
                if self._known.get(key) is pair:
                    del self._known[key]
        return result.result()

    def _make(self, result: Future[PairedRuns], *sides: Any) -> None:
        try:
            with self._turn:
                result.set_result(PairedRuns(*sides))
        except Exception as error:
            result.set_exception(error)
