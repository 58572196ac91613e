"""The cells of one run as a table: filtered, sorted and counted at the cost of what is shown."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evalwright.viewer.conditions import condition_of, sorting_of, wanted_outcomes
from evalwright.viewer.filters import Filter
from evalwright.viewer.labelled import LabelledCells
from evalwright.viewer.schema import TRIAL_BITS, VARIANT_BITS
from evalwright.viewer.texts import searchable
from evalwright.viewer.words import WordSearch

__all__ = ["CellPlace", "CellRow", "CellTable", "SharedReason"]

_COLUMNS = (
    "number, key, case_key, position, variant, trial, attempt, status, score, latency, cost, tokens, duration, "
    "error, failed, answer, flaky, digest"
)
_VARIANTS = (  # from one name to the next by the index: a run has a few of them, and may have a million cells
    "WITH RECURSIVE known (name) AS (SELECT min(variant) FROM cells UNION ALL "
    "SELECT (SELECT min(variant) FROM cells WHERE variant > name) FROM known WHERE name IS NOT NULL)"
)
_PLACES = {
    "evaluator": ("outcomes", "evaluator"),
    "tag": ("tags", "tag"),
    "variant": ("cells", "variant"),
    "error": ("cells", "error"),
    "metadata": ("metadata", "name"),
    "reason": ("groups", "reason"),
    "case": ("cells", "case_key"),
    "trial": ("cells", "trial"),
}
"""The table and the column of each kind of value."""
_FEW = 10
"""At most one cell in this many is looked up by an evaluator's outcome."""
_BATCH = 1000
_MOST_VALUES = 200
"""Choices that a filter offers at most."""


class CellRow(NamedTuple):
    """One cell as a list shows it. `latency` and `duration` in milliseconds, `cost` in US dollars."""

    number: int
    key: str
    case_key: str
    position: int
    variant: str
    trial: int
    attempt: int
    status: str | None
    score: float | None
    latency: float | None
    cost: float | None
    tokens: int | None
    duration: float | None
    error: str | None
    failed: str
    answer: str
    flaky: int
    digest: bytes | None
    """The same for the same answer, of which `answer` is the beginning."""

    @property
    def failed_evaluators(self) -> list[str]:
        return list(dict.fromkeys(name for name in self.failed.split("\n") if name))


CellPlace = tuple[int, int, CellRow | None, CellRow | None]
"""Where a cell stands among others: its place from 1, their number, the one before and the one after."""


class SharedReason(NamedTuple):
    """Cells that did not pass for one reason."""

    key: str
    text: str
    cells: int


class CellTable:
    """A database of `table_build`. Safe to share between threads: one query at a time."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file, self._lock = file, threading.RLock()
        self.words: WordSearch = WordSearch(file, self._lock)
        self.labelled: LabelledCells = LabelledCells(file, self._lock)
        self._values: dict[str, list[str]] = {}
        self._outcomes: dict[tuple[str, str], int] = {}
        self.total: int = self.fetch_value("SELECT count(*) FROM cells")
        self.without_results: int = int(self.fetch_value("SELECT value FROM facts WHERE name = 'without results'"))
        """Finished cells without a single result whose system had no error."""
        self.unread: list[str] = [note for (note,) in file.execute("SELECT note FROM unread")]

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def where(self, chosen: Filter) -> tuple[str, list[Any]]:
        """The condition with its values; empty if all cells are chosen."""
        for word in chosen.words:
            self.words.find(word)
        judged = self._count_judged(chosen.evaluator, wanted_outcomes(chosen)) if chosen.evaluator else 0
        return condition_of(chosen, one_by_one=judged > self.total // _FEW)

    def _count_judged(self, evaluator: str, outcomes: Sequence[str]) -> int:
        """The number of cells to which an evaluator gave one of these outcomes."""
        for outcome in outcomes:
            if (evaluator, outcome) not in self._outcomes:
                sql = "SELECT count(*) FROM outcomes WHERE evaluator = ? AND outcome = ?"
                self._outcomes[evaluator, outcome] = int(self.fetch_value(sql, [evaluator, outcome]))
        return sum(self._outcomes[evaluator, outcome] for outcome in outcomes)

    def fetch_all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        with self._lock:
            return self._file.execute(sql, values).fetchall()

    def fetch_value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row."""
        return self.fetch_all(sql, values)[0][0]

    def count(self, chosen: Filter) -> int:
        plain = replace(chosen, sort="suite", descending=False, group="none", columns=(), after=0)
        if plain == Filter(evaluator=chosen.evaluator, verdict=chosen.verdict) and chosen.evaluator:
            return self._count_judged(chosen.evaluator, wanted_outcomes(chosen))
        where, values = self.where(chosen)
        if plain == Filter(q=chosen.q) and len(chosen.words) == 1:
            return self.words.find(chosen.words[0])
        return self.total if not where else int(self.fetch_value(f"SELECT count(*) FROM cells{where}", values))

    def rows(self, chosen: Filter, limit: int | None = 100) -> list[CellRow]:
        """One page of the chosen cells."""
        where, values = self.where(chosen)
        order = sorting_of(chosen)
        # the numbers first: the index of the sort column holds them, and the rest is read for one page only
        numbers = f"SELECT number FROM cells{where} ORDER BY {order} LIMIT ? OFFSET ?"
        sql = f"SELECT {_COLUMNS} FROM cells WHERE number IN ({numbers}) ORDER BY {order}"
        rows = self.fetch_all(sql, [*values, -1 if limit is None else limit, chosen.after])
        return [CellRow(*row) for row in rows]

    def every(self, chosen: Filter) -> Iterator[CellRow]:
        """All chosen cells, some at a time."""
        after = 0
        while rows := self.rows(_at(chosen, after), _BATCH):
            yield from rows
            after += len(rows)

    def place(self, chosen: Filter, row: CellRow) -> CellPlace | None:
        """The position of a cell among the chosen: its place from 1, their number, the previous and the next.

        None if it is not among them.
        """
        where, values = self.where(chosen)
        if where and not self.fetch_value(f"SELECT count(*) FROM cells{where} AND number = ?", [*values, row.number]):
            return None
        if chosen.sort == "suite":
            before = self.fetch_value(
                f"SELECT count(*) FROM cells{where or ' WHERE 1'} AND number {'>' if chosen.descending else '<'} ?",
                [*values, row.number],
            )
        else:
            numbers = self.fetch_all(f"SELECT number FROM cells{where} ORDER BY {sorting_of(chosen)}", values)
            before = next((index for index, (number,) in enumerate(numbers) if number == row.number), 0)
        around = self.rows(_at(chosen, max(0, before - 1)), 3)
        position = next((index for index, other in enumerate(around) if other.number == row.number), 0)
        earlier = around[position - 1] if position else None
        later = around[position + 1] if position + 1 < len(around) else None
        return before + 1, self.count(chosen), earlier, later

    def by_key(self, key: str) -> CellRow | None:
        rows = self.fetch_all(f"SELECT {_COLUMNS} FROM cells WHERE key = ?", [key])
        return CellRow(*rows[0]) if rows else None

    def of_case(self, case: str, variant: str | None = None, trial: int | None = None) -> list[CellRow]:
        """The cells of a case by the name that is shown."""
        columns = {"case_key": case, "variant": variant, "trial": trial}
        wanted = {column: value for column, value in columns.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in wanted)
        sql = f"SELECT {_COLUMNS} FROM cells WHERE {where} ORDER BY number"
        return [CellRow(*row) for row in self.fetch_all(sql, [*wanted.values()])]

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """The searchable text of these cells, in lower case."""
        sql = "SELECT number, substr(text, 1, 600) FROM texts WHERE number IN (SELECT value FROM json_each(?))"
        return dict(self.fetch_all(sql, [json.dumps(list(numbers))]))

    def around(self, word: str, numbers: Sequence[int], most: int) -> dict[int, tuple[str, str, str]]:
        """The first match of a word in the searchable text of these cells: up to `most` characters before it, itself,
        up to `most` after it. Texts without it are left out."""
        wanted = searchable(word)
        sql = (
            "SELECT number, substr(text, max(1, at - :most), min(:most, at - 1)), substr(text, at, :size), "
            "substr(text, at + :size, :most) FROM (SELECT number, text, instr(text, :word) AS at FROM texts "
            "WHERE number IN (SELECT value FROM json_each(:numbers))) WHERE at"
        )
        parameters = {"word": wanted, "size": len(wanted), "most": most, "numbers": json.dumps(list(numbers))}
        with self._lock:
            rows = self._file.execute(sql, parameters).fetchall()
        return {number: (before, match, after) for number, before, match, after in rows}

    def inputs_of(self, positions: Sequence[int]) -> dict[int, str]:
        """The beginnings of the inputs of the cases at these positions."""
        sql = "SELECT position, text FROM inputs WHERE position IN (SELECT value FROM json_each(?))"
        return dict(self.fetch_all(sql, [json.dumps(list(positions))]))

    def tags_of(self, positions: Sequence[int]) -> dict[int, str]:
        """The tags of the cases at these positions."""
        sql = (
            "SELECT position, group_concat(tag, ', ') FROM tags "
            "WHERE position IN (SELECT value FROM json_each(?)) GROUP BY position"
        )
        return dict(self.fetch_all(sql, [json.dumps(list(positions))]))

    def metadata_of(self, name: str, positions: Sequence[int]) -> dict[int, str]:
        """The value of one metadata key of the cases at these positions."""
        sql = "SELECT position, value FROM metadata WHERE name = ? AND position IN (SELECT value FROM json_each(?))"
        return dict(self.fetch_all(sql, [name, json.dumps(list(positions))]))

    def reasons(self, chosen: Filter | None = None, limit: int = 20) -> tuple[list[SharedReason], int]:
        """Why cells did not pass, most frequent first, ties in the order of the suite; and the number of reasons."""
        where, values = self.where(chosen or Filter())
        within = f" WHERE number IN (SELECT number FROM cells{where})" if where else ""
        rows = self.fetch_all(
            # `nth` is that of the row with the smallest number: its place among the reasons of the first cell
            f"SELECT reason, text, count(*) AS n, min(number) AS first, nth FROM reasons JOIN groups USING (reason)"
            f"{within} GROUP BY reason ORDER BY n DESC, first, nth LIMIT ?",
            [*values, limit],
        )
        total = self.fetch_value("SELECT count(*) FROM groups") if not where else len(rows)
        return [SharedReason(key, text, count) for key, text, count, *_ in rows], total

    def reason(self, key: str) -> str | None:
        rows = self.fetch_all("SELECT text FROM groups WHERE reason = ?", [key])
        return rows[0][0] if rows else None

    def values(self, kind: str) -> list[str]:
        """The available choices: `tag`, `variant`, `error`, `evaluator` or `metadata` (names of keys)."""
        if kind not in self._values:
            self._values[kind] = self._read_values(kind)
        return self._values[kind]

    def has(self, kind: str, value: str) -> bool:
        """Whether any cell has a value of a kind of `values`, also if it is not among the first, or `reason`, `case`,
        `trial`."""
        table, column = _PLACES[kind]
        return bool(self.fetch_all(f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1", [value]))

    def _read_values(self, kind: str) -> list[str]:
        sql = {
            "tag": "SELECT DISTINCT tag FROM tags ORDER BY tag LIMIT ?",
            "variant": f"{_VARIANTS} SELECT name FROM known WHERE name IS NOT NULL "
            "ORDER BY (SELECT min(number) FROM cells WHERE variant = name) LIMIT ?",
            "error": "SELECT DISTINCT error FROM cells WHERE error IS NOT NULL ORDER BY error LIMIT ?",
            "evaluator": "SELECT DISTINCT evaluator FROM outcomes LIMIT ?",
            "metadata": "SELECT DISTINCT name FROM metadata ORDER BY name LIMIT ?",
        }[kind]
        return [value for (value,) in self.fetch_all(sql, [_MOST_VALUES])]

    def statuses(self, chosen: Filter | None = None) -> dict[str | None, int]:
        where, values = self.where(chosen or Filter())
        return dict(self.fetch_all(f"SELECT status, count(*) FROM cells{where} GROUP BY status", values))

    def case_keys(self, chosen: Filter) -> list[str]:
        """The cases of the chosen cells."""
        where, values = self.where(chosen)
        return [key for (key,) in self.fetch_all(f"SELECT DISTINCT case_key FROM cells{where}", values)]

    def by_case(self, variant: str) -> Iterator[tuple[Any, ...]]:
        """Each case of a variant with its trials together: name, place, key of the first cell, the status if all have
        the same, cells that passed, were judged, and in all, mean latency and cost, evaluators that failed, the first
        answer."""
        sql = (
            "SELECT case_key, min(number), key, "
            "CASE WHEN count(DISTINCT status) = 1 AND count(status) = count(*) THEN status END, sum(status = 'pass'), "
            "sum(status IN ('pass', 'fail', 'borderline')), count(*), avg(latency), avg(cost), "
            "group_concat(failed, ''), answer FROM cells WHERE variant = ? AND position > ? "
            "GROUP BY position ORDER BY position LIMIT 2000"
        )
        last = -1
        while rows := self.fetch_all(sql, [variant, last]):
            yield from rows
            last = rows[-1][1] >> VARIANT_BITS + TRIAL_BITS

    def outcomes(self, evaluator: str, numbers: Sequence[int]) -> dict[int, str]:
        """The outcomes of an evaluator for these cells."""
        sql = "SELECT number, outcome FROM outcomes WHERE evaluator = ? AND number IN (SELECT value FROM json_each(?))"
        return dict(self.fetch_all(sql, [evaluator, json.dumps(list(numbers))]))

    def judged_by(self, evaluator: str, order: str, threshold: float) -> list[str]:
        """The keys of cells with a verdict of an evaluator: those that another one judges otherwise first
        (`disagree`), those whose score is nearest to the threshold first (`threshold`), else as in the suite."""
        others = (
            "(SELECT count(*) FROM outcomes o WHERE o.number = outcomes.number AND o.evaluator != outcomes.evaluator "
            "AND o.outcome IN ('pass', 'fail') AND o.outcome != outcomes.outcome) DESC"
        )
        first = {"disagree": f"{others},", "threshold": f"outcomes.score IS NULL, abs(outcomes.score - {threshold!r}),"}
        sql = (
            "SELECT key FROM outcomes JOIN cells USING (number) WHERE evaluator = ? AND outcome IN ('pass', 'fail') "
            f"ORDER BY {first.get(order, '')} number"
        )
        return [key for (key,) in self.fetch_all(sql, [evaluator])]

    def strata(self, evaluator: str) -> dict[tuple[str, str], list[str]]:
        """The keys of cells with a verdict of an evaluator, by variant and verdict (`pass` or `fail`)."""
        sql = (
            "SELECT variant, outcome, key FROM outcomes JOIN cells USING (number) WHERE evaluator = ? "
            "AND outcome IN ('pass', 'fail') ORDER BY variant, outcome, number"
        )
        keys: dict[tuple[str, str], list[str]] = {}
        for variant, outcome, key in self.fetch_all(sql, [evaluator]):
            keys.setdefault((variant, outcome), []).append(key)
        return keys

    def number_of(self, case_key: str, variant: str, trial: int) -> int | None:
        rows = self.of_case(case_key, variant, trial)
        return rows[0].number if rows else None


def _at(chosen: Filter, after: int) -> Filter:
    return replace(chosen, after=after)
