"""A run index says what a scan of the records says, whatever happened to the run and to the index."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.projects import project
from evalwright.decisions.sides import sides_of
from evalwright.errors import InputError, StorageError
from evalwright.model.cell_index import CellSelection, index_of
from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.trace import Metrics, TraceError
from evalwright.reports.cells import Choice, chosen_cells
from evalwright.reports.junit import JUnit
from evalwright.reports.markdown import Markdown
from evalwright.run.cells import Grid
from evalwright.run.history import history_of, unjudged_traces
from evalwright.run.stored_run import open_run
from evalwright.scoring.fold import fold
from evalwright.scoring.verdict import names_needed
from evalwright.stores.index import INDEX, IndexKeeper, opened_index
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from evalwright.viewer.document import HtmlDocument
from stores.stores import Kept

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

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
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
        errored = pick.random() < 0.2
        error = TraceError(pick.choice(["timeout", "exception"]), "why") if errored else None
        metrics = Metrics(pick.choice([None, 5]), 7, cost_usd=pick.choice([None, 0.1, 0.2]))
        latency = pick.choice([0, 12, 700])
        self.writer.append_trace(a_trace(**of, case_index=index, error=error, metrics=metrics, latency_ms=latency))
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
            if (index := reader.index(keep=True)) is not None:
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


STEPS = (*["cell"] * 12, *["indexed"] * 3, "reopened", "judged_again", "meddled")
HARM = ("damaged", "torn")


def answers(reader, plan: Plan) -> list[object]:
    """What commands say of a run."""
    needed = names_needed(reader, plan)
    choices = [Choice(), Choice(failed=True), Choice("b"), Choice("b#2"), Choice("c#2", "v2"), Choice("nobody")]
    found = [list(chosen_cells(reader, plan, needed, choice)) for choice in choices]
    history = history_of(reader, Grid(plan))
    cells = range(len(history.traced))
    left = unjudged_traces(reader, Grid(plan), history)
    done = [(history.traced[n], history.errored[n], history.finished(n) and history.passed[n]) for n in cells]
    moment = datetime(2026, 5, 5, tzinfo=UTC)
    by_case, by_cell = (fold(reader, plan, by_case=cases).summary(plan, moment) for cases in (True, False))
    sides = sides_of(reader, plan)
    for side in sides.values():
        for times in side.latencies.values():
            times.sort()  # a scan has the trials of a case in the order of their first attempts
    reports = [report().render(reader, by_cell) for report in (Markdown, HtmlDocument, JUnit)]
    return [found, history.spent_usd, left, done, by_case, by_cell, sides, reports]


def said(history: History, *, scanned: bool) -> object:
    with closing(history.reader()) as reader:
        plan = reader.plan
        try:
            found: object = answers(Scanned(reader) if scanned else reader, plan)
        except InputError as error:
            found = str(error)
        return found, sorted(reader.damage)


@pytest.mark.slow("renders three reports of many histories, twice each")
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from(STEPS), max_size=40), st.lists(st.sampled_from(HARM), max_size=2)
)
def test_an_index_says_what_a_scan_says(tmp_path_factory, seed, steps, harm):
    for place, what in enumerate(harm):
        steps.insert(seed % (len(steps) + 1) - place, what)
    folder = tmp_path_factory.mktemp("run")
    must_agree(History(folder, seed), steps)
    shutil.rmtree(folder)


def test_an_index_says_what_a_scan_says_of_a_run_that_has_seen_it_all(tmp_path):
    steps = ["cell"] * 9 + ["indexed", "reopened", "cell", "meddled", "cell", "indexed", "judged_again", "cell", "cell"]
    must_agree(History(tmp_path, 3), steps)


@pytest.mark.slow("renders three reports of many histories, twice each")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@given(st.integers(0, 2**32), st.lists(st.sampled_from((*STEPS, "repeated")), max_size=40), st.booleans())
def test_an_index_of_a_database_says_what_a_scan_says(kind, tmp_path_factory, seed, steps, harm):
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        must_agree(TableHistory(Kept(kind, folder), seed), [*steps, "damaged"] if harm else steps)
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_index_of_a_database_says_what_a_scan_says_of_a_run_that_has_seen_it_all(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    steps = ["cell"] * 9 + ["indexed", "reopened", "cell", "meddled", "cell", "indexed", "judged_again", "indexed"]
    history = TableHistory(Kept(kind, tmp_path), 3)
    must_agree(history, [*steps, "repeated", "cell"])
    assert list(tmp_path.rglob(INDEX))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_results_that_were_judged_anew_have_numbers_that_no_row_had_before(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    history = TableHistory(Kept(kind, tmp_path), 3)
    for _ in range(9):
        history.cell()
    history.indexed()
    before = history.kept.query("SELECT seq, case_id FROM results WHERE run_id = ?", history.writer.plan.run_id)
    history.judged_again()
    after = history.kept.query("SELECT seq, case_id FROM results WHERE run_id = ?", history.writer.plan.run_id)
    assert min(after)[0] > max(before)[0]
    assert said(history, scanned=False) == said(history, scanned=True)
    history.close()


def must_agree(history: History, steps: list[str]) -> None:
    for step in [*steps, "indexed"]:
        getattr(history, step)()
    # While the writer is there, then when it has gone and all of it was read once.
    for _ in range(2):
        assert said(history, scanned=False) == said(history, scanned=True)
        history.close()


def a_run(folder: Path, cells: int = 40) -> History:
    history = History(folder, 7)
    for _ in range(cells):
        history.cell()
    history.writer.close()
    return history


def test_counts_pages_and_orders_are_those_of_the_cells(tmp_path):
    history = a_run(tmp_path)
    reader, plan = open_run(history.folder)
    with closing(reader), closing(index_of(reader, small=True)) as index:
        assert not (history.folder / INDEX).exists(), "a small run keeps none"
        everything = list(index.cells())
        cells = {
            (c.trace.case_key, c.trace.variant_name, c.trace.trial): c
            for c in chosen_cells(Scanned(reader), plan, [], Choice())
        }
        assert len(index) == len(everything) == len(cells) > 10
        assert [entry.number for entry in everything] == sorted(entry.number for entry in everything)
        for entry in everything:
            cell = cells[entry.case_key, entry.variant, entry.trial]
            trace = cell.trace
            assert index.cell(entry.case_key, entry.variant, entry.trial) == entry
            assert index.records(entry)[:2] == (trace, cell.results)
            assert (entry.error, entry.latency_ms) == (trace.error and trace.error.type, trace.latency_ms)
            measured = trace.metrics.cost_usd, trace.metrics.token_input, trace.metrics.token_output
            assert (entry.cost_usd, entry.tokens_in, entry.tokens_out) == measured
            assert [(o.evaluator, o.passed, o.skipped, o.score, o.cost_usd) for o in entry.outcomes] == [
                (r.evaluator, r.passed, r.skipped, r.score, r.cost_usd) for r in cell.results
            ]
        assert sum(count.n for count in index.counts()) == len(everything)
        for chosen in (
            CellSelection(),
            CellSelection(variant="v2", trial=1),
            CellSelection(failed=True),
            CellSelection(statuses=["fail", None]),
            CellSelection(evaluator="says", outcome="fail"),
            CellSelection(outcome="error"),
            CellSelection(error="timeout"),
            CellSelection(case_contains="B"),
            CellSelection(case="b"),
        ):
            found = list(index.cells(chosen))
            assert found == [entry for entry in everything if fits(entry, chosen)]
            assert index.count(chosen) == len(found)
        by_latency = [e.latency_ms for e in index.cells(order="latency_ms", descending=True, offset=3, limit=9)]
        assert by_latency == sorted((e.latency_ms for e in everything), reverse=True)[3:12]
        costs = [entry.cost_usd for entry in index.cells(order="cost_usd")]
        assert costs == sorted(costs, key=lambda cost: (cost is None, cost))


def fits(entry, chosen) -> bool:
    asked = [
        chosen.case in (None, entry.case_id, entry.case_key),
        chosen.variant in (None, entry.variant),
        chosen.trial in (None, entry.trial),
        not chosen.failed or entry.failed,
        chosen.statuses is None or entry.status in chosen.statuses,
        chosen.error in (None, entry.error),
        (chosen.case_contains or "").lower() in entry.case_key.lower(),
    ]
    outcomes = [o for o in entry.outcomes if chosen.evaluator in (None, o.evaluator)]
    if chosen.evaluator or chosen.outcome:
        asked.append(any(chosen.outcome in (None, o.status) for o in outcomes))
    return all(asked)


def test_an_index_goes_on_where_it_ended_and_is_made_anew_where_the_run_is_another(tmp_path):
    history = a_run(tmp_path)
    history.indexed()
    with (history.folder / INDEX).open("rb") as held:  # while it is open, no new file gets its number
        made = os.fstat(held.fileno()).st_ino
        history.reopened()
        history.cell()
        history.indexed()
        assert (history.folder / INDEX).stat().st_ino == made
        history.judged_again()
        history.indexed()
        assert (history.folder / INDEX).stat().st_ino != made
    history.writer.close()


def test_an_index_that_was_kept_while_a_run_was_written_is_used_as_it_is(tmp_path):
    history = History(tmp_path, 5)
    keeper = IndexKeeper(history.folder, history.writer.plan)
    for _ in range(20):
        history.cell()
        keeper.follow()
    history.writer.close()
    keeper.close()
    kept = (history.folder / INDEX).read_bytes()
    with closing(opened_index(history.folder, history.writer.plan)) as index:
        assert len(index) == len(history.attempts)
    assert (history.folder / INDEX).read_bytes() == kept
    assert said(history, scanned=False) == said(history, scanned=True)


def test_a_folder_that_cannot_be_written_has_its_index_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    history = a_run(tmp_path)
    (history.folder / "index.lock").mkdir()  # as root may write into every folder
    with closing(opened_index(history.folder, history.writer.plan)) as index:
        assert len(index)
    assert list((tmp_path / "cache").rglob(INDEX))
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with closing(opened_index(history.folder, history.writer.plan)) as index:
        assert len(index)


@pytest.mark.parametrize("name", ["results.jsonl", "verdicts.jsonl"])
def test_records_without_their_trace_leave_the_run_to_a_scan(tmp_path, name):
    history = a_run(tmp_path)
    (history.folder / "traces.jsonl").write_bytes(b"")
    if name == "results.jsonl":
        (history.folder / "verdicts.jsonl").write_bytes(b"")
    assert opened_index(history.folder, history.writer.plan) is None
    assert opened_index(history.folder, history.writer.plan) is None


def test_the_command_makes_an_index_of_any_run_and_says_why_there_is_none(tmp_path):
    history, made = a_run(tmp_path), project(tmp_path, {"a": "x"})
    done = made.evalwright("index", history.folder)
    assert (done.code, (history.folder / INDEX).exists(), "cells in" in done.out) == (0, True, True)
    with (history.folder / "results.jsonl").open("ab") as file:
        file.write(b"{\n")
    refused = made.evalwright("index", history.folder)
    assert (refused.code, "cannot be read" in refused.err) == (2, True)
