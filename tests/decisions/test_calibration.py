"""How well a judge agrees with human labels: counts, rates and coefficients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.judged_runs import labels, measured, run_of
from evalwright.model.calibration import Label
from evalwright.reports.numbers import agreement_figures
from evalwright.testing import a_result, a_trace


def test_the_table_counts_who_said_what() -> None:
    calibration = measured(run_of(True, True, True, False, False), labels(True, True, False, True, False))
    assert calibration.confusion is not None
    assert (calibration.confusion.true_pass, calibration.confusion.false_pass) == (2, 1)
    assert (calibration.confusion.false_fail, calibration.confusion.true_fail) == (1, 1)


def test_rates_have_wilson_intervals_and_their_own_n() -> None:
    calibration = measured(run_of(*[True] * 9, False, False), labels(*[True] * 8, False, True, False))
    assert calibration.tpr is not None
    assert calibration.tnr is not None
    assert calibration.accuracy is not None
    assert (calibration.tpr.value, calibration.tpr.n, calibration.tnr.value, calibration.tnr.n) == (
        pytest.approx(8 / 9),
        9,
        0.5,
        2,
    )
    assert calibration.tpr.ci95 == pytest.approx((0.565000, 0.980109), abs=1e-6)
    assert (calibration.accuracy.value, calibration.accuracy.n) == (pytest.approx(9 / 11), 11)


def test_kappa_and_ac1_are_corrected_for_chance() -> None:
    calibration = measured(run_of(True, True, True, False), labels(True, True, False, False))
    assert calibration.cohen_kappa == pytest.approx(0.5)
    assert calibration.gwet_ac1 == pytest.approx((0.75 - 0.46875) / (1 - 0.46875))
    assert calibration.cohen_kappa_ci95 is not None
    assert calibration.cohen_kappa_ci95[1] <= 1.0


def test_a_judge_that_no_label_contradicts_is_not_certain_to_be_perfect() -> None:
    calibration = measured(run_of(True, True, True, False, False), labels(True, True, True, False, False))
    assert (calibration.cohen_kappa, calibration.cohen_kappa_ci95) == (1.0, (pytest.approx(0.0009, abs=1e-4), 1.0))


def test_an_answer_that_the_judge_did_not_judge_is_counted_apart() -> None:
    calibration = measured(run_of(True, None), labels(True, True))
    assert (calibration.labels, calibration.unjudged, calibration.tpr and calibration.tpr.n) == (2, 1, 1)


def test_a_label_of_a_replaced_answer_does_not_count() -> None:
    run = run_of(True, True)
    run.append_trace(a_trace(case_id="c0", variant_name="v", attempt=2))
    calibration = measured(run, labels(True, False))
    assert (calibration.superseded, calibration.tpr and calibration.tpr.n, calibration.tnr and calibration.tnr.n) == (
        1,
        0,
        1,
    )


@pytest.mark.parametrize("chosen", ["disagree", "threshold"])
def test_answers_chosen_by_their_results_say_nothing_about_the_others(chosen: str) -> None:
    sampled = labels(True, True, chosen="random")
    picked = [Label("c2", "judge", "v", passed=False, chosen=chosen)]
    calibration = measured(run_of(True, True, True), sampled + picked)
    assert (calibration.labels, calibration.chosen_by_results, calibration.accuracy and calibration.accuracy.value) == (
        3,
        1,
        1.0,
    )
    alone = measured(run_of(True, True, True), picked)
    assert (alone.chosen_by_results, alone.tpr, alone.rates[0].corrected) == (1, None, None)


def test_a_score_of_people_becomes_a_verdict_by_the_threshold() -> None:
    scored = [Label("c0", "judge", "v", score=4), Label("c1", "judge", "v", score=3.9)]
    calibration = measured(run_of((True, 5.0), (True, 4.0)), scored, threshold=4)
    assert calibration.confusion is not None
    assert (calibration.confusion.true_pass, calibration.confusion.false_pass) == (1, 1)


def test_the_threshold_that_a_judgement_names_is_the_one() -> None:
    run = run_of()
    run.append_trace(a_trace(case_id="c0", variant_name="v"))
    detail = {"rubric": {"score": 4, "threshold": 3}}
    run.append_results([a_result(case_id="c0", variant_name="v", evaluator="judge", score=0.5, detail=detail)])
    calibration = measured(run, [Label("c0", "judge", "v", score=3)], threshold=5)
    assert calibration.confusion is not None
    assert calibration.scores is not None
    assert (calibration.confusion.true_pass, calibration.scores.mean_difference) == (1, 1)


def test_without_a_threshold_scores_are_compared_and_no_verdict_is_guessed() -> None:
    calibration = measured(run_of((True, 5.0), (True, 4.0)), [Label("c0", "judge", "v", score=4)])
    assert calibration.confusion is None
    assert calibration.scores is not None
    assert calibration.scores.mean_difference == 1
    assert "without a verdict" in calibration.notes[0]


def test_scores_are_weighed_by_their_distance() -> None:
    people, judge = [1, 2, 3, 4, 5, 5], [1, 2, 3, 5, 5, 3]
    run = run_of(*[(True, float(score)) for score in judge])
    calibration = measured(run, [Label(f"c{n}", "judge", "v", passed=True, score=s) for n, s in enumerate(people)])
    assert calibration.scores is not None
    assert calibration.scores.kappa_linear == pytest.approx(0.7)
    assert calibration.scores.kappa_quadratic == pytest.approx(1 - (5 / 6) / (79 / 18), abs=1e-9)
    assert calibration.scores.alpha_interval == pytest.approx(0.8253968)


def test_scores_that_are_no_grades_have_no_weighted_kappa() -> None:
    run = run_of((True, 0.5), (False, 0.25))
    scored = [Label("c0", "judge", "v", score=0.75), Label("c1", "judge", "v", score=0.1)]
    scores = measured(run, scored, threshold=0.5).scores
    assert scores is not None
    assert (scores.kappa_linear, scores.spearman) == (None, pytest.approx(1))


@pytest.mark.slow("a calibration for each example")
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([True, False, None])), min_size=1, max_size=40))
def test_rates_and_intervals_stay_rates(pairs: list[tuple[bool, bool | None]]) -> None:
    calibration = measured(run_of(*[judge for judge, _ in pairs]), labels(*[human for _, human in pairs]))
    rate = calibration.rates[0]
    ends = [
        *(rate.corrected_ci95 or ()),
        *(rate.powered_ci95 or ()),
        *(calibration.tpr.ci95 or () if calibration.tpr else ()),
    ]
    assert all(0 <= x <= 1 for x in [*ends, rate.corrected or 0, rate.powered or 0])
    assert calibration.labels == sum(human is not None for _, human in pairs)


def test_a_rater_who_says_the_same_of_all_has_no_kappa() -> None:
    calibration = measured(run_of(True, False, True, True), labels(True, True, True, True))
    assert (calibration.cohen_kappa, calibration.cohen_kappa_ci95) == (None, None)
    assert calibration.accuracy is not None


def test_no_interval_of_a_calibration_has_the_width_0() -> None:
    """The judge passes all other answers, though it finds 40 % of what people pass: no rate explains that."""
    people, judge = [*[True] * 30, *[False] * 30], [*[True] * 12, *[False] * 47, True]
    calibration = measured(run_of(*judge, *[True] * 600), labels(*people))
    rate = calibration.rates[0]
    assert (rate.corrected, rate.corrected_ci95) == (None, None)
    assert any("label a random or a balanced sample" in note for note in calibration.notes)


def test_labels_of_mostly_failures_correct_nothing() -> None:
    """The judge passes 160 of 200 answers, and 4 of the 20 that someone labelled."""
    judge, people = [*[False] * 16, *[True] * 4, *[False] * 24, *[True] * 156], [*[False] * 10, *[True] * 10]
    found = measured(run_of(*judge), labels(*people))
    assert found.notes[0] == (
        "v: the evaluator passes 4 of 20 labelled answers, but 156 of the 180 others: fewer than 1 % of random "
        "samples are so unlike, and these labels correct nothing; label a random or a balanced sample"
    )
    rate = found.rates[0]
    assert (rate.labels, rate.corrected, rate.corrected_ci95, rate.powered_ci95) == (20, None, None, None)
    assert agreement_figures(found) == "TPR 40.0%, TNR 100.0% (n=20, no random sample)"


def test_labels_of_all_trials_of_a_few_cases_are_a_random_sample_of_cases() -> None:
    """Five cases of ten equal trials each are worth five answers: two failures among them are no wonder."""
    judge = [*[[False] * 10] * 2, *[[True] * 10] * 3, *[[False] * 10] * 2, *[[True] * 10] * 13]
    every = [label for trial in range(10) for label in labels(False, False, True, True, True, trial=trial)]
    assert not any("label a random" in note for note in measured(run_of(*judge), every).notes)


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
