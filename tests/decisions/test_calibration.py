"""A judge against people: numbers by hand, and what cannot be said is left out."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.decisions.calibration import Makers, calibrate
from evalwright.model.calibration import JudgeCalibration, Label
from evalwright.model.makers import maker_of
from evalwright.model.protocols import RunReader
from evalwright.model.trace import Output, ToolCall, TraceError
from evalwright.scoring.re_judged import judged_answers
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_trace


def run_of(*verdicts, variants=("v",), answer="the same", group_of=0) -> RunReader:
    """One case a verdict: `passed`, or `(passed, score)`, or None for an error; or a list, one a trial.

    With `group_of`, so many cases are of one group.
    """
    run = MemoryStore().create(a_plan(), [a_case()], {})
    for variant in variants:
        for number, given_verdicts in enumerate(verdicts):
            for trial, verdict in enumerate(given_verdicts if isinstance(given_verdicts, list) else [given_verdicts]):
                cell = {"case_id": f"c{number}", "variant_name": variant, "trial": trial}
                group = {"group": f"g{number // group_of}"} if group_of else {}
                run.append_trace(a_trace(output=Output(answer), **cell, **group))
                passed, score = verdict if isinstance(verdict, tuple) else (bool(verdict), None)
                error = TraceError("bad_reply", "?") if verdict is None else None
                run.append_results([a_result(evaluator="judge", passed=passed, score=score, error=error, **cell)])
    return run


def labels(*words, variant="v", **fields):
    return [Label(f"c{n}", "judge", variant, passed=w, **fields) for n, w in enumerate(words) if w is not None]


def measured(run: RunReader, given_labels, threshold=None) -> JudgeCalibration:
    return calibrate("judge", given_labels, judged_answers(run, ["judge"]), threshold)


def test_the_table_counts_who_said_what() -> None:
    found = measured(run_of(True, True, True, False, False), labels(True, True, False, True, False))
    assert found.confusion is not None
    assert (found.confusion.true_pass, found.confusion.false_pass) == (2, 1)
    assert (found.confusion.false_fail, found.confusion.true_fail) == (1, 1)


def test_rates_have_wilson_intervals_and_their_own_n() -> None:
    found = measured(run_of(*[True] * 9, False, False), labels(*[True] * 8, False, True, False))
    assert found.tpr is not None
    assert found.tnr is not None
    assert found.accuracy is not None
    assert (found.tpr.value, found.tpr.n, found.tnr.value, found.tnr.n) == (pytest.approx(8 / 9), 9, 0.5, 2)
    assert found.tpr.ci95 == pytest.approx((0.565000, 0.980109), abs=1e-6)
    assert (found.accuracy.value, found.accuracy.n) == (pytest.approx(9 / 11), 11)


def test_kappa_and_ac1_are_corrected_for_chance() -> None:
    found = measured(run_of(True, True, True, False), labels(True, True, False, False))
    assert found.cohen_kappa == pytest.approx(0.5)
    assert found.gwet_ac1 == pytest.approx((0.75 - 0.46875) / (1 - 0.46875))
    assert found.cohen_kappa_ci95 is not None
    assert found.cohen_kappa_ci95[1] == 1.0


def test_an_answer_that_the_judge_did_not_judge_is_counted_apart() -> None:
    found = measured(run_of(True, None), labels(True, True))
    assert (found.labels, found.unjudged, found.tpr and found.tpr.n) == (2, 1, 1)


def test_a_label_of_a_replaced_answer_does_not_count() -> None:
    run = run_of(True, True)
    run.append_trace(a_trace(case_id="c0", variant_name="v", attempt=2))
    found = measured(run, labels(True, False))
    assert (found.superseded, found.tpr and found.tpr.n, found.tnr and found.tnr.n) == (1, 0, 1)


@pytest.mark.parametrize("chosen", ["disagree", "threshold"])
def test_answers_chosen_by_their_results_say_nothing_about_the_others(chosen: str) -> None:
    sampled = labels(True, True, chosen="random")
    picked = [Label("c2", "judge", "v", passed=False, chosen=chosen)]
    found = measured(run_of(True, True, True), sampled + picked)
    assert (found.labels, found.chosen_by_results, found.accuracy and found.accuracy.value) == (3, 1, 1.0)
    alone = measured(run_of(True, True, True), picked)
    assert (alone.chosen_by_results, alone.tpr, alone.rates[0].corrected) == (1, None, None)


def test_a_score_of_people_becomes_a_verdict_by_the_threshold() -> None:
    scored = [Label("c0", "judge", "v", score=4), Label("c1", "judge", "v", score=3.9)]
    found = measured(run_of((True, 5.0), (True, 4.0)), scored, threshold=4)
    assert found.confusion is not None
    assert (found.confusion.true_pass, found.confusion.false_pass) == (1, 1)


def test_the_threshold_that_a_judgement_names_is_the_one() -> None:
    run = run_of()
    run.append_trace(a_trace(case_id="c0", variant_name="v"))
    detail = {"rubric": {"score": 4, "threshold": 3}}
    run.append_results([a_result(case_id="c0", variant_name="v", evaluator="judge", score=0.5, detail=detail)])
    found = measured(run, [Label("c0", "judge", "v", score=3)], threshold=5)
    assert found.confusion is not None
    assert found.scores is not None
    assert (found.confusion.true_pass, found.scores.mean_difference) == (1, 1)


def test_without_a_threshold_scores_are_compared_and_no_verdict_is_guessed() -> None:
    found = measured(run_of((True, 5.0), (True, 4.0)), [Label("c0", "judge", "v", score=4)])
    assert found.confusion is None
    assert found.scores is not None
    assert found.scores.mean_difference == 1
    assert "without a verdict" in found.notes[0]


def test_scores_are_weighed_by_their_distance() -> None:
    people, judge = [1, 2, 3, 4, 5, 5], [1, 2, 3, 5, 5, 3]
    run = run_of(*[(True, float(score)) for score in judge])
    found = measured(run, [Label(f"c{n}", "judge", "v", passed=True, score=s) for n, s in enumerate(people)])
    assert found.scores is not None
    assert found.scores.kappa_linear == pytest.approx(0.7)
    assert found.scores.kappa_quadratic == pytest.approx(1 - (5 / 6) / (79 / 18), abs=1e-9)
    assert found.scores.alpha_interval == pytest.approx(0.8253968)


def test_scores_that_are_no_grades_have_no_weighted_kappa() -> None:
    run = run_of((True, 0.5), (False, 0.25))
    scored = [Label("c0", "judge", "v", score=0.75), Label("c1", "judge", "v", score=0.1)]
    found = measured(run, scored, threshold=0.5).scores
    assert found is not None
    assert (found.kappa_linear, found.spearman) == (None, pytest.approx(1))


def test_flips_are_looked_for_among_equal_answers_only() -> None:
    run = run_of([True, False], [True, True], True)
    flips = measured(run, []).flips
    assert flips is not None
    assert (flips.repeated, flips.flipped, flips.rate.value) == (2, 1, 0.5)


def test_answers_that_differ_are_no_flips() -> None:
    run = run_of(True)
    run.append_trace(a_trace(case_id="c0", variant_name="v", trial=1, tool_calls=[ToolCall("look")]))
    run.append_results([a_result(case_id="c0", variant_name="v", trial=1, evaluator="judge", passed=False)])
    assert measured(run, []).flips is None


def test_the_pass_rate_is_corrected_for_the_errors_of_the_judge() -> None:
    """TPR 0.9, TNR 0.8, judged 0.7: (0.7 + 0.8 - 1)/0.7."""
    people = [*[True] * 10, *[False] * 10]
    judge = [*[True] * 9, False, *[True] * 2, *[False] * 8]
    rest = [*[True] * 59, *[False] * 21]
    found = measured(run_of(*judge, *rest), labels(*people)).rates[0]
    assert (found.judge.value, found.judge.n, found.labels) == (0.7, 100, 20)
    assert found.corrected == pytest.approx(5 / 7)
    assert found.corrected_ci95 is not None
    assert found.corrected_ci95[0] < 5 / 7 < found.corrected_ci95[1]
    assert found.corrected_ci95[1] - found.corrected_ci95[0] > 0.3, "twenty labels leave much open"


def test_labels_of_a_part_power_the_rate_of_the_whole() -> None:
    people = [*[True] * 60, *[False] * 60]
    judge = [*[False] * 4, *[True] * 56, *[True] * 4, *[False] * 56]
    found = measured(run_of(*judge, *[True, False] * 200), labels(*people)).rates[0]
    assert found.powered == pytest.approx(0.5)
    assert found.powered_ci95 is not None
    assert 0.05 < found.powered_ci95[1] - found.powered_ci95[0] < 0.15


def test_labels_that_a_judge_agrees_with_power_nothing() -> None:
    """Twenty answers on which the judge made no mistake do not show that it makes none."""
    people = [*[True] * 20, *[False] * 20]
    found = measured(run_of(*people, *[True, False] * 50), labels(*people)).rates[0]
    assert (found.powered, found.powered_ci95) == (None, None)
    assert found.refused == "fewer than 5 labels on which person and judge differ"
    assert found.corrected_ci95 is not None


def test_error_rates_are_those_of_all_variants_and_labels_of_each_its_own() -> None:
    people = [*[True] * 5, *[False] * 5]
    run = run_of(*people, True, True, variants=("v", "w"))
    found = measured(run, labels(*people))
    assert [(r.variant, r.labels, r.corrected is None, r.powered is None) for r in found.rates] == [
        ("v", 10, False, True),
        ("w", 0, False, True),
    ]


def test_one_kind_of_label_corrects_nothing() -> None:
    found = measured(run_of(True, True, False), labels(True, True, True))
    assert found.rates[0].corrected is None
    assert "no answer was labelled as failed" in found.notes[0]


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    found = measured(run_of(True, False, True, False), labels(True, True, False, False))
    assert found.rates[0].corrected is None
    assert "no better than chance" in found.notes[0]


@pytest.mark.slow("a calibration for each example")
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([True, False, None])), min_size=1, max_size=40))
def test_rates_and_intervals_stay_rates(pairs: list[tuple[bool, bool | None]]) -> None:
    found = measured(run_of(*[judge for judge, _ in pairs]), labels(*[human for _, human in pairs]))
    rate = found.rates[0]
    ends = [*(rate.corrected_ci95 or ()), *(rate.powered_ci95 or ()), *(found.tpr.ci95 or () if found.tpr else ())]
    assert all(0 <= x <= 1 for x in [*ends, rate.corrected or 0, rate.powered or 0])
    assert found.labels == sum(human is not None for _, human in pairs)


def test_a_rater_who_says_the_same_of_all_has_no_kappa() -> None:
    found = measured(run_of(True, False, True, True), labels(True, True, True, True))
    assert (found.cohen_kappa, found.cohen_kappa_ci95) == (None, None)
    assert found.accuracy is not None


def test_no_interval_of_a_calibration_has_the_width_0() -> None:
    """The judge passes all other answers, though it finds 40 % of what people pass: no rate explains that."""
    people, judge = [*[True] * 30, *[False] * 30], [*[True] * 12, *[False] * 47, True]
    found = measured(run_of(*judge, *[True] * 600), labels(*people))
    rate = found.rates[0]
    assert (rate.corrected, rate.corrected_ci95) == (None, None)
    assert any("no rate explains" in note for note in found.notes)


def test_several_answers_of_a_case_are_no_further_cases() -> None:
    """Ten equal trials of each case: the corrected interval is nearly that of one."""
    people, judge = [*[True] * 20, *[False] * 20], [*[True] * 18, *[False] * 4, *[True] * 2, *[False] * 16]
    once = measured(run_of(*judge), labels(*people)).rates[0]
    often = measured(run_of(*[[verdict] * 10 for verdict in judge]), labels(*people)).rates[0]
    assert once.corrected_ci95 is not None
    assert often.corrected_ci95 == pytest.approx(once.corrected_ci95, abs=0.02)


def test_labels_of_several_answers_of_a_case_or_group_are_no_further_labels() -> None:
    """Ten labelled trials of each case, all alike, say of the judge's errors what one of each says."""
    people, judge = [*[True] * 20, *[False] * 20], [*[True] * 18, *[False] * 4, *[True] * 2, *[False] * 16]
    once = measured(run_of(*judge), labels(*people))
    every = [label for trial in range(10) for label in labels(*people, trial=trial)]
    often = measured(run_of(*[[verdict] * 10 for verdict in judge]), every)
    grouped = run_of(*[verdict for verdict in judge for _ in range(10)], group_of=10)
    alike = measured(grouped, labels(*[word for word in people for _ in range(10)]))
    for found in (often, alike):
        for name in ("tpr", "tnr", "accuracy"):
            one, other = getattr(once, name), getattr(found, name)
            assert (other.value, other.n) == (pytest.approx(one.value), 10 * one.n)
            assert other.ci95 == pytest.approx(one.ci95)
        assert found.cohen_kappa == pytest.approx(once.cohen_kappa)
        assert found.cohen_kappa_ci95 is None
        assert found.rates[0].corrected_ci95 == pytest.approx(once.rates[0].corrected_ci95, abs=0.02)


def test_the_place_in_a_comparison_is_no_merit() -> None:
    """The answer shown first wins in 12 of 16 pairs of orders, whichever it is."""
    run = MemoryStore().create(a_plan(), [a_case()], {})
    for variant, first in (("v", 12), ("w", 2)):
        for number in range(16):
            cell = {"case_id": f"c{number}", "variant_name": variant}
            second = "reference" if number < first else "answer" if number % 2 else "reference"
            winners = ("answer" if number < first else second, second)
            shown = [{"first": at, "winner": who} for at, who in zip(("answer", "reference"), winners, strict=True)]
            run.append_trace(a_trace(output=Output("x"), **cell))
            run.append_results([a_result(evaluator="judge", detail={"comparisons": shown}, **cell)])
    found = measured(run, [])
    by_name = {one.variant: one for one in found.position}
    assert (by_name["v"].consistency, by_name["v"].first_won) == (0.25, 0.875)
    assert by_name["v"].p < 0.001 < 0.05 < by_name["w"].p
    assert (by_name["w"].wins, by_name["w"].losses, by_name["w"].ties) == (7, 7, 2)
    assert [one.name for one in found.strengths] == ["v", "w", "reference"]


def test_a_judge_that_passes_what_is_long_is_found_out() -> None:
    run = MemoryStore().create(a_plan(), [a_case()], {})
    people = []
    for number in range(40):
        cell = {"case_id": f"c{number}", "variant_name": "v"}
        run.append_trace(a_trace(output=Output("x" * 2 ** (number % 8)), **cell))
        run.append_results([a_result(evaluator="judge", passed=number % 8 > 3, **cell)])
        people.append(number % 3 == 0)
    length = measured(run, labels(*people)).length
    assert length is not None
    assert length.n == 40
    assert length.ci95 is not None
    assert length.ci95[0] > 0


def test_a_judge_that_never_errs_has_no_interval_without_width() -> None:
    trials = [[(True, 0.1 * number)] * 2 for number in range(12)]
    people = [Label(f"c{n}", "judge", "v", trial=k, score=0.1 * n, passed=True) for n in range(12) for k in range(2)]
    found = measured(run_of(*trials), people)
    assert found.scores is not None
    assert (found.scores.mean_difference, found.scores.mean_difference_ci95) == (0.0, None)
    same = lengthy(lambda n, log: 1.0, lambda n, log: True).length
    assert same is not None
    assert (same.slope, same.ci95) == (0.0, None)


def lengthy(score_of, label_of):
    """Forty answers of 1 to 128 characters, scored and labelled by their number and the logarithm of their length."""
    run, people = MemoryStore().create(a_plan(), [a_case()], {}), []
    for number in range(40):
        cell = {"case_id": f"c{number}", "variant_name": "v"}
        run.append_trace(a_trace(output=Output("x" * 2 ** (number % 8)), **cell))
        run.append_results([a_result(evaluator="judge", passed=True, score=score_of(number, number % 8), **cell)])
        people.append(label_of(number, number % 8))
    return measured(run, labels(*people))


def test_better_answers_may_be_longer_but_not_score_more_for_it_at_the_same_label() -> None:
    fair = lengthy(lambda n, log: 0.8 if log > 3 else 0.2, lambda n, log: log > 3)
    biased = lengthy(lambda n, log: 0.1 * log + 0.01 * (n % 3), lambda n, log: log > 3)
    assert fair.length_at_label is not None
    assert biased.length_at_label is not None
    assert fair.length_at_label.slope == pytest.approx(0)
    assert biased.length_at_label.ci95 is not None
    assert biased.length_at_label.ci95[0] > 0.05
    assert biased.length_at_label.n == 40


def preference(passes, makers):
    """Twelve cases on three systems, of which people pass every second."""
    run, given_labels = MemoryStore().create(a_plan(), [a_case()], {}), []
    for variant in ("gpt", "claude", "who"):
        for number in range(12):
            cell = {"case_id": f"c{number}", "variant_name": variant}
            run.append_trace(a_trace(output=Output("x"), **cell))
            run.append_results([a_result(evaluator="judge", passed=passes(variant, number), **cell)])
            given_labels.append(Label(f"c{number}", "judge", variant, passed=number % 2 == 0))
    return calibrate("judge", given_labels, judged_answers(run, ["judge"]), None, makers).preference


def test_a_judge_that_prefers_its_own_maker_is_found_out() -> None:
    makers = Makers("OpenAI", {"gpt": "OpenAI", "claude": "Anthropic", "who": None})
    kin = preference(lambda variant, n: n % 2 == 0 or (variant == "gpt" and n != 3), makers)
    assert kin is not None
    assert kin.difference == pytest.approx(5 / 12)
    assert (kin.own, kin.others, kin.maker) == (12, 12, "OpenAI")
    assert kin.ci95 is not None
    assert kin.ci95[0] > 0
    fair = preference(lambda variant, n: n % 3 == 0, makers)
    assert fair is not None
    assert fair.difference == pytest.approx(0)
    assert preference(lambda variant, n: True, Makers("Google", {"gpt": "OpenAI", "claude": "Anthropic"})) is None


def test_votes_tell_how_a_judge_agrees_with_itself_and_a_panel_within() -> None:
    run = MemoryStore().create(a_plan(), [a_case()], {})
    for number, (one, other) in enumerate([("yy", "y"), ("yn", "y"), ("nn", "y"), ("nn", "-")]):
        said = [("a", word) for word in one] + [("b", word) for word in other]
        votes = [{"model": m, **({"error": "?"} if w == "-" else {"passed": w == "y"})} for m, w in said]
        cell = {"case_id": f"c{number}", "variant_name": "v"}
        run.append_trace(a_trace(output=Output("x"), **cell))
        run.append_results([a_result(evaluator="judge", detail={"votes": votes}, **cell)])
    found = measured(run, [])
    assert [(one.model, one.same.value, one.same.n) for one in found.repeats] == [("a", 0.75, 4)]
    assert found.panel is not None
    assert (found.panel.value, found.panel.n) == (pytest.approx(2 / 3), 3)


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("gpt-5-mini", "OpenAI"),
        ("openrouter/anthropic/claude-opus-5", "Anthropic"),
        ("us.anthropic.claude-3-haiku", "Anthropic"),
        ("gemini/gemini-3-pro", "Google"),
        ("meta-llama/Llama-3.3-70B", "Meta"),
        ("deepseek-r1-distill-llama-70b", "DeepSeek"),
        ("my-model", None),
    ],
)
def test_the_maker_of_a_model_by_its_name(model: str, maker: str | None) -> None:
    assert maker_of(model) == maker


def test_scores_are_read_as_chances_where_they_can_be() -> None:
    run = run_of((True, 0.9), (True, 0.8), (False, 0.3), (False, 0.1))
    found = measured(run, labels(True, False, False, False)).confidence
    assert found is not None
    assert found.brier == pytest.approx((0.01 + 0.64 + 0.09 + 0.01) / 4)
    assert measured(run_of((True, 4.0), (False, 2.0)), labels(True, False)).confidence is None


def balanced(judge, people, sizes):
    """Labels of a balanced sample: as `labels`, each with the verdict and size of its stratum."""
    found = []
    for number, (verdict, word) in enumerate(zip(judge, people, strict=False)):
        size = sizes[0] if verdict else sizes[1]
        stratum = "pass" if verdict else "fail"
        found.append(
            Label(f"c{number}", "judge", "v", passed=word, chosen="balanced", stratum=stratum, stratum_size=size)
        )
    return found


JUDGE = [*[True] * 10, *[False] * 10]
PEOPLE = [*[True] * 9, False, *[True] * 2, *[False] * 8]
REST = [*[True] * 70, *[False] * 10]


def test_a_balanced_sample_is_weighted() -> None:
    """80 answers that the judge passes, of which people pass 0.9; 20 that it fails, of which they pass 0.2."""
    found = measured(run_of(*JUDGE, *REST), balanced(JUDGE, PEOPLE, (80, 20)))
    rate = found.rates[0]
    assert found.tpr is not None
    assert found.tnr is not None
    assert found.accuracy is not None
    assert (found.tpr.value, found.tpr.n) == (pytest.approx(72 / 76), 11)
    assert (found.tnr.value, found.tnr.n) == (pytest.approx(16 / 24), 9)
    assert (found.accuracy.value, found.accuracy.n) == (pytest.approx(0.88), 20)
    assert (rate.corrected, rate.labels, rate.powered) == (pytest.approx(0.76), 20, None)
    assert rate.corrected_ci95 is not None
    assert rate.corrected_ci95[0] < 0.76 < rate.corrected_ci95[1]
    assert found.cohen_kappa == pytest.approx((0.88 - 0.656) / (1 - 0.656))
    assert found.cohen_kappa_ci95 is None
    assert found.notes[0].startswith("balanced sample")


def test_random_labels_count_within_the_strata_of_a_balanced_sample() -> None:
    mixed = [*balanced(JUDGE, PEOPLE, (80, 20)), Label("c20", "judge", "v", passed=False, chosen="random")]
    found = measured(run_of(*JUDGE, *REST), mixed)
    assert found.rates[0].corrected == pytest.approx((80 * 9 / 11 + 20 * 0.2) / 100)


def test_only_labels_of_a_random_sample_tell_what_errors_depend_on() -> None:
    run = run_of(*[(verdict, 5.0) for verdict in [*JUDGE, *REST]])
    of_strata = [msgspec.structs.replace(x, score=4.0) for x in balanced(JUDGE, PEOPLE, (80, 20))]
    assert measured(run, of_strata).scores is None
    found = measured(run, [*of_strata, Label("c20", "judge", "v", passed=False, score=4.0)])
    assert found.scores is not None
    assert found.scores.n == 1


def test_a_balanced_sample_of_other_verdicts_has_no_weights() -> None:
    for judge, sizes in (([False, *JUDGE[1:]], (80, 20)), (JUDGE, (80, 19))):
        drawn = [*balanced(JUDGE, PEOPLE, sizes), Label("c20", "judge", "v", passed=True)]
        found = measured(run_of(*judge, *REST), drawn)
        assert (found.labels, found.outdated, found.accuracy and found.accuracy.n) == (21, 20, 1)
        assert found.notes[-1].startswith("20 labels of a balanced sample left out")
    run = run_of(*JUDGE, *REST)
    run.append_trace(a_trace(case_id="c0", variant_name="v", attempt=2))
    assert measured(run, balanced(JUDGE, PEOPLE, (80, 20))).outdated == 19, "and one that was replaced"


def test_a_stratum_without_labels_is_named_and_nothing_is_weighted() -> None:
    found = measured(run_of(*JUDGE, *REST), balanced(JUDGE, PEOPLE, (80, 20))[:10])
    assert (found.accuracy, found.tpr, found.rates[0].corrected) == (None, None, None)
    assert any("none of 20 answers that the evaluator failed is labelled" in note for note in found.notes)
