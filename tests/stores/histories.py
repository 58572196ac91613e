"""Runs that have seen a lot, and what commands say of them by an index and without."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from math import fsum
from pathlib import Path

import msgspec

from evalwright.decisions.sides import sides_of
from evalwright.errors import InputError, StorageError
from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.trace import Metrics, Trace, TraceError
from evalwright.reports.cells import Choice, chosen_cells
from evalwright.reports.junit import JUnit
from evalwright.reports.markdown import Markdown
from evalwright.run.cells import Grid
from evalwright.run.history import history_of, unjudged_traces
from evalwright.scoring.fold import fold
from evalwright.scoring.verdict import names_needed
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from evalwright.viewer.document import HtmlDocument
from stores.stores import Kept

__all__ = [
    "EVALUATORS",
    "History",
    "Scanned",
    "TableHistory",
    "a_run",
    "answers",
    "must_add_up",
    "must_agree",
    "said",
]

CASES = ("a", "b", "b", "c#2", "d")
"""The third is `b#2`, and the fourth only looks as if it were one of two."""
VARIANTS = ("v1", "v2")
EVALUATORS = ("says", "quick")


class Scanned:
    """A reader without its index."""

    def __init__(self, reader):
        self._reader = reader

    def __getattr__(self, name):
        if name == "index":
            raise AttributeError(name)
        return getattr(self._reader, name)


class History:
    """A run of five cases, one or two variants and trials, that has seen a lot."""

    grouped = False
    """Whether some of the cases are in a group."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.grouped = seed // 4 % 2 == 1
        plan = a_plan(
            variants=[Variant(name, "python_function") for name in VARIANTS[: 1 + seed % 2]],
            cases_total=5,
            evaluators=[EvaluatorSpec(name, "contains_text") for name in EVALUATORS],
        )
        plan.run = msgspec.structs.replace(plan.run, trials=1 + seed // 2 % 2)
        cases = [a_case(id=name, **({"occurrence": 2} if i == 2 else {})) for i, name in enumerate(CASES)]
        self.store = self.made(folder)
        self.writer = self.store.create(plan, cases, {})
        self.folder = Path(self.writer.location)
        self.attempts: dict[tuple[int, str, int], int] = {}

    def made(self, folder: Path):
        return LocalFiles(folder)

    def cell(self) -> None:
        """A cell is run, or run again, and the process may die anywhere in it."""
        pick, plan = self.random, self.writer.plan
        self.cell_of(pick.randrange(5), pick.choice(plan.variants).name, pick.randrange(plan.run.trials))

    def cell_of(self, index: int, variant: str, trial: int) -> None:
        pick = self.random
        attempt = self.attempts.get((index, variant, trial), 0) + 1
        self.attempts[index, variant, trial] = attempt
        of = {"case_id": CASES[index], "variant_name": variant, "trial": trial, "attempt": attempt}
        if index == 2:
            of["occurrence"] = 2
        group = {"group": "g"} if self.grouped and index % 2 else {}
        errored = pick.random() < 0.2
        error = TraceError(pick.choice(["timeout", "exception"]), "why") if errored else None
        metrics = Metrics(pick.choice([None, 5]), 7, cost_usd=pick.choice([None, 0.1, 0.2]))
        latency = pick.choice([0, 12, 700])
        self.writer.append_trace(
            a_trace(**of, **group, case_index=index, error=error, metrics=metrics, latency_ms=latency)
        )
        if pick.random() < 0.1:
            return
        names = [] if errored else list(EVALUATORS)
        rows = [self.result(of, name) for name in names]
        if pick.random() < 0.2:
            self.writer.append_results(rows[:1])
            rows = rows[1:] if pick.random() < 0.8 else []
        self.writer.append_results(rows)
        if pick.random() < 0.9:
            status = "error" if errored else pick.choice(["pass", "fail", "skip", "borderline"])
            self.writer.append_verdict(a_verdict(**of, status=status, score=pick.choice([None, 0.5]), case_index=index))

    def result(self, of, name):
        pick = self.random
        passed = pick.random() < 0.6
        error = TraceError("timeout", "late") if pick.random() < 0.1 else None
        score = pick.choice([None, 0.0, 1.0, 0.25])
        skipped, cost = pick.random() < 0.1, pick.choice([None, 0.003])
        return a_result(**of, evaluator=name, passed=passed, error=error, score=score, skipped=skipped, cost_usd=cost)

    def reopened(self) -> None:
        self.writer.close()
        self.writer = LocalFiles.at(self.folder)[0].open(self.folder.name)

    def close(self) -> None:
        self.writer.close()

    def reader(self):
        return LocalFiles.at(self.folder)[0].read(self.folder.name)

    def judged_again(self) -> None:
        judgements = self.writer.rewrite_judgements()
        share = judgements.share(0)
        for of in self.attempts:
            where = {"case_id": CASES[of[0]], "variant_name": of[1], "trial": of[2], "attempt": self.attempts[of]}
            if of[0] == 2:
                where["occurrence"] = 2
            share.append_results([self.result(where, name) for name in EVALUATORS])
            share.append_verdict(a_verdict(**where, status="pass", case_index=of[0]))
        share.close()
        judgements.commit()

    def damaged(self) -> None:
        """Bytes in the middle of a file turn into others; its time is another then, as clocks are too coarse here.

        An index that has read all of it notices; of one that has not, its limits say that it need not.
        """
        self.indexed()
        path = self.folder / self.random.choice(["traces.jsonl", "results.jsonl", "verdicts.jsonl"])
        data = bytearray(path.read_bytes())
        if data:
            at = self.random.randrange(len(data))
            data[at : at + 3] = b"???"[: len(data) - at]
            self.writer.close()
            path.write_bytes(data)
            os.utime(path, ns=(1, self.random.randrange(1 << 40)))
            self.writer = LocalFiles.at(self.folder)[0].open(self.folder.name)

    def torn(self) -> None:
        """The process dies in a write; the next one may cut what is left of it, or only look."""
        path = self.folder / self.random.choice(["traces.jsonl", "results.jsonl", "verdicts.jsonl"])
        with path.open("ab") as file:
            file.write(b'{"case_id": "a", "var')

    def indexed(self) -> None:
        with closing(self.reader()) as reader:
            if (index := reader.index("to_keep")) is not None:
                index.close()

    def meddled(self) -> None:
        """The index is another one, half of one, or none."""
        path = self.folder / INDEX
        if not path.exists():
            return
        kind = self.random.randrange(6)
        if kind == 0:
            path.unlink()
        elif kind == 1:
            path.write_bytes(path.read_bytes()[: self.random.randrange(5000)])
        elif kind == 2:
            data = bytearray(path.read_bytes())
            data[100:200] = bytes(100)
            path.write_bytes(data)
        elif kind == 3:
            path.write_text("not a database")
        else:
            # Meddled with before, it may be no database any more.
            with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path, isolation_level=None)) as other:
                if kind == 4:
                    other.execute("UPDATE meta SET value = '0' WHERE name = 'version'")
                else:
                    other.execute(
                        "CREATE TRIGGER IF NOT EXISTS evil AFTER INSERT ON cells BEGIN DELETE FROM cells; END"
                    )


class TableHistory(History):
    """The same in a database, where other runs are written, too."""

    def __init__(self, kept: Kept, seed: int) -> None:
        self.kept = kept
        super().__init__(kept.folder, seed)
        self.other = self.store.create(a_plan(), [a_case()], {})

    def made(self, folder: Path):
        return self.kept.store()

    def cell(self) -> None:
        super().cell()
        self.other.append_trace(a_trace(attempt=sum(self.attempts.values())))
        self.other.sync()

    def close(self) -> None:
        super().close()
        self.other.close()

    def reader(self):
        with suppress(StorageError):  # it has gone
            self.writer.sync()
        return self.store.read(self.writer.plan.run_id)

    def reopened(self) -> None:
        self.writer.close()
        self.writer = self.store.open(self.writer.plan.run_id)

    def judged_again(self) -> None:
        if self.attempts:
            super().judged_again()

    def repeated(self) -> None:
        """A record replaces another one of the same attempt."""
        if self.attempts:
            (index, variant, trial), attempt = self.random.choice(list(self.attempts.items()))
            self.attempts[index, variant, trial] = attempt - 1
            self.cell_of(index, variant, trial)

    def damaged(self) -> None:
        """A new row cannot be read."""
        self.cell()
        self.writer.sync()
        table = self.random.choice(["traces", "results", "verdicts"])
        run = self.writer.plan.run_id
        column = "payload" if self.kept.kind == "sqlite" else "line"
        last = f"(SELECT max(seq) FROM {table} WHERE run_id = ?)"
        self.kept.query(f"UPDATE {table} SET {column} = '{{' WHERE run_id = ? AND seq = {last}", run, run)

    def meddled(self) -> None:
        self.folder = self.writer._tables.index_place()
        super().meddled()


def answers(reader, plan: Plan, *, reports: bool) -> list[object]:
    """What commands say of a run; reports take half of the time, and read what the others read, too."""
    needed = names_needed(reader, plan)
    choices = [Choice(), Choice(failed=True), Choice("b"), Choice("b#2"), Choice("c#2", "v2"), Choice("nobody")]
    listed = [list(chosen_cells(reader, plan, needed, choice)) for choice in choices]
    history = history_of(reader, Grid(plan))
    cells = range(len(history.traced))
    left = unjudged_traces(reader, Grid(plan), history)
    done = [(history.traced[n], history.errored[n], history.finished(n) and history.passed[n]) for n in cells]
    moment = datetime(2026, 5, 5, tzinfo=UTC)
    summary = fold(reader, plan).summary(plan, moment)
    sides = sides_of(reader, plan)
    for side in sides.values():  # a scan has the trials of a case in the order of their first attempts
        taken = {name: measure.by_case() for name, measure in side.measures.items()}
        side.measures = {name: {case: sorted(times) for case, times in one.items()} for name, one in taken.items()}
    shown = [report().render(reader, summary) for report in (Markdown, HtmlDocument, JUnit) if reports]
    return [listed, history.spent_usd, left, done, summary, sides, shown]


def said(history: History, *, scanned: bool, reports: bool = False) -> object:
    with closing(history.reader()) as reader:
        plan = reader.plan
        try:
            found: object = answers(Scanned(reader) if scanned else reader, plan, reports=reports)
        except InputError as error:
            found = str(error)
        return found, sorted(reader.damage)


def must_agree(history: History, steps: list[str], *, reports: bool = True) -> None:
    for step in [*steps, "indexed"]:
        getattr(history, step)()
    # While the writer is there, then when it has gone and all of it was read once.
    for _ in range(2):
        assert said(history, scanned=False, reports=reports) == said(history, scanned=True, reports=reports)
        history.close()


def a_run(folder: Path, cells: int = 40) -> History:
    history = History(folder, 7)
    for _ in range(cells):
        history.cell()
    history.writer.close()
    return history


def must_add_up(index, reader) -> None:
    """The sums that an index keeps are those of its cells, whatever was replaced."""
    cells = list(index.cells())
    sums = index.sums()
    for name in ("latency_ms", "cost_usd", "tokens_in", "tokens_out"):
        values = [value for cell in cells if (value := getattr(cell, name)) is not None]
        assert getattr(sums, name) == (len(values), fsum(values))
    assert sums.finished_at == max(cell.finished_at for cell in cells)
    assert sums.grouped == sum(cell.group is not None for cell in cells)
    assert sums.measured == sum(cell.alike is None for cell in cells)
    assert sums.spent_usd == fsum(trace.metrics.cost_usd or 0 for trace in reader.traces(Trace))
