"""What a run comes to as a whole: gates with an error rate, and the same numbers wherever two sides are decided."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from evalwright.decisions.comparison import comparison_of
from evalwright.decisions.drift import drift
from evalwright.decisions.runs import two_runs
from evalwright.decisions.terms import Guard, Terms
from evalwright.errors import InputError
from evalwright.model.case import EvalCase
from evalwright.model.decision import Decision
from evalwright.model.plan import PassCriteria, Variant
from evalwright.model.summary import GateOutcome
from evalwright.registry import load
from evalwright.reports.decision import decision_lines
from evalwright.reports.numbers import condition, met
from evalwright.reports.pictures.decision import decision_image
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.run.baselines import promote
from evalwright.run.outcomes import Outcome, folded_summary
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import SAYS_DONE, suite

CLAIM: dict[str, Any] = {
    "claim": "not_worse_than",
    "against": "baseline",
    "metric": "pass_rate",
    "margin": 0.02,
    "alpha": 0.05,
    "on_undecided": "fail",
    "group": None,
    "errors": "exclude",
    "allow_changed": False,
    "slices": [],
    "slice_margin": None,
    "guards": {},
}
RATE = {
    "claim": "at_least",
    "metric": "pass_rate",
    "alpha": 0.05,
    "on_undecided": "fail",
    "group": None,
    "rule": "interval",
}


def ran(
    folder: Path, *claims: dict[str, Any], tree: Any = None, baseline: str | None = None, **answers: str
) -> Outcome:
    """A run of variants by what they answer, a letter a case."""
    variants = [
        Variant(name, "python_function", {"target": "agents:tabled", "answers": row}) for name, row in answers.items()
    ]
    made = suite(folder, [], variants=variants, stop_after_errors=0, baseline_variant=baseline)
    cases = max(map(len, answers.values()))
    langs = ["es" if i % 4 == 0 else "en" for i in range(cases)]
    made.cases = [EvalCase(id=f"c{i}", input=i, metadata={"lang": lang}) for i, lang in enumerate(langs)]
    made.gate = {"kind": "claims", "claims": list(claims), "conditions": tree} if claims else None
    return run_suite(made)


def gate_of(outcome: Outcome) -> GateOutcome:
    assert outcome.summary.gate is not None
    return outcome.summary.gate


def promoted(folder: Path, answers: str) -> Outcome:
    outcome = ran(folder, main=answers)
    promote(outcome.run_dir, "test")
    return outcome


HALF = "10" * 30
BETTER, WORSE = "11" * 30, "00" * 30


@pytest.mark.parametrize(
    ("answers", "claim", "code", "verdict"),
    [
        (BETTER, {}, 0, "ship"),
        (BETTER, {"claim": "better_than", "margin": None}, 0, "ship"),
        (WORSE, {}, 1, "dont"),
        (WORSE, {"claim": "better_than", "margin": None}, 1, "dont"),
        (HALF[::-1], {}, 3, "undecided"),
        (HALF[::-1], {"on_undecided": "pass"}, 0, "undecided"),
        (HALF, {"claim": "better_than", "margin": None}, 3, "undecided"),
        (BETTER, {"guards": {"evaluator:says_done": 0.9}}, 1, "dont"),
        (BETTER, {"guards": {"cost": 1.1}}, 3, "undecided"),
    ],
)
def test_a_claim_is_what_decide_says(
    tmp_path: Path, answers: str, claim: dict[str, Any], code: int, verdict: str
) -> None:
    before = promoted(tmp_path, HALF)
    outcome = ran(tmp_path, CLAIM | claim, main=answers)
    gate = gate_of(outcome)
    assert (outcome.exit_code, gate.decision and gate.decision.verdict) == (code, verdict)
    reader, plan = open_run(before.run_dir)
    reader_b, plan_b = open_run(outcome.run_dir)
    guards = tuple(Guard(*item) for item in claim.get("guards", {}).items())
    better = claim.get("claim") == "better_than"
    terms = Terms(margin=0.0 if better else 0.02, better=better, guards=guards)
    with closing(reader), closing(reader_b):
        runs = two_runs(reader, plan, reader_b, plan_b, terms)
    assert gate.decision == runs.decision("main", "main")


def test_each_claim_of_a_gate_is_a_part_that_says_what_became_of_it(tmp_path: Path) -> None:
    """A broken guard does not make a rate look missed whose interval is what was asked for."""
    promoted(tmp_path, HALF)
    asked = {"guards": {"evaluator:says_done": 0.95, "cost": 1.1}, "slices": ["*"], "slice_margin": 0.0}
    outcome = ran(tmp_path, CLAIM | asked, RATE | {"at_least": 0.9}, main=BETTER)
    rate, guard, cost, least = gate_of(outcome).parts
    assert [met(part)[0] for part in (rate, guard, cost, least)] == ["met", "missed", "unknown", "met"]
    lines = run_lines(outcome.plan, outcome.summary, Paint(columns=80))
    assert max(map(len, lines)) <= 80
    told = [condition(part) for part in (rate, guard, cost, least)]
    assert told[0] == "pass_rate of main not worse than baseline: +50.0 pp [+34.9, +61.9], above −2 pp (60 cases)"
    assert told[1].endswith("], at least +95 pp")
    assert told[2] == "guard cost of main: not measured, at most +10 %; no interval: not measured on both sides"
    assert told[3] == "pass_rate of main: 100.0% [94.0, 100.0], at least 90% (60 cases)"
    worse = ran(tmp_path, CLAIM | {"margin": 0.9, "slices": ["*"], "slice_margin": 0.1}, main=WORSE)
    assert [met(part)[0] for part in gate_of(worse).parts] == ["met", "missed", "missed"]
    assert "slice lang=e" in gate_of(worse).parts[1].name


def test_a_slice_that_is_shown_to_be_worse_fails_a_gate(tmp_path: Path) -> None:
    promoted(tmp_path, BETTER)
    answers = "".join("0" if i % 4 == 0 else "1" for i in range(60))
    lost = CLAIM | {"margin": 0.5, "slices": ["*"], "slice_margin": 0.1}
    outcome = ran(tmp_path, lost, main=answers)
    assert (outcome.exit_code, gate_of(outcome).reason) == (1, "worse: slice lang=es")
    assert ran(tmp_path, lost | {"slice_margin": None}, main=answers).exit_code == 0
    with pytest.raises(InputError, match=r"no case has 'metadata.lnag'.*metadata.lang"):
        ran(tmp_path, lost | {"slices": ["metadata.lnag"]}, main=answers)
    with pytest.raises(InputError, match=r"no case has 'metadata\.lang' in its metadata; did you mean \"lang\"\?"):
        ran(tmp_path, lost | {"group": "metadata.lang"}, main=answers)
    with pytest.raises(InputError) as raised:
        ran(tmp_path, lost | {"slices": ["metadata.lnag"], "against": "runs/gone"}, main=answers)
    assert len(raised.value.problems) == 2, "the baseline and the slice, both at once"


def test_without_a_baseline_a_gate_is_undecided_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    outcome = ran(tmp_path, CLAIM, main=BETTER)
    gate = gate_of(outcome)
    assert (outcome.exit_code, gate.undecided, gate.decision) == (3, True, None)
    assert gate.reason.startswith("baseline: no other run was promoted")
    runs = len(list((tmp_path / "runs").iterdir()))
    with pytest.raises(InputError, match=r"no run or variant 'basleine'.*baseline"):
        ran(tmp_path, CLAIM | {"against": "basleine"}, main=BETTER)
    assert len(list((tmp_path / "runs").iterdir())) == runs
    named = ran(tmp_path, CLAIM | {"against": outcome.run_dir.name}, main=BETTER)
    assert gate_of(named).decision is not None


def test_reports_keep_the_run_that_a_gate_was_held_against(tmp_path: Path) -> None:
    """Promoting a run, another one, or losing the baseline changes nothing of what its gate said."""

    def looked_at(outcome: Outcome) -> GateOutcome:
        reader, plan = open_run(outcome.run_dir)
        with closing(reader):
            gate = folded_summary(reader, plan).gate
        assert gate is not None
        return gate

    first = promoted(tmp_path, BETTER)
    failed = ran(tmp_path, CLAIM, main=WORSE)
    said = gate_of(failed)
    assert (said.reason, said.baselines) == ("worse", {"baseline": first.plan.run_id})
    promote(failed.run_dir, "test")
    assert looked_at(failed) == said
    re_evaluate(failed.run_dir)
    assert looked_at(failed) == said
    promoted(tmp_path, HALF)
    assert looked_at(failed) == said
    first.run_dir.rename(tmp_path / "elsewhere")
    assert looked_at(failed) == said
    stored = failed.run_dir / "summary.yaml"
    stored.write_text(stored.read_text().replace("baselines:", "written_before:"))
    promote(failed.run_dir, "test")
    assert looked_at(failed) == msgspec.structs.replace(said, baselines=msgspec.UNSET)

    alone = ran(tmp_path / "new", CLAIM, main=WORSE)
    promote(alone.run_dir, "test")
    assert looked_at(alone) == gate_of(alone)
    re_evaluate(alone.run_dir)
    assert looked_at(alone) == gate_of(alone)


def test_a_baseline_in_another_folder_may_have_the_same_id(tmp_path: Path) -> None:
    """Its id is the second in which a run began, which may be that of another one."""
    first = promoted(tmp_path, BETTER)
    failed = ran(tmp_path, CLAIM, main=WORSE)
    elsewhere = tmp_path / "elsewhere" / failed.run_dir.name
    elsewhere.parent.mkdir()
    first.run_dir.rename(elsewhere)
    promote(elsewhere, "test", failed.run_dir.parent)
    stored = failed.run_dir / "summary.yaml"
    stored.write_text(stored.read_text().replace("baselines:", "written_before:"))
    re_evaluate(failed.run_dir)
    reader, plan = open_run(failed.run_dir)
    with closing(reader):
        found = folded_summary(reader, plan).gate
    assert found is not None
    assert (found.reason, found.baselines) == ("worse", {"baseline": failed.plan.run_id})


def test_a_gate_that_can_be_decided_again_is_not_taken_from_the_summary(tmp_path: Path) -> None:
    promoted(tmp_path, BETTER)
    failed = ran(tmp_path, CLAIM, main=WORSE)
    stored = failed.run_dir / "summary.yaml"
    stored.write_text(stored.read_text().replace("reason: worse", "reason: unlucky"))
    reader, plan = open_run(failed.run_dir)
    with closing(reader):
        assert reader.summary().gate.reason == "unlucky"
        assert folded_summary(reader, plan).gate == gate_of(failed)


def test_a_baseline_that_was_judged_otherwise_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    promoted(tmp_path, BETTER)
    monkeypatch.setitem(SAYS_DONE.config, "all_of", ["done", "o"])
    changed = ran(tmp_path, CLAIM, main=BETTER)
    assert (changed.exit_code, gate_of(changed).decision) == (3, None)
    assert "evaluator says_done changed since" in gate_of(changed).reason
    assert ran(tmp_path, CLAIM | {"allow_changed": True, "margin": 0.1}, main=BETTER).exit_code == 0


@pytest.mark.parametrize(
    ("answers", "least", "rule", "code"),
    [
        ("1" * 90 + "0" * 10, 0.8, "interval", 0),
        ("1" * 90 + "0" * 10, 0.88, "interval", 3),
        ("1" * 90 + "0" * 10, 0.88, "point", 0),
        ("1" * 60 + "0" * 40, 0.8, "interval", 1),
        ("1" * 87 + "0" * 13, 0.88, "point", 1),
    ],
)
def test_a_rate_is_claimed_by_its_whole_interval(
    tmp_path: Path, answers: str, least: float, rule: str, code: int
) -> None:
    outcome = ran(tmp_path, RATE | {"at_least": least, "rule": rule}, main=answers)
    (part,) = gate_of(outcome).parts
    assert outcome.exit_code == code
    assert (part.value, part.ci, part.n) == (
        outcome.summary.variants[0].pass_rate,
        pytest.approx(outcome.summary.variants[0].pass_rate_ci95),
        100,
    )


def test_cases_of_a_group_are_one_unit_of_a_claimed_rate(tmp_path: Path) -> None:
    outcome = ran(tmp_path, RATE | {"at_least": 0.5, "group": "lang"}, main="1" * 100)
    [part] = gate_of(outcome).parts
    assert (outcome.exit_code, gate_of(outcome).reason) == (3, "too few data")
    assert part.ci is not None
    assert part.ci[0] < 0.5


def test_errors_that_could_turn_a_rate_leave_it_open(tmp_path: Path) -> None:
    gate = gate_of(ran(tmp_path, RATE | {"at_least": 0.9}, main="1" * 100 + "e" * 20))
    assert (gate.undecided, gate.reason) == (True, "errors could turn it")


def test_all_gates_of_a_list_must_pass(tmp_path: Path) -> None:
    tree = {"kind": "simple", "metric_key": "says_done", "aggregation": "avg_score", "op": "gte", "value": 0.95}
    rate = RATE | {"at_least": 0.5}
    assert ran(tmp_path, rate, tree=tree, main="1" * 40).exit_code == 0
    failed = ran(tmp_path, rate, tree=tree, main="1" * 36 + "0" * 4)
    assert (failed.exit_code, [part.passed for part in gate_of(failed).parts]) == (1, [False, True])
    assert ran(tmp_path, rate, RATE | {"at_least": 0.99}, main="1" * 40).exit_code == 3


def test_two_claims_about_the_same_systems_are_told_apart(tmp_path: Path) -> None:
    promoted(tmp_path, HALF)
    claims = CLAIM, CLAIM | {"claim": "better_than", "margin": None}
    outcome = ran(tmp_path, *claims, main=HALF)
    lines = run_lines(outcome.plan, outcome.summary, Paint())
    titles = [line for line in lines if line.startswith("main → main")]
    assert titles == ["main → main: not worse than −2 pp", "main → main: better"]
    assert (gate_of(outcome).reason, gate_of(outcome).undecided) == ("too few data", True)


def test_systems_of_a_suite_are_held_against_one_of_them_together(tmp_path: Path) -> None:
    outcome = ran(tmp_path, CLAIM | {"against": "old"}, old=HALF, new=BETTER, bad=WORSE)
    decisions = gate_of(outcome).decisions
    assert [(decision.variant_b, decision.verdict, decision.family) for decision in decisions] == [
        ("new", "ship", 2),
        ("bad", "dont", 2),
    ]
    assert outcome.exit_code == 1


def test_a_claim_against_the_only_system_is_undecided(tmp_path: Path) -> None:
    outcome = ran(tmp_path, CLAIM | {"against": "old"}, old=HALF)
    assert outcome.exit_code == 3
    assert "there is no other variant" in str(gate_of(outcome))


def test_reports_say_what_a_gate_was_decided_by(tmp_path: Path) -> None:
    promoted(tmp_path, HALF)
    outcome = ran(tmp_path, CLAIM, main=HALF[::-1])
    decision = gate_of(outcome).decision
    assert decision is not None
    headline = decision_lines(decision, Paint())[0]
    assert headline in run_lines(outcome.plan, outcome.summary, Paint())
    reader, plan = open_run(outcome.run_dir)
    with closing(reader):
        reader.plan = plan
        pages = [load("reports", name)().render(reader, outcome.summary) for name in ("markdown", "html")]
        assert all(headline in page for page in pages)
        assert decision_image([decision]) in pages[1]
        # fenced: after the list of conditions an indented line is text, in which names would act
        assert headline in re.search(r"^(`{3,})text\n(.*?)^\1$", pages[0], re.DOTALL | re.MULTILINE)[2]
        junit = ElementTree.fromstring(load("reports", "junit")().render(reader, outcome.summary))
        stored = reader.summary()
    gate = next(case for case in junit.iter("testcase") if case.get("name") == "gate")
    assert [child.tag for child in gate] == ["skipped"]
    assert headline in str(gate[0].text)
    assert stored is not None
    assert stored.gate == outcome.summary.gate
    assert re_evaluate(outcome.run_dir).summary.gate == outcome.summary.gate


def test_the_same_sides_are_decided_alike_everywhere(tmp_path: Path) -> None:
    """Compared, drifted, gated and within one run: one engine, the same numbers."""
    before, after = "1e0" * 20 + "01", "110" * 15 + "0e1" * 5 + "10"
    one = promoted(tmp_path, before)
    two = ran(tmp_path, CLAIM, main=after)
    both = ran(tmp_path / "within", CLAIM | {"against": "old"}, baseline="old", old=before, new=after)
    assert both.summary.comparison is not None
    reader_a, plan_a = open_run(one.run_dir)
    reader_b, plan_b = open_run(two.run_dir)
    with closing(reader_a), closing(reader_b):
        runs = two_runs(reader_a, plan_a, reader_b, plan_b, Terms())
        compared = comparison_of(runs, reader_a.location, reader_b.location)
        drifted = drift(reader_a, reader_b, plan_a.run_id, runs).report
    (variant,) = compared.variants
    decisions = [drifted.decision, gate_of(two).decision, gate_of(both).decision, both.summary.comparison.decision]
    assert [_numbers(decision) for decision in decisions] == [_numbers(variant.decision)] * 4
    for delta in (variant.delta, drifted.deltas[0], both.summary.comparison.deltas[0]):
        assert (delta.pass_rate_delta, delta.pass_rate_delta_ci95) == (variant.decision.difference, variant.decision.ci)
        assert (delta.p_value, delta.n) == (variant.decision.p_better, variant.decision.n)


def test_where_errors_count_as_failed_variants_are_compared_so(tmp_path: Path) -> None:
    made = suite(tmp_path, [], variants=[], criteria=PassCriteria(errored_cases="count"), baseline_variant="old")
    rows = {"old": "11e0", "new": "1e10"}
    made.variants = [
        Variant(v, "python_function", {"target": "agents:tabled", "answers": row}) for v, row in rows.items()
    ]
    made.cases = [EvalCase(id=f"c{i}", input=i) for i in range(4)]
    comparison = run_suite(made).summary.comparison
    assert comparison is not None
    assert (comparison.deltas[0].regressions, comparison.deltas[0].improvements, comparison.deltas[0].n) == (
        ["c1"],
        ["c2"],
        4,
    )
    assert comparison.deltas[0].pass_rate_delta == 0.0


def test_a_run_without_its_baseline_variant_says_that_it_compares_nothing(tmp_path: Path) -> None:
    summary = ran(tmp_path, baseline="old", new="11").summary
    assert summary.comparison is None
    assert "not compared with old: it is no system of this run" in summary.warnings
    assert ran(tmp_path / "both", baseline="old", old="11", new="11").summary.warnings == []


def _numbers(decision: Decision | None) -> dict[str, Any]:
    assert decision is not None
    found: dict[str, Any] = msgspec.to_builtins(decision)
    return {name: value for name, value in found.items() if name not in ("variant_a", "variant_b", "identity")}
