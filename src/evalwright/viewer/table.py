"""The cells of one run as a table: filtered, sorted, grouped and counted at the cost of what is shown."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evalwright.model.result import JUDGED
from evalwright.viewer.conditions import condition_of, literal_pattern, marks, sorting_of, wanted_outcomes
from evalwright.viewer.filters import Filter
from evalwright.viewer.schema import TRIAL_BITS, VARIANT_BITS
from evalwright.viewer.texts import searchable

__all__ = ["CellGroup", "CellPlace", "CellRow", "CellTable", "SharedReason"]

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
_GROUP_ROWS = 20
_FEW = 10
"""At most one cell in this many is looked up by an evaluator's outcome."""
_MOST_GROUPS = 50
_MOST_VALUES = 200
"""Choices that a filter offers at most."""
_WORD_SECONDS = 120.0
"""How long the cells of a word are kept: longer than any page takes."""


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


class CellGroup(NamedTuple):
    """Cells with one thing in common: how many, how many of those with a verdict passed, and the first of them."""

    name: str
    cells: int
    passed: int
    judged: int
    filter: Filter
    rows: list[CellRow]


class _SearchedWord(NamedTuple):
    """When a word was last asked for, and how many cells have it."""

    used: float
    cells: int


class CellTable:
    """A database of `table_build`. Safe to share between threads: one query at a time."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file, self._lock = file, threading.RLock()
        file.execute("CREATE TEMP TABLE hits (word TEXT, number INTEGER, PRIMARY KEY (word, number)) WITHOUT ROWID")
        file.execute("CREATE TEMP TABLE said (word TEXT, number INTEGER, PRIMARY KEY (word, number)) WITHOUT ROWID")
        self._words: dict[str, _SearchedWord] = {}
        self._values: dict[str, list[str]] = {}
        self._outcomes: dict[tuple[str, str], int] = {}
        self.total: int = self._fetch_value("SELECT count(*) FROM cells")
        self.unread: list[str] = [note for (note,) in file.execute("SELECT note FROM unread")]

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _where(self, chosen: Filter) -> tuple[str, list[Any]]:
        """The condition with its values; empty if all cells are chosen."""
        for word in chosen.words:
            self._look_for(word)
        judged = self._count_judged(chosen.evaluator, wanted_outcomes(chosen)) if chosen.evaluator else 0
        return condition_of(chosen, one_by_one=judged > self.total // _FEW)

    def _count_judged(self, evaluator: str, outcomes: Sequence[str]) -> int:
        """The number of cells to which an evaluator gave one of these outcomes."""
        for outcome in outcomes:
            if (evaluator, outcome) not in self._outcomes:
                sql = "SELECT count(*) FROM outcomes WHERE evaluator = ? AND outcome = ?"
                self._outcomes[evaluator, outcome] = int(self._fetch_value(sql, [evaluator, outcome]))
        return sum(self._outcomes[evaluator, outcome] for outcome in outcomes)

    def _look_for(self, word: str) -> None:
        """Note which cells have a word: a page asks for their number, for some of them, and for its neighbours."""
        with self._lock:
            now = time.monotonic()
            if word not in self._words:
                for old in [one for one, known in self._words.items() if now - known.used > _WORD_SECONDS]:
                    self._file.execute("DELETE FROM temp.said WHERE word = ?", [old])
                    del self._words[old]
                # GLOB, as it finds a text in half the time that instr() takes
                found = "INSERT OR IGNORE INTO temp.said SELECT ?, number FROM texts WHERE text GLOB ?"
                cells = self._file.execute(found, [word, f"*{literal_pattern(searchable(word))}*"]).rowcount
                self._words[word] = _SearchedWord(now, cells)
            self._words[word] = self._words[word]._replace(used=now)

    def _fetch_all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._file.execute(sql, values).fetchall()

    def _fetch_value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._fetch_all(sql, values)[0][0]

    def count(self, chosen: Filter) -> int:
        plain = replace(chosen, sort="suite", descending=False, group="none", columns=(), after=0)
        if plain == Filter(evaluator=chosen.evaluator, verdict=chosen.verdict) and chosen.evaluator:
            return self._count_judged(chosen.evaluator, wanted_outcomes(chosen))
        where, values = self._where(chosen)
        if plain == Filter(q=chosen.q) and len(chosen.words) == 1:
            return self._words[chosen.words[0]].cells
        return self.total if not where else int(self._fetch_value(f"SELECT count(*) FROM cells{where}", values))

    def rows(self, chosen: Filter, limit: int | None = 100) -> list[CellRow]:
        """One page of the chosen cells."""
        where, values = self._where(chosen)
        order = sorting_of(chosen)
        # the numbers first: the index of the sort column holds them, and the rest is read for one page only
        numbers = f"SELECT number FROM cells{where} ORDER BY {order} LIMIT ? OFFSET ?"
        sql = f"SELECT {_COLUMNS} FROM cells WHERE number IN ({numbers}) ORDER BY {order}"
        found = self._fetch_all(sql, [*values, -1 if limit is None else limit, chosen.after])
        return [CellRow(*row) for row in found]

    def every(self, chosen: Filter, batch: int = 1000) -> Iterator[CellRow]:
        """All chosen cells, some at a time."""
        after = 0
        while rows := self.rows(_at(chosen, after), batch):
            yield from rows
            after += len(rows)

    def place(self, chosen: Filter, row: CellRow) -> CellPlace | None:
        """The position of a cell among the chosen: its place from 1, their number, the previous and the next.

        None if it is not among them.
        """
        where, values = self._where(chosen)
        if where and not self._fetch_value(f"SELECT count(*) FROM cells{where} AND number = ?", [*values, row.number]):
            return None
        if chosen.sort == "suite":
            before = self._fetch_value(
                f"SELECT count(*) FROM cells{where or ' WHERE 1'} AND number {'>' if chosen.descending else '<'} ?",
                [*values, row.number],
            )
        else:
            numbers = self._fetch_all(f"SELECT number FROM cells{where} ORDER BY {sorting_of(chosen)}", values)
            before = next((place for place, (number,) in enumerate(numbers) if number == row.number), 0)
        around = self.rows(_at(chosen, max(0, before - 1)), 3)
        mine = next((place for place, one in enumerate(around) if one.number == row.number), 0)
        earlier = around[mine - 1] if mine else None
        later = around[mine + 1] if mine + 1 < len(around) else None
        return before + 1, self.count(chosen), earlier, later

    def by_key(self, key: str) -> CellRow | None:
        found = self._fetch_all(f"SELECT {_COLUMNS} FROM cells WHERE key = ?", [key])
        return CellRow(*found[0]) if found else None

    def of_case(self, case: str, variant: str | None = None, trial: int | None = None) -> list[CellRow]:
        """The cells of a case by the name that is shown."""
        named = {"case_key": case, "variant": variant, "trial": trial}
        given = {column: value for column, value in named.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in given)
        sql = f"SELECT {_COLUMNS} FROM cells WHERE {where} ORDER BY number"
        return [CellRow(*row) for row in self._fetch_all(sql, [*given.values()])]

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """The searchable text of these cells, in lower case."""
        found: dict[int, str] = {}
        for start in range(0, len(numbers), 500):
            some = numbers[start : start + 500]
            sql = f"SELECT number, substr(text, 1, 600) FROM texts WHERE number IN ({marks(some)})"
            found.update(self._fetch_all(sql, some))
        return found

    def around(self, word: str, numbers: Sequence[int], most: int) -> dict[int, tuple[str, str, str]]:
        """The first match of a word in the searchable text of these cells: up to `most` characters before it, itself,
        up to `most` after it. Texts without it are left out."""
        wanted = searchable(word)
        sql = (
            "SELECT number, substr(text, max(1, at - :most), min(:most, at - 1)), substr(text, at, :size), "
            "substr(text, at + :size, :most) FROM (SELECT number, text, instr(text, :word) AS at FROM texts "
            "WHERE number IN (SELECT value FROM json_each(:numbers))) WHERE at"
        )
        given = {"word": wanted, "size": len(wanted), "most": most, "numbers": json.dumps(list(numbers))}
        with self._lock:
            found = self._file.execute(sql, given).fetchall()
        return {number: (before, match, after) for number, before, match, after in found}

    def inputs_of(self, positions: Sequence[int]) -> dict[int, str]:
        """The beginnings of the inputs of the cases at these positions."""
        sql = "SELECT position, text FROM inputs WHERE position IN (SELECT value FROM json_each(?))"
        return dict(self._fetch_all(sql, [json.dumps(list(positions))]))

    def tags_of(self, positions: Sequence[int]) -> dict[int, str]:
        """The tags of the cases at these positions."""
        sql = (
            "SELECT position, group_concat(tag, ', ') FROM tags "
            "WHERE position IN (SELECT value FROM json_each(?)) GROUP BY position"
        )
        return dict(self._fetch_all(sql, [json.dumps(list(positions))]))

    def metadata_of(self, name: str, positions: Sequence[int]) -> dict[int, str]:
        """The value of one metadata key of the cases at these positions."""
        sql = "SELECT position, value FROM metadata WHERE name = ? AND position IN (SELECT value FROM json_each(?))"
        return dict(self._fetch_all(sql, [name, json.dumps(list(positions))]))

    def reasons(self, chosen: Filter | None = None, limit: int = 20) -> tuple[list[SharedReason], int]:
        """Why cells did not pass, most frequent first, ties in the order of the suite; and the number of reasons."""
        where, values = self._where(chosen or Filter())
        within = f" WHERE number IN (SELECT number FROM cells{where})" if where else ""
        found = self._fetch_all(
            # `nth` is that of the row with the smallest number: its place among the reasons of the first cell
            f"SELECT reason, text, count(*) AS n, min(number) AS first, nth FROM reasons JOIN groups USING (reason)"
            f"{within} GROUP BY reason ORDER BY n DESC, first, nth LIMIT ?",
            [*values, limit],
        )
        total = self._fetch_value("SELECT count(*) FROM groups") if not where else len(found)
        return [SharedReason(key, text, count) for key, text, count, *_ in found], total

    def reason(self, key: str) -> str | None:
        found = self._fetch_all("SELECT text FROM groups WHERE reason = ?", [key])
        return found[0][0] if found else None

    def values(self, what: str) -> list[str]:
        """The available choices: `tag`, `variant`, `error`, `evaluator` or `metadata` (names of keys)."""
        if what not in self._values:
            self._values[what] = self._found_values(what)
        return self._values[what]

    def has(self, what: str, value: str) -> bool:
        """Whether any cell has a value of a kind of `values`, also if it is not among the first, or `reason`, `case`,
        `trial`."""
        table, column = _PLACES[what]
        return bool(self._fetch_all(f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1", [value]))

    def _found_values(self, what: str) -> list[str]:
        sql = {
            "tag": "SELECT DISTINCT tag FROM tags ORDER BY tag LIMIT ?",
            "variant": f"{_VARIANTS} SELECT name FROM known WHERE name IS NOT NULL "
            "ORDER BY (SELECT min(number) FROM cells WHERE variant = name) LIMIT ?",
            "error": "SELECT DISTINCT error FROM cells WHERE error IS NOT NULL ORDER BY error LIMIT ?",
            "evaluator": "SELECT DISTINCT evaluator FROM outcomes LIMIT ?",
            "metadata": "SELECT DISTINCT name FROM metadata ORDER BY name LIMIT ?",
        }[what]
        return [value for (value,) in self._fetch_all(sql, [_MOST_VALUES])]

    def statuses(self, chosen: Filter | None = None) -> dict[str | None, int]:
        where, values = self._where(chosen or Filter())
        return dict(self._fetch_all(f"SELECT status, count(*) FROM cells{where} GROUP BY status", values))

    def groups(self, chosen: Filter) -> list[CellGroup]:
        """The chosen cells by one thing that they have in common, each group with its first rows."""
        return [self._group(name, inner) for name, inner in self._group_names(chosen)]

    def _group(self, name: str, inner: Filter) -> CellGroup:
        counts = self.statuses(inner)
        judged = sum(counts.get(status, 0) for status in JUDGED)
        return CellGroup(
            name, sum(counts.values()), counts.get("pass", 0), judged, inner, self.rows(inner, _GROUP_ROWS)
        )

    def _group_names(self, chosen: Filter) -> Iterator[tuple[str, Filter]]:
        plain = replace(chosen, group="none", after=0)
        where, values = self._where(plain)
        if chosen.group == "evaluator":
            yield from ((name, replace(plain, evaluator=name)) for name in self._failing(where, values))
            return
        if chosen.group == "reason":
            for one in self.reasons(plain, _MOST_GROUPS)[0]:
                yield one.text, replace(plain, reason=(one.key,))
            return
        sql = {
            "status": f"SELECT status FROM cells{where} GROUP BY status ORDER BY count(*) DESC",
            "variant": f"SELECT variant FROM cells{where} GROUP BY variant ORDER BY min(number)",
            "case": f"SELECT case_key FROM cells{where} GROUP BY position ORDER BY position",
            "tag": (
                f"SELECT tag FROM tags WHERE position IN (SELECT position FROM cells{where}) "
                "GROUP BY tag ORDER BY count(*) DESC, tag"
            ),
        }[chosen.group]
        for (name,) in self._fetch_all(f"{sql} LIMIT {_MOST_GROUPS}", values):
            if chosen.group == "case":
                yield name, replace(plain, case=(name,))
            elif name is not None:
                changes: dict[str, Any] = {chosen.group: (name,)}
                yield name, replace(plain, **changes)

    def _failing(self, where: str, values: Sequence[Any]) -> list[str]:
        """The evaluators that failed any of these cells, those that failed most first."""
        among = f"{where} AND cells.number = outcomes.number" if where else ""
        within = f" AND EXISTS (SELECT 1 FROM cells{among})" if where else ""
        sql = f"SELECT count(*) FROM outcomes WHERE evaluator = ? AND outcome IN ('fail', 'error'){within}"
        counts = {name: self._fetch_value(sql, [name, *values]) for name in self.values("evaluator")}
        return sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])[:_MOST_GROUPS]

    def case_keys(self, chosen: Filter) -> list[str]:
        """The cases of the chosen cells."""
        where, values = self._where(chosen)
        return [key for (key,) in self._fetch_all(f"SELECT DISTINCT case_key FROM cells{where}", values)]

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
        while rows := self._fetch_all(sql, [variant, last]):
            yield from rows
            last = rows[-1][1] >> VARIANT_BITS + TRIAL_BITS

    def outcomes(self, evaluator: str, numbers: Sequence[int]) -> dict[int, str]:
        """The outcomes of an evaluator for these cells."""
        found: dict[int, str] = {}
        for start in range(0, len(numbers), 500):
            some = numbers[start : start + 500]
            sql = f"SELECT number, outcome FROM outcomes WHERE evaluator = ? AND number IN ({marks(some)})"
            found.update(self._fetch_all(sql, [evaluator, *some]))
        return found

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
        return [key for (key,) in self._fetch_all(sql, [evaluator])]

    def strata(self, evaluator: str) -> dict[tuple[str, str], list[str]]:
        """The keys of cells with a verdict of an evaluator, by variant and verdict (`pass` or `fail`)."""
        sql = (
            "SELECT variant, outcome, key FROM outcomes JOIN cells USING (number) WHERE evaluator = ? "
            "AND outcome IN ('pass', 'fail') ORDER BY variant, outcome, number"
        )
        found: dict[tuple[str, str], list[str]] = {}
        for variant, outcome, key in self._fetch_all(sql, [evaluator]):
            found.setdefault((variant, outcome), []).append(key)
        return found

    def searched(self, word: str, numbers: Sequence[int]) -> None:
        """Note in which cells a word was found that `texts` does not have: in messages, spans and calls of judges."""
        with self._lock:
            self._file.executemany("INSERT OR IGNORE INTO hits VALUES (?, ?)", [(word, number) for number in numbers])

    def number_of(self, case_key: str, variant: str, trial: int) -> int | None:
        rows = self.of_case(case_key, variant, trial)
        return rows[0].number if rows else None


def _at(chosen: Filter, after: int) -> Filter:
    return replace(chosen, after=after)
