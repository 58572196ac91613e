"""Runs that end as soon as they are decided, and go on where they stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalwright.decisions.comparison import comparison_of
from evalwright.decisions.runs import two_runs
from evalwright.decisions.terms import Terms
from evalwright.errors import InputError
from evalwright.model.case import EvalCase
from evalwright.model.decision import Decision
from evalwright.model.plan import Variant
from evalwright.model.suite import Suite
from evalwright.reports.decision import decision_lines
from evalwright.reports.text import Paint
from evalwright.run.cells import RunState
from evalwright.run.options import RunOptions
from evalwright.run.outcomes import Outcome
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite, run_suite_here
from evalwright.run.stored_run import open_run
from evalwright.statistics.sequences import betting_sequence
from run.suites import SAYS_DONE, suite

HALF, GOOD, BAD = "10" * 60, "1" * 120, "0" * 120


def made(folder: Path, group: int = 0, trials: int = 1, **answers: str) -> Suite:
    """Variants by what they answer, a letter a case; with `group`, so many cases are of one group."""
    variants = [
        Variant(name, "python_function", {"target": "agents:tabled_until", "answers": row})
        for name, row in answers.items()
    ]
    element = suite(folder, [], variants=variants, max_concurrency=1, trials=trials, stop_after_errors=0)
    element.cases = [
        EvalCase(id=f"c{i}", input=i, group=f"g{i // group}" if group else None)
        for i in range(len(next(iter(answers.values()))))
    ]
    return element


def decided(found: Suite, against: object, **options: Any) -> Outcome:
    return run_suite(found, RunOptions(until_decided=True, against=str(against), **options))


def kept(outcome: Outcome) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((outcome.run_dir / "decision.json").read_text())
    return document


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return run_suite(made(tmp_path, main=HALF)).run_dir


@pytest.mark.parametrize(("answers", "verdict", "code"), [(GOOD, "ship", 0), (BAD, "dont", 1)])
def test_a_run_ends_once_it_is_decided(
    tmp_path: Path, before: Path, agents: ModuleType, answers: str, verdict: str, code: int
) -> None:
    agents.calls.clear()
    outcome = decided(made(tmp_path, main=answers), before)
    document, gate = kept(outcome), outcome.summary.gate
    assert gate is not None
    assert gate.decision is not None
    assert (outcome.exit_code, gate.decision.verdict, gate.decision.method) == (code, verdict, "betting")
    assert (outcome.summary.status, outcome.summary.cells_missing) == ("complete", 0)
    assert len(agents.calls) == len(document["bets"]) < 60
    assert agents.calls == [case for unit in document["units"] for case in unit][: len(agents.calls)]
    assert agents.calls != sorted(agents.calls, key=lambda case: int(case[1:]))
    differences = [bet["least"] for bet in document["bets"]]
    sequence = betting_sequence(differences, [0.02], [len(differences)])
    assert (sequence.stop_above if verdict == "ship" else sequence.stop_below) == [len(differences)]
    assert gate.decision.ci == pytest.approx(sequence.ci_last)
    assert (gate.decision.a.ci, gate.decision.b.ci) == (None, None)
    assert (gate.decision.p_margin or 1) <= 0.05
    assert "valid at any time" in gate.decision.warnings[-1]
    assert resume(outcome.run_dir).notes[0] == "nothing to do: it is decided"
    assert compared(before, outcome.run_dir).warnings[-1].startswith("B ran until decided")


def compared(one: Path, other: Path) -> Decision:
    (reader, plan), (last, of) = open_run(one), open_run(other)
    with closing(reader), closing(last):
        return comparison_of(two_runs(reader, plan, last, of, Terms()), str(one), str(other)).variants[0].decision


@pytest.mark.parametrize(("answers", "verdict"), [(GOOD, "ship"), (BAD, "dont"), (HALF, "undecided")])
def test_comparing_a_run_that_was_decided_says_what_it_said_itself(
    tmp_path: Path, before: Path, answers: str, verdict: str
) -> None:
    outcome = decided(made(tmp_path, main=answers), before, max_cases=60)
    gate = outcome.summary.gate
    assert gate is not None
    assert gate.decision is not None
    comparison = compared(before, outcome.run_dir)
    assert (comparison.verdict, comparison.method, comparison.a.ci, comparison.next) == (verdict, "betting", None, None)
    assert comparison.ci == pytest.approx(gate.decision.ci)
    assert comparison.p_margin == pytest.approx(gate.decision.p_margin)
    assert comparison.p_better == pytest.approx(gate.decision.p_better)


def test_a_run_that_was_killed_before_it_was_decided_is_not_decided_by_what_it_has(
    tmp_path: Path, before: Path
) -> None:
    """Who may stop when it looks good has not a fixed number of cases, whose interval would say ship."""
    run = decided(made(tmp_path, main=GOOD), before).run_dir
    left = len((run / "verdicts.jsonl").read_text().splitlines()) - 1
    for name in ("traces.jsonl", "results.jsonl", "verdicts.jsonl"):
        lines = (run / name).read_text().splitlines(keepends=True)
        (run / name).write_text("".join(lines[:left]))
    (run / "summary.yaml").unlink()
    comparison = compared(before, run)
    assert (comparison.n, comparison.verdict, comparison.reasons) == (left, "undecided", ["data"])
    assert comparison.ci is not None
    assert comparison.ci[0] < -0.02 < comparison.ci[1]


def test_a_later_run_is_bet_on_in_the_order_of_an_earlier_one_that_was_decided(tmp_path: Path, before: Path) -> None:
    run_dir = decided(made(tmp_path, main=GOOD), before).run_dir
    later = compared(run_dir, run_suite(made(tmp_path, main=BAD)).run_dir)
    assert (later.method, later.verdict) == ("betting", "dont")
    assert later.warnings[-1].startswith("A ran until decided")


def test_the_end_of_the_suite_leaves_it_open(tmp_path: Path, before: Path) -> None:
    outcome = decided(made(tmp_path, main=HALF), before, seed=3)
    assert (outcome.exit_code, len(kept(outcome)["bets"])) == (3, 120)
    assert outcome.summary.gate is not None
    assert outcome.summary.gate.reason == "every unit was looked at"
    assert outcome.summary.gate.decision is not None
    assert decision_lines(outcome.summary.gate.decision, Paint())[-1] == "next: a suite of more cases"
    cut = decided(made(tmp_path, main=HALF), before, seed=4, max_cases=20).summary.gate
    assert cut is not None
    assert cut.decision is not None
    assert cut.reason == "stopped after 20 of 120 units, --max-cases"
    assert cut.decision.warnings[-1] == "valid at any time: looked at 20 of 120 units"
    lines = decision_lines(cut.decision, Paint())
    assert lines[-2].startswith("next: units that were not looked at yet")
    rule = open_run(outcome.run_dir)[1].until_decided
    assert rule is not None
    assert (rule.alpha, rule.seed) == (0.05, 3)


def test_an_interrupted_sequence_goes_on_where_it_stopped(tmp_path: Path, before: Path, agents: ModuleType) -> None:
    whole = kept(decided(made(tmp_path, main=GOOD), before))
    states: list[RunState] = []

    @contextmanager
    def watch(state: RunState) -> Iterator[None]:
        states.append(state)
        yield

    def stop() -> None:
        if len(agents.calls) == 9:
            states[-1].stopping = True

    agents.calls.clear()
    agents.interrupts.append(stop)
    options = RunOptions(until_decided=True, against=str(before))
    outcome = run_suite(made(tmp_path, main=GOOD), options, watch)
    agents.interrupts.clear()
    assert (outcome.exit_code, len(kept(outcome)["bets"])) == (130, 9)
    (outcome.run_dir / "summary.yaml").unlink()
    again = resume(outcome.run_dir)
    assert again.exit_code == 0
    assert kept(again)["bets"] == whole["bets"]
    assert len(agents.calls) == len(set(agents.calls)) == len(whole["bets"])


def test_errors_are_bet_on_as_the_worst_that_they_could_have_been(tmp_path: Path, before: Path) -> None:
    outcome = decided(made(tmp_path, main="e" * 120), before)
    bets = kept(outcome)["bets"]
    assert {(bet["least"], bet["greatest"]) for bet in bets} == {(-1.0, 0.0), (0.0, 1.0)}
    assert outcome.exit_code == 3
    assert outcome.summary.gate is not None
    assert outcome.summary.gate.decision is not None
    assert outcome.summary.gate.decision.errors.b.target == 120
    comparison = compared(before, outcome.run_dir)
    assert (comparison.verdict, comparison.reasons) == ("undecided", ["data"])
    assert "errors (A 0, B 120) count as the worst that they could have been" in comparison.warnings


def test_a_run_that_is_decided_in_spite_of_errors_has_passed(tmp_path: Path, before: Path) -> None:
    outcome = decided(made(tmp_path, main="1e1111" * 20), before)
    assert outcome.summary.variants[0].cells["error"]
    assert outcome.exit_code == 0


def test_a_cell_that_is_retried_is_bet_on_by_its_answer(tmp_path: Path, before: Path, agents: ModuleType) -> None:
    outcome = decided(made(tmp_path, main=HALF.replace("1", "e", 2)), before)
    ends = {bet["cases"][0]: (bet["least"], bet["greatest"]) for bet in kept(outcome)["bets"]}
    assert ends["c0"] == (-1.0, 0.0)
    agents.mended.append(True)
    agents.calls.clear()
    again = retry(outcome.run_dir)
    assert sorted(agents.calls) == ["c0", "c2"]
    assert {bet["cases"][0]: (bet["least"], bet["greatest"]) for bet in kept(again)["bets"]}["c0"] == (0.0, 0.0)


def test_a_variant_of_the_same_suite_is_run_beside(tmp_path: Path) -> None:
    outcome = decided(made(tmp_path, trials=2, old=HALF, new=GOOD), "old")
    assert outcome.exit_code == 0
    decision = kept(outcome)["decision"]
    assert (decision["variant_a"], decision["variant_b"], decision["trials"]) == ("old", "new", [2, 2])
    assert outcome.summary.variants[0].cells_total < 240


def test_groups_are_bet_on_as_wholes(tmp_path: Path) -> None:
    before = run_suite(made(tmp_path, group=4, main=HALF)).run_dir
    bets = kept(decided(made(tmp_path, group=4, main=GOOD), before, max_cases=41))["bets"]
    assert {len(bet["cases"]) for bet in bets} == {4}
    assert len(bets) <= 10
    assert {bet["weight"] for bet in bets} == {1.0}


def test_no_more_is_begun_than_may_be_paid_for(tmp_path: Path, before: Path, agents: ModuleType) -> None:
    agents.calls.clear()
    assert len(kept(decided(made(tmp_path, main=HALF), before, max_cases=7))["units"]) == 7
    assert len(agents.calls) == 7


def test_a_run_that_has_reached_its_cost_calls_nobody_when_it_is_resumed(
    tmp_path: Path, before: Path, agents: ModuleType
) -> None:
    def metered(case: dict[str, Any], variant: dict[str, Any]) -> dict[str, Any]:
        agents.calls.append(case["id"])
        return {"final_answer": "done", "metrics": {"cost_usd": 0.25}}

    agents.metered = metered
    suite_made = made(tmp_path, main=HALF)
    suite_made.variants = [Variant("main", "python_function", {"target": "agents:metered"})]
    agents.calls.clear()
    outcome = decided(suite_made, before, max_cost=1.0)
    assert (outcome.exit_code, len(agents.calls)) == (3, 4)
    assert resume(outcome.run_dir).exit_code == 3
    assert len(agents.calls) == 4


def test_an_undecided_run_is_continued_unless_the_seed_is_new(tmp_path: Path, before: Path) -> None:
    one = decided(made(tmp_path, main=HALF), before, max_cases=70)
    two = decided(made(tmp_path, main=HALF), before)
    assert (len(kept(two)["earlier"]), len(kept(two)["units"])) == (70, 50)
    assert kept(two)["terms"]["continues"] == one.plan.run_id
    seen = {case for unit in kept(one)["units"] for case in unit}
    assert seen.isdisjoint(case for unit in kept(two)["units"] for case in unit)
    with pytest.raises(InputError, match="every unit of the suite was looked at"):
        decided(made(tmp_path, main=HALF), before)
    assert len(kept(decided(made(tmp_path, main=HALF), before, seed=5))["units"]) == 120


def test_a_killed_run_is_continued_with_what_its_records_say(tmp_path: Path, before: Path) -> None:
    """A process that dies stores neither bets nor outcome in `decision.json`, and has not lost its evidence."""

    def kill(outcome: Outcome) -> Outcome:
        text = json.dumps(kept(outcome) | {"bets": [], "decision": None})
        (outcome.run_dir / "decision.json").write_text(text)
        return outcome

    one = kill(decided(made(tmp_path, main=HALF), before, max_cases=40))
    two = kill(decided(made(tmp_path, main=HALF), before, max_cases=30))
    assert (len(kept(two)["earlier"]), kept(two)["terms"]["continues"]) == (40, one.plan.run_id)
    for name in ("traces.jsonl", "results.jsonl", "verdicts.jsonl"):  # it died before its first cell
        (two.run_dir / name).write_text("")
    three = decided(made(tmp_path, main=HALF), before)
    assert (len(kept(three)["earlier"]), kept(three)["terms"]["continues"]) == (40, one.plan.run_id)
    assert len(kept(three)["units"]) == 80


def test_what_cannot_be_held_against_another_is_refused(
    tmp_path: Path, before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = [
        (made(tmp_path, main=GOOD), "nowhere", "no run or variant 'nowhere'"),
        (made(tmp_path, a=GOOD, b=GOOD), before, "decides one variant"),
        (made(tmp_path, a=GOOD, b=GOOD, c=GOOD), "a", "expected one other variant"),
        (made(tmp_path, group=2, main=GOOD), before, "120 cases"),
    ]
    for found, against, message in refused:
        with pytest.raises(InputError, match=message):
            decided(found, against)
    with pytest.raises(InputError, match=r"2pp or 0\.02, found '2'"):
        decided(made(tmp_path, main=GOOD), before, margin="2")
    monkeypatch.setitem(SAYS_DONE.config, "all_of", ["done", "o"])
    with pytest.raises(InputError, match="evaluator says_done"):
        decided(made(tmp_path, main=GOOD), before)
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_cases_that_the_other_run_lacks_are_left_out_and_said(tmp_path: Path) -> None:
    before = run_suite(made(tmp_path, main=HALF[:100])).run_dir
    outcome = decided(made(tmp_path, main=HALF), before)
    assert outcome.plan.cases_total == 100
    assert f"20 of 120 cases are not in {before}: not run" in outcome.summary.warnings


def test_a_run_that_asked_of_other_files_is_not_continued(tmp_path: Path, before: Path) -> None:
    one = decided(made(tmp_path, main=HALF), before, max_cases=70)
    document = kept(one)
    document["files"] = {**document["files"], "prompt.txt": "0" * 64}
    (one.run_dir / "decision.json").write_text(json.dumps(document))
    two = decided(made(tmp_path, main=HALF), before)
    assert (kept(two).get("earlier", []), len(kept(two)["units"])) == ([], 120)


def test_a_run_that_is_decided_calls_nobody_when_it_is_resumed(
    tmp_path: Path, before: Path, agents: ModuleType
) -> None:
    one = decided(made(tmp_path, main=GOOD), before)
    (one.run_dir / "summary.yaml").unlink()
    agents.calls.clear()
    assert resume(one.run_dir).exit_code == 0
    assert agents.calls == []


def test_a_run_in_the_loop_of_its_caller_has_not_been_interrupted_once_it_is_decided(
    tmp_path: Path, before: Path
) -> None:
    options = RunOptions(until_decided=True, against=str(before))
    assert asyncio.run(run_suite_here(made(tmp_path, main=GOOD), options)).exit_code == 0
