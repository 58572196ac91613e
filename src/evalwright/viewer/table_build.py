"""From the records of a run to its table of cells, in one pass over each file."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from hashlib import blake2b, sha256
from itertools import count, islice
from typing import Any, TypeVar

import msgspec

from evalwright.errors import InputError
from evalwright.model.cell import Attempt, OfCase, cell_key
from evalwright.model.damage import unreadable_records
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import NOT_PASSED, CaseVerdict
from evalwright.model.snapshot import metadata_text
from evalwright.model.trace import Metrics, Output, TraceError
from evalwright.reports.failures import newest_verdicts
from evalwright.scoring.reasons import CommonReason, reasons_of
from evalwright.viewer.records import ResultRow
from evalwright.viewer.schema import INDEXES, TABLES, TRIAL_BITS, VARIANT_BITS
from evalwright.viewer.texts import searchable

__all__ = ["fill_table"]

R = TypeVar("R")
_BATCH = 2_000
_MOST_WAITING = 4_000_000
"""Characters of texts that wait to be written together: one text may have millions."""
_VERDICT = """
INSERT INTO cells (number, key, case_key, position, variant, trial, attempt, status, score, failed, answer)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', '')
ON CONFLICT (number) DO UPDATE SET status = excluded.status, score = excluded.score
"""
"""A cell whose trace cannot be read still counts as a cell."""
_SHOWN = 100
"""Characters of an input or an answer that a row shows."""


class _TraceRow(OfCase, msgspec.Struct, gc=False):
    case_id: str
    variant_name: str
    started_at: datetime
    finished_at: datetime
    latency_ms: int | None = None
    input: Any = None
    output: Output = msgspec.field(default_factory=Output)
    metrics: Metrics = msgspec.field(default_factory=Metrics)
    error: TraceError | None = None
    trial: int = 0
    attempt: Attempt = 1
    case_index: int | None = None


def fill_table(
    file: sqlite3.Connection, reader: RunReader, plan: Plan, progress: Callable[[int], None], *, texts: bool = True
) -> None:
    """Fill an empty database. `progress` gets the number of records read so far. Without `texts`, no word is found.

    Raises InputError for numbers beyond 64 bits, and for two cells in the same place.
    """
    try:
        _fill(file, reader, plan, progress, texts=texts)
    except (OverflowError, sqlite3.IntegrityError) as error:
        why = f"records that are out of range or contradict each other: {error}"
        raise InputError(f"{reader.location} has {why}") from None


def _fill(
    file: sqlite3.Connection, reader: RunReader, plan: Plan, progress: Callable[[int], None], *, texts: bool
) -> None:
    file.executescript(TABLES)
    builder = _Builder(file, plan, texts=texts)
    builder.cases(reader)
    numbers = count(1)

    def noted(records: Iterable[R]) -> Iterator[R]:
        for record in records:
            yield record
            if (number := next(numbers)) % 1000 == 0:
                progress(number)

    for trace in noted(reader.traces(_TraceRow)):
        builder.trace(trace)
    builder.flush()
    builder.results(noted(reader.results(ResultRow)))
    reader.plan = reader.plan or plan  # verdicts of another program's run are derived by it
    builder.verdicts(noted(newest_verdicts(reader)))
    builder.finish()
    file.executemany("INSERT INTO unread VALUES (?)", ((note,) for note in unreadable_records(reader)))
    file.executescript(INDEXES)
    file.commit()


class _Builder:
    def __init__(self, file: sqlite3.Connection, plan: Plan, *, texts: bool) -> None:
        self._file, self._texts = file, texts
        self._waiting = 0
        self._variants = {variant.name: place for place, variant in enumerate(plan.variants)}
        self._positions: dict[str, int] = {}
        self._attempts: dict[int, int] = {}
        self._tags: dict[int, str] = {}
        self._pending: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._groups: dict[str, CommonReason] = {}

    def number(self, record: Any, position: int) -> int:
        """The place of a cell in the order of the suite: case, variant, trial. Known before all cells are."""
        variant = self._variants.setdefault(record.variant_name, len(self._variants))
        # room for variants and trials missing from the plan, in folders of other programs
        trial = min(int(record.trial), (1 << TRIAL_BITS) - 1)
        return (((position << VARIANT_BITS) + variant) << TRIAL_BITS) + trial

    def position(self, record: Any) -> int:
        known: int | None = getattr(record, "case_index", None)
        return self._positions.setdefault(record.case_key, len(self._positions) if known is None else known)

    def cases(self, reader: RunReader) -> None:
        for position, case in enumerate(reader.cases()):
            self._positions.setdefault(case.key, position)
            self._add("inputs", (position, _beginning(_input(case.input))))
            self._add("tags", *((tag, position) for tag in dict.fromkeys(map(str, case.tags))))
            self._add("metadata", *((str(k), metadata_text(v), position) for k, v in case.metadata.items()))
            if case.tags:
                self._tags[position] = " ".join(map(str, case.tags))
        self.flush()

    def trace(self, trace: _TraceRow) -> None:
        is_new = trace.case_key not in self._positions  # runs of other programs have no list of their cases
        position = self.position(trace)
        if is_new:
            self._add("inputs", (position, _beginning(_input(trace.input))))
        number = self.number(trace, position)
        if trace.attempt < self._attempts.get(number, 1):
            return
        if trace.attempt > 1:
            self._attempts[number] = trace.attempt
        metrics, answer = trace.metrics, _answer(trace.output)
        tokens = [n for n in (metrics.token_input, metrics.token_output) if n is not None]
        duration = (trace.finished_at - trace.started_at).total_seconds() * 1000
        error = trace.error
        row = (
            *(number, cell_key(trace.case_key, trace.variant_name, trace.trial), trace.case_key, position),
            *(trace.variant_name, trace.trial, trace.attempt, None, None, trace.latency_ms, metrics.cost_usd),
            *(sum(tokens) if tokens else None, duration, error.type if error else None, ""),
            *(_beginning(answer), 0),
            blake2b(answer.encode("utf-8", "surrogatepass"), digest_size=8).digest(),
        )
        self._add("cells", row)
        if not self._texts:
            return
        texts = [trace.case_key, metadata_text(trace.input), answer, self._tags.get(position, "")]
        if error is not None:
            texts.append(f"{error.type}: {error.message}")
        text = searchable("\n".join(texts))
        self._add("texts", (number, text))
        self._waiting += len(text)
        if self._waiting > _MOST_WAITING:
            self._write("texts")
            self._waiting = 0

    def results(self, records: Iterable[ResultRow]) -> None:
        for batch in _batches(records):
            failed: dict[int, dict[str, None]] = defaultdict(dict)
            reasons: dict[int, list[str]] = defaultdict(list)
            for result in batch:
                number = self.number(result, self.position(result))
                if result.attempt != self._attempts.get(number, 1):
                    continue
                outcome = _outcome(result)
                self._add("outcomes", (number, result.evaluator, outcome, result.score))
                if result.reason and self._texts:
                    reasons[number].append(result.reason)
                if outcome in ("fail", "error"):
                    failed[number][result.evaluator] = None
            self.flush()
            update = self._file.executemany
            update(
                "UPDATE cells SET failed = failed || ? WHERE number = ?",
                [("".join(f"{name}\n" for name in names), number) for number, names in failed.items()],
            )
            update(
                "UPDATE texts SET text = text || ? WHERE number = ?",
                [("\n" + searchable("\n".join(texts)), number) for number, texts in reasons.items()],
            )

    def verdicts(self, records: Iterable[CaseVerdict]) -> None:
        for batch in _batches(records):
            rows = []
            for verdict in batch:
                number = self.number(verdict, self.position(verdict))
                if verdict.attempt < self._attempts.get(number, 1):
                    continue
                place = (number, cell_key(verdict.case_key, verdict.variant_name, verdict.trial), verdict.case_key)
                at = (self.position(verdict), verdict.variant_name, verdict.trial, verdict.attempt)
                rows.append((*place, *at, verdict.status, verdict.score))
                reasons = reasons_of(verdict) if verdict.status in NOT_PASSED else {}
                for nth, (shape, text) in enumerate(reasons.items()):
                    key = _reason_key(shape)
                    if (group := self._groups.get(key)) is None:
                        self._groups[key] = CommonReason(shape, text)
                    else:
                        group.add(text)
                    self._add("reasons", (key, number, nth))
            self._file.executemany(_VERDICT, rows)

    def finish(self) -> None:
        self.flush()
        self._file.executemany(
            "INSERT INTO groups VALUES (?, ?)", [(key, str(group)) for key, group in self._groups.items()]
        )
        self._file.execute(
            "INSERT INTO facts SELECT 'without results', count(*) FROM cells WHERE status IS NOT NULL "
            "AND error IS NULL AND number NOT IN (SELECT number FROM outcomes)"
        )
        self._file.execute(
            "UPDATE cells SET flaky = 1 WHERE (position, variant) IN (SELECT position, variant FROM cells "
            "WHERE status IS NOT NULL GROUP BY position, variant HAVING count(DISTINCT status) > 1)"
        )

    def _add(self, table: str, *rows: tuple[Any, ...]) -> None:
        pending = self._pending[table]
        pending += rows
        if len(pending) >= _BATCH:
            self._write(table)

    def _write(self, table: str) -> None:
        rows = self._pending.pop(table, [])
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self._file.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows)

    def flush(self) -> None:
        for table in list(self._pending):
            self._write(table)


def _batches(records: Iterable[Any]) -> Iterator[list[Any]]:
    stream = iter(records)
    while batch := list(islice(stream, _BATCH)):
        yield batch


def _answer(output: Output) -> str:
    if output.final_answer is not None:
        return output.final_answer
    return "" if output.structured is None else msgspec.json.encode(output.structured).decode()


def _input(value: Any) -> str:
    """An input as text; of a mapping with a single key, which says little, only the value."""
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return metadata_text(value)


def _beginning(text: str) -> str:
    return " ".join(text[: 4 * _SHOWN].split())[:_SHOWN]


def _outcome(result: ResultRow) -> str:
    if result.error is not None:
        return "error"
    return "skip" if result.skipped else "pass" if result.passed else "fail"


def _reason_key(shape: str) -> str:
    """The name of a reason in addresses, by what it shares with the same reason of other cells."""
    return sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:12]
