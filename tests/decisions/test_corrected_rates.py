"""The pass rate of a run, corrected by human labels for the errors of its judge."""

from __future__ import annotations

import msgspec
import pytest

from decisions.judged_runs import labels, measured, run_of
from evalwright.model.calibration import Label
from evalwright.testing import a_trace


def test_the_pass_rate_is_corrected_for_the_errors_of_the_judge() -> None:
    """TPR 0.9, TNR 0.8, judged 0.7: (0.7 + 0.8 - 1)/0.7."""
    people = [*[True] * 10, *[False] * 10]
    judge = [*[True] * 9, False, *[True] * 2, *[False] * 8]
    rest = [*[True] * 59, *[False] * 21]
    rate = measured(run_of(*judge, *rest), labels(*people)).rates[0]
    assert (rate.judge.value, rate.judge.n, rate.labels) == (0.7, 100, 20)
    assert rate.corrected == pytest.approx(5 / 7)
    assert rate.corrected_ci95 is not None
    assert rate.corrected_ci95[0] < 5 / 7 < rate.corrected_ci95[1]
    assert rate.corrected_ci95[1] - rate.corrected_ci95[0] > 0.3, "twenty labels leave much open"


def test_labels_of_a_part_power_the_rate_of_the_whole() -> None:
    people = [*[True] * 60, *[False] * 60]
    judge = [*[False] * 4, *[True] * 56, *[True] * 4, *[False] * 56]
    rate = measured(run_of(*judge, *[True, False] * 200), labels(*people)).rates[0]
    assert rate.powered == pytest.approx(0.5)
    assert rate.powered_ci95 is not None
    assert 0.05 < rate.powered_ci95[1] - rate.powered_ci95[0] < 0.15


def test_labels_that_a_judge_agrees_with_power_nothing() -> None:
    """Twenty answers on which the judge made no mistake do not show that it makes none."""
    people = [*[True] * 20, *[False] * 20]
    rate = measured(run_of(*people, *[True, False] * 50), labels(*people)).rates[0]
    assert (rate.powered, rate.powered_ci95) == (None, None)
    assert rate.refused == "fewer than 5 labels on which person and judge differ"
    assert rate.corrected_ci95 is not None


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
