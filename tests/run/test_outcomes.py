"""How a run ends: its exit code, by its cells, its gate and what cannot be read."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalwright.model.plan import Shard, UntilDecided
from evalwright.model.result import Status
from evalwright.model.summary import GateOutcome
from evalwright.run.outcomes import Outcome, folded_summary
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.scoring.tally import Tally
from evalwright.testing import a_plan, a_trace
from run.suites import suite

PASSED, FAILED = GateOutcome(True), GateOutcome(False)
UNDECIDED, TOLERATED = GateOutcome(False, undecided=True), GateOutcome(False, undecided=True, tolerated=True)
SHARD = Shard(1, 1)
DECIDED = UntilDecided("a", None, "a", "b", 0.05, 0.05, 0)


def exit_code(
    statuses: str, gate: GateOutcome | None = None, *, planned: int | None = None, plan: Any = None, **fields: Any
) -> int:
    """The exit code after cells with these statuses."""
    of = a_plan(cases_total=planned or len(statuses.split()), **(plan or {}))
    tally = Tally.of(of)
    status: Status
    for number, status in enumerate(statuses.split()):  # type: ignore[assignment]
        tally.count(a_trace(case_id=f"c{number}", variant_name=f"v{number % 2}"), [], status)
    summary = tally.summary(of, of.started_at)
    summary.gate = gate
    return Outcome(Path("run"), of, summary, **fields).exit_code


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ("pass pass", 0),
        ("pass skip", 0),
        ("pass fail", 1),
        ("borderline pass", 1),
        ("pass error", 3),
        ("fail error", 3),
    ],
)
def test_without_a_gate_every_cell_has_to_pass_or_to_be_skipped(statuses: str, code: int) -> None:
    assert exit_code(statuses) == code


@pytest.mark.parametrize(
    ("gate", "statuses", "code"),
    [
        (PASSED, "pass fail", 0),
        (PASSED, "pass borderline", 0),
        (PASSED, "pass error", 3),
        (FAILED, "pass pass", 1),
        (FAILED, "pass error", 1),
        (UNDECIDED, "pass pass", 3),
        (UNDECIDED, "fail fail", 3),
        (TOLERATED, "fail fail", 0),
        (TOLERATED, "pass error", 3),
    ],
)
def test_a_gate_decides_unless_a_cell_has_no_verdict(gate: GateOutcome, statuses: str, code: int) -> None:
    assert exit_code(statuses, gate) == code


@pytest.mark.parametrize(("gate", "code"), [(None, 3), (PASSED, 3), (FAILED, 1), (TOLERATED, 3)])
def test_a_run_without_all_its_cells_has_not_passed(gate: GateOutcome | None, code: int) -> None:
    assert exit_code("pass pass", gate, planned=3) == code


@pytest.mark.parametrize(("statuses", "planned", "code"), [("fail error", 2, 0), ("pass", 2, 3)])
def test_a_shard_is_repeated_only_if_cells_of_it_are_missing(statuses: str, planned: int, code: int) -> None:
    assert exit_code(statuses, planned=planned, plan={"shard": SHARD}) == code


@pytest.mark.parametrize(("gate", "code"), [(PASSED, 0), (FAILED, 1), (UNDECIDED, 3)])
def test_a_run_that_was_decided_needs_no_more_cells(gate: GateOutcome, code: int) -> None:
    assert exit_code("pass error fail", gate, planned=9, plan={"until_decided": DECIDED}) == code


def test_a_run_that_was_to_be_decided_and_has_no_decision_ends_by_its_cells() -> None:
    assert exit_code("pass fail", plan={"until_decided": DECIDED}) == 1


@pytest.mark.parametrize(("statuses", "code"), [("pass", 3), ("fail", 1)])
def test_a_run_with_records_that_cannot_be_read_has_not_passed(statuses: str, code: int) -> None:
    assert exit_code(statuses, unread=["traces: a line"]) == code


@pytest.mark.parametrize("gate", [PASSED, FAILED])
def test_an_interrupted_run_says_so_whatever_its_gate(gate: GateOutcome) -> None:
    assert exit_code("pass", gate, interrupted=True) == 130


def test_a_run_that_was_killed_before_its_first_record_took_no_time(tmp_path: Path) -> None:
    run = run_suite(suite(tmp_path, ["word"])).run_dir
    for name in ("traces", "results", "verdicts"):
        (run / f"{name}.jsonl").write_text("")
    (run / "summary.yaml").unlink()
    reader, plan = open_run(run)
    with closing(reader):
        assert folded_summary(reader, plan).finished_at == plan.started_at
