"""What reports say that a comparison has shown."""

from __future__ import annotations

from evalwright.decisions.comparison import RunComparison, Side, VariantComparison, delta_of
from evalwright.decisions.engine import decision_of
from evalwright.decisions.identity import Identity
from evalwright.decisions.pairing import CaseGroups
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Errors, Terms
from evalwright.model.decision import UNREAD, Decision, EvaluatorPart, GuardPart, JudgePart
from evalwright.reports.decision import decision_lines
from evalwright.reports.decision_words import claim
from evalwright.reports.sentences import sentence_of
from evalwright.reports.text import Paint
from evalwright.scoring.tally import Tally
from scoring.histories import MOMENT, plan


def decided(before: str, after: str, margin: float = 0.2, errors: Errors = "exclude") -> Decision:
    """Cases that passed (`1`), failed (`0`) or erred (`e`) in A and in B, 10 of each."""

    def side(outcomes: str) -> SideCounts:
        passes = {
            f"c{i}": CaseTotal(float(one == "1"), int(one != "e"), int(one == "e"))
            for i, one in enumerate(outcomes * 10)
        }
        return SideCounts("v", passes=passes)

    return decision_of(side(before), side(after), Terms(margin=margin, errors=errors), Identity(), CaseGroups())


def first_line(decision: Decision) -> str:
    return decision_lines(decision, Paint())[0]


def test_what_was_shown_is_said() -> None:
    assert claim(decided("0001", "1111")) == "better"
    assert claim(decided("1111", "1111")) == "not worse than −20 pp"
    assert claim(decided("1111111111", "1111111110")) == "not worse than −20 pp, but worse"
    assert claim(decided("1111", "1110")) == "worse, by how much is open"
    assert claim(decided("1111", "0000")) == "worse by more than 20 pp"
    assert claim(decided("1111", "1110", margin=0.0)) == "worse"
    assert claim(decided("11", "10", margin=0.9)) == "not worse than −90 pp, but worse"
    assert claim(decided("e", "e")) == "undecided: no case was judged in both runs"


def test_what_errors_could_undo_is_not_said() -> None:
    """Of 100 cases 10 got better, and 10 that passed in A erred in B: had they failed, nothing would be better."""
    decision = decided("0111111111", "11111111" + "e1")
    assert (decision.verdict, decision.errors.same_verdict) == ("ship", True)
    assert claim(decision) == "not worse than −20 pp"
    assert "better" not in first_line(decision)
    worse = decided("1111111111", "0111111111")
    assert "but worse" in first_line(worse)
    assert "but worse" in claim(worse)
    maybe = decided("1111111e11", "0111111111")
    assert (maybe.verdict, "worse" in first_line(maybe), claim(maybe)) == ("ship", False, "not worse than −20 pp")
    tested = [" ".join(decision_lines(found, Paint())).partition("pass rate")[0] for found in (decision, maybe, worse)]
    assert ["better   open: errors could turn it (p = " in line for line in tested] == [True, True, False]
    assert all("not worse than −20 pp   shown (p" in line for line in tested)


def test_errors_that_count_as_failures_are_not_said_to_have_passed() -> None:
    """The number of cases behind a rate is said where it is not that of the difference."""
    text, left_out = (
        " ".join(" ".join(decision_lines(decided("1111", "111e", errors=counting), Paint())).split())
        for counting in ("fail", "exclude")
    )
    assert "A 0, B 10 (target 10); those of the target count as failed error rate" in text
    assert "A 0, B 10 (target 10); all failed −25.0, all passed 0.0" in left_out
    assert "(n=40) B 100.0 %" in left_out
    assert "(n=" not in text


def test_a_verdict_that_labels_or_damage_leave_open_is_not_said() -> None:
    judged, damaged = decided("0001", "1111"), decided("0001", "1111")
    judged.judge, judged.verdict = JudgePart("j", 80, "powered", turns=True), "undecided"
    judged.reasons = ["judge"]
    assert claim(judged) == "undecided: human labels could turn the verdict"
    damaged.verdict, damaged.reasons = "undecided", [UNREAD]
    assert claim(damaged) == "undecided: unreadable records could turn the verdict"


def test_a_p_value_does_not_look_as_if_it_were_on_the_other_side_of_alpha() -> None:
    decision = decided("1111", "1110", margin=0.0)
    decision.p_better = 0.0502
    assert "better worse (p = .0502)" in " ".join(" ".join(decision_lines(decision, Paint())).split())


def test_an_open_guard_does_not_end_at_its_limit() -> None:
    decision = decided("1111", "1111")
    decision.guards = [GuardPart("cost", 1.1, 1.05, (1.0, 1.1003), "undecided")]
    assert any("cost       +5 % [0, +10.03]  undecided (+10 %)" in line for line in decision_lines(decision, Paint()))


def test_why_the_difference_is_not_powered_is_said_in_words() -> None:
    decision = decided("1111", "1110")
    decision.judge = JudgePart("j", 60, "corrected", -0.1, (-0.2, 0.0), refused="disagreements")
    text = " ".join(" ".join(decision_lines(decision, Paint())).split())
    assert "60 labels: corrected −10.0 pp [−20.0, 0.0] (not powered: fewer than 5 labels on which" in text


def test_evaluators_that_changed_are_named_with_their_q() -> None:
    decision = decided("1111", "1111")
    decision.evaluators = [
        EvaluatorPart("polite", -0.1, (-0.15, -0.05), 0.001, 40, q=0.004),
        EvaluatorPart("short", 0.0, (-0.05, 0.05), 1.0, 40, q=1.0),
    ]
    lines = [line for line in decision_lines(decision, Paint()) if line.startswith("  evaluator")]
    assert lines == ["  evaluator  polite −10.0 pp [−15.0, −5.0] (q = .004)"]


def test_scores_of_a_side_have_the_digits_of_their_interval() -> None:
    def side(least: float, step: float) -> SideCounts:
        return SideCounts("v", scores={"s": {f"c{i}": CaseTotal(least + step * (i % 9), 1) for i in range(60)}})

    decision = decision_of(side(0.0003, 1e-5), side(0.00033, 2e-5), Terms(metric="s"), Identity(), CaseGroups())
    lines = decision_lines(decision, Paint())
    assert "B − A = +0.00007 [+0.00006, +0.00008]" in lines[0]
    assert any("A 0.00034 [0.00033, 0.00035]   B 0.00041 [0.00039, 0.00042]" in line for line in lines)


def test_what_to_do_about_errors_that_leave_nothing_judged_is_said() -> None:
    assert decision_lines(decided("e", "e"), Paint())[-1] == (
        "next: trials with errors again: evalwright retry RUN, 20 of the system"
    )


def test_errors_that_could_turn_an_open_comparison_come_before_more_cases() -> None:
    """Two of nine cases fail; with the tenth, whose trial has no verdict, a loss of 17 points would be shown."""
    erred = decided("1111111111", "1111111e00", margin=0.17)
    assert (erred.verdict, erred.reasons) == ("undecided", ["data"])
    assert not erred.errors.same_verdict
    text = " ".join(" ".join(decision_lines(erred, Paint())).split())
    assert "next: trials with errors again: evalwright retry RUN, 10 of the system; if that leaves it" in text
    assert "more cases would show" not in headline(erred)
    assert "more cases would show" in headline(decided("1111111111", "1111111100", margin=0.17))


def headline(decision: Decision) -> str:
    """The sentence of a comparison in reports of a run."""
    side = Side(None, 0, None)
    variant = VariantComparison("v", side, side, delta_of("v", decision, None), decision)
    summary = Tally.of(plan()).summary(plan(), MOMENT)
    return sentence_of(summary, RunComparison("a", "b", [variant], []))
