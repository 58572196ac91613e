"""The index of a run that is being written, whose records need not be read back: it is that of the records."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalwright.files.masker import Masker
from evalwright.model.facts import Rejudgement
from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Metrics, Trace, TraceError
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.stores.index import opened_index
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.writer import LocalWriter
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from run.suites import suite

CASES = 6
SECRET = "a-secret-key"
"""As long as what is stored in its place."""
CELLS = [(number, variant) for number in range(CASES) for variant in ("v1", "v2")]
FLAVOURS = (
    "plain",
    "again",
    "error",
    "group",
    "named",
    "secret",
    "separator",
    "cost",
    "endless",
    "unmeasured",
    "zone",
    "double",
    "none",
)
Records = tuple[Trace, list[EvaluationResult], CaseVerdict]


@pytest.fixture(autouse=True)
def any_run_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalwright.stores.local_files.reader.INDEXED_FROM", 0)


class Run:
    """A run that is being written, by steps that are named like its methods."""

    def __init__(self, folder: Path) -> None:
        """The run has an index from the beginning."""
        plan = a_plan(
            variants=[Variant(name, "python_function") for name in ("v1", "v2")],
            cases_total=CASES,
            evaluators=[EvaluatorSpec(name, "contains_text") for name in ("one", "two")],
        )
        self._masker = Masker({"TOKEN": SECRET})
        cases = [a_case(id=f"c{number}") for number in range(CASES)]
        self.writer: LocalWriter = LocalFiles(folder, self._masker).create(plan, cases, {})
        self.note = self.writer.noting()
        self.plan: Plan = plan
        self.folder = Path(self.writer.location)
        self._attempts = dict.fromkeys(CELLS, 0)
        self._later: list[Callable[[], None]] = []
        self.cell(CELLS[0], "plain")
        self.sync()

    def records(self, cell: tuple[int, str], flavour: str) -> Records:
        """A cell's records, of its first attempt or of one after that."""
        self._attempts[cell] += 2 if flavour == "again" else 1
        of: dict[str, Any] = {"case_id": f"c{cell[0]}", "variant_name": cell[1], "attempt": self._attempts[cell]}
        if flavour == "named":
            of["occurrence"] = 2
        trace = a_trace(**of, case_index=cell[0], latency_ms=5, metrics=Metrics(3, None, cost_usd=0.5))
        names = [] if flavour in ("error", "none") else ["one", "one"] if flavour == "double" else ["one", "two"]
        rows = [a_result(**of, evaluator=name, passed=cell[0] % 2 == 0, score=1.0) for name in names]
        verdict = a_verdict(**of, case_index=cell[0], status="pass" if cell[0] % 2 == 0 else "fail", score=0.25)
        if flavour == "error":
            trace.error, verdict.status = TraceError("timeout", "late"), "error"
        elif flavour == "group":
            trace.group = "g"
        elif flavour == "secret":
            trace.group = f"g {SECRET}"
        elif flavour == "separator":
            trace.output.final_answer = "a\u2028b"
        elif flavour == "cost":
            rows[0].cost_usd, rows[1].score = 0.125, 0.5
        elif flavour == "endless":
            trace.metrics.cost_usd = math.inf
        elif flavour == "unmeasured":
            verdict.score = math.nan
        elif flavour == "zone":
            rows[0].finished_at = rows[0].finished_at.astimezone(timezone(timedelta(hours=2)))
        return trace, rows, verdict

    def cell(self, cell: tuple[int, str], flavour: str) -> None:
        trace, rows, verdict = self.records(cell, flavour)
        self.writer.append_trace(trace)
        self.writer.append_results(rows)
        self.writer.append_verdict(verdict)

    def woven(self, cell: tuple[int, str], flavour: str) -> None:
        """Another cell is judged between a cell's trace and its judgement, whose results come one by one."""
        trace, rows, verdict = self.records(cell, flavour)
        self.writer.append_trace(trace)
        self.cell(CELLS[CELLS.index(cell) - 1], "plain")
        for row in rows:
            self.writer.append_results([row])
        self.writer.append_verdict(verdict)

    def half(self, cell: tuple[int, str], flavour: str) -> None:
        """The run is stopped before a cell is judged."""
        trace, rows, _ = self.records(cell, flavour)
        self.writer.append_trace(trace)
        self.writer.append_results(rows[:1])

    def twice(self, cell: tuple[int, str], flavour: str) -> None:
        """A trace replaces another one of the same attempt."""
        trace, rows, verdict = self.records(cell, flavour)
        self.writer.append_trace(trace)
        self.writer.append_trace(trace)
        self.writer.append_results(rows)
        self.writer.append_verdict(verdict)

    def late(self, cell: tuple[int, str], flavour: str) -> None:
        """A result of a cell that may have been judged already."""
        if self._attempts[cell]:
            of = {"case_id": f"c{cell[0]}", "variant_name": cell[1], "attempt": self._attempts[cell]}
            self.writer.append_results([a_result(**of, evaluator="late")])

    def lines(self, cell: tuple[int, str], flavour: str) -> None:
        """Cells that were judged alike come together."""
        other = CELLS[CELLS.index(cell) - 2]
        results, verdicts, cells, finished = b"", b"", [], datetime.min.replace(tzinfo=UTC)
        unfinished = self.writer.encoder.unfinished
        for one in (cell, other):
            unusual = one == cell and flavour != "zone"  # they have the date that is noted
            trace, rows, verdict = self.records(one, flavour if unusual else "plain")
            self.writer.append_trace(trace)
            results += unfinished(rows)
            verdicts += unfinished([verdict])
            error = trace.error.type if trace.error else None
            alike = Rejudgement(one[1], verdict.status, error, verdict.score, rows)
            cells.append((one[0], 0, trace.attempt, trace.finished_at, alike))
            finished = max([finished, *[row.finished_at for row in rows]])
        assert self.note is not None
        self.note(cells, finished)
        self.writer.append_lines(results, verdicts)

    def sync(self, *_: object) -> None:
        self.writer.sync()

    def hold(self, *_: object) -> None:
        self.writer.hold(self._later.append)

    def turn(self, *_: object) -> None:
        due = [*self._later]
        self._later.clear()
        for write in due:
            write()

    def reopen(self, *_: object) -> None:
        self.writer.close()
        self._later.clear()
        self.writer = LocalFiles.at(self.folder, self._masker)[0].open(self.folder.name)
        self.note = self.writer.noting()

    def close(self) -> None:
        self.writer.sync()
        self.writer.close()


def kept(folder: Path) -> tuple[object, ...]:
    """All that an index holds, except for the order in which kinds of cells appeared."""
    with closing(sqlite3.connect(folder / INDEX)) as index:
        if index.execute("SELECT 1 FROM meta WHERE name = 'odd'").fetchone():
            return ("odd",)  # it is not used, whatever it holds
        kinds = {
            number: rest for number, *rest in index.execute("SELECT id, variant, status, error, outcomes FROM profiles")
        }
        at = [name for _, name, *_ in index.execute("PRAGMA table_info(cells)")].index("profile")
        rows = [
            [*row[:at], kinds[row[at]], *row[at + 1 :]] for row in index.execute("SELECT * FROM cells ORDER BY number")
        ]
        others = ("covered", "meta", "replaced")
        return rows, *[sorted(index.execute(f"SELECT * FROM {name}")) for name in others]


def opened(run: Path, plan: Plan) -> None:
    """Bring the index of a run up to date, or create it."""
    index = opened_index(run, plan)
    if index is not None:
        index.close()


def must_be_that_of_the_records(run: Path, plan: Plan) -> None:
    with (run / INDEX).open("rb") as held:  # while it is open, no new file gets its number
        opened(run, plan)  # results that came without a trace are added by whoever reads them
        assert (run / INDEX).stat().st_ino == os.fstat(held.fileno()).st_ino
    mine = kept(run)
    assert SECRET.encode() not in (run / INDEX).read_bytes()
    for name in (INDEX, f"{INDEX}-wal", f"{INDEX}-shm"):
        (run / name).unlink(missing_ok=True)
    opened(run, plan)
    assert mine == kept(run)


RARE = ["woven", "half", "late", "twice", "hold", "turn", "reopen"]
STEPS = st.tuples(
    st.sampled_from(["cell"] * 4 + ["lines"] * 4 + ["sync"] * 2 + RARE),
    st.sampled_from(CELLS),
    st.sampled_from(("plain",) * 8 + FLAVOURS),
)


A, B = CELLS[3], CELLS[8]


@example([("hold", A, ""), ("cell", A, "plain"), ("lines", B, "plain"), ("late", A, ""), ("turn", A, "")], 1000)
@example([("cell", A, "plain"), ("hold", A, ""), ("late", A, ""), ("cell", B, "plain"), ("turn", A, "")], 1000)
@example([("cell", A, "secret"), ("lines", B, "secret"), ("cell", B, "again"), ("woven", A, "plain")], 1)
@example([("cell", A, "endless"), ("cell", B, "unmeasured")], 1)
@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(STEPS, max_size=12), st.sampled_from([1, 1000]))
def test_an_index_of_cells_that_were_not_read_back_is_that_of_the_records(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, tuple[int, str], str]], many: int
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evalwright.stores.index.written_cells._MANY", many)
        run = Run(folder)
        for step, *what in steps:
            getattr(run, step)(*what)
        run.close()
    must_be_that_of_the_records(run.folder, run.plan)
    shutil.rmtree(folder)


def test_many_cells_do_not_wait_for_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalwright.stores.index.written_cells._MANY", 3)
    run = Run(tmp_path)
    seen = []
    for cell in CELLS[1:6]:
        run.cell(cell, "plain")
        with closing(sqlite3.connect(run.folder / INDEX)) as index:
            seen += index.execute("SELECT count(*) FROM cells").fetchone()
    assert seen == [1, 1, 4, 4, 4]
    run.close()


def test_records_that_were_just_written_are_not_read_back(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for cell in CELLS[1:4]:
        run.cell(cell, "plain")
    run.lines(CELLS[7], "plain")
    traces = run.folder / "traces.jsonl"
    written = traces.read_bytes()
    traces.write_bytes(written.replace(b'"latency_ms":5,', b'"latency_ms":6,'))
    run.sync()
    with closing(sqlite3.connect(run.folder / INDEX)) as index:
        assert index.execute("SELECT DISTINCT latency_ms FROM cells").fetchall() == [(5,)]
    traces.write_bytes(written)
    run.close()


def test_the_index_of_a_run_with_errors_is_that_of_its_records(tmp_path: Path) -> None:
    inputs: list[object] = ["error" if number % 9 == 4 else f"word {number}" for number in range(50)]
    checks = [EvaluatorSpec("says", "contains_text", {"all_of": ["1"]}), EvaluatorSpec("some", "contains_text")]
    place = "run.project.agents:word"
    outcome = run_suite(suite(tmp_path, inputs, place, evaluators=checks, max_concurrency=4), RunOptions())
    assert kept(outcome.run_dir)[0], "it has cells"
    must_be_that_of_the_records(outcome.run_dir, outcome.plan)
