"""Reference numbers: statsmodels cohens_kappa and scikit-learn, the krippendorff package."""

from __future__ import annotations

from itertools import product
from math import exp, lgamma, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import agreement, agreement_binary, krippendorff_alpha
from evalwright.statistics.raters import kappa_interval

HUMAN = [1, 2, 3, 4, 5, 3, 3, 2, 1, 4, 5, 5, 2, 3, 4, 1, 2, 4, 5, 3]
JUDGE = [1, 2, 3, 5, 5, 3, 4, 2, 2, 4, 5, 4, 2, 3, 4, 1, 3, 4, 5, 2]


def test_agreement_has_the_reference_numbers() -> None:
    assert agreement(HUMAN, JUDGE, [1, 2, 3, 4, 5])._asdict() == {
        "n": 20,
        "percent_agreement": pytest.approx(0.7),
        "cohen_kappa": pytest.approx(0.622641509434),
        "cohen_kappa_se": pytest.approx(0.1289689156791),
        "cohen_kappa_ci95": pytest.approx((0.3698670795778, 0.8754159392902)),
        "cohen_kappa_linear": pytest.approx(0.7979797979798),
        "cohen_kappa_quadratic": pytest.approx(0.9132947976879),
        "spearman": pytest.approx(0.9174887357261),
        "kendall_tau_b": pytest.approx(0.8544474935117),
        "mean_bias_judge_minus_human": pytest.approx(0.1),
        "krippendorff_nominal": pytest.approx(0.6309148264984),
        "krippendorff_ordinal": pytest.approx(0.9165187328364),
        "krippendorff_interval": pytest.approx(0.9153400868307),
        "gwet_ac1": pytest.approx(0.6258768511302),
        "pabak": pytest.approx(0.625),
    }


def test_kappa_is_undefined_when_only_one_label_is_used() -> None:
    measured = agreement([1, 1, 1, 1], [1, 1, 1, 1])
    assert (measured.percent_agreement, measured.cohen_kappa, measured.gwet_ac1) == (1.0, None, 1.0)
    assert (measured.cohen_kappa_ci95, measured.krippendorff_nominal, measured.pabak) == (None, None, None)


def test_labels_that_are_no_numbers_have_no_order() -> None:
    measured = agreement(["pass", "fail"], ["pass", "pass"])
    assert measured.percent_agreement == 0.5
    assert (measured.spearman, measured.krippendorff_ordinal, measured.mean_bias_judge_minus_human) == (
        None,
        None,
        None,
    )


def test_nothing_rated_is_undefined() -> None:
    assert agreement([], []).percent_agreement is None
    assert agreement_binary(0, 0, 0, 0).accuracy is None
    with pytest.raises(ValueError, match="found 1 and 0"):
        agreement([1], [])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_agreement_does_not_depend_on_who_is_first(pairs: list[tuple[int, int]]) -> None:
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    there, back = agreement(one, other), agreement(other, one)
    assert there.cohen_kappa == pytest.approx(back.cohen_kappa)
    assert there.gwet_ac1 == pytest.approx(back.gwet_ac1)
    assert there.krippendorff_ordinal == pytest.approx(back.krippendorff_ordinal)


def test_binary_agreement_has_the_reference_numbers() -> None:
    assert agreement_binary(84, 6, 4, 6)._asdict() == {
        "accuracy": 0.9,
        "sensitivity_tpr": pytest.approx(0.9545454545455),
        "specificity_tnr": 0.5,
        "precision": pytest.approx(0.9333333333333),
        "f1": pytest.approx(0.9438202247191),
        "mcc": pytest.approx(0.4923659639173),
        "cohen_kappa": pytest.approx(0.4897959183673),
        "gwet_ac1": pytest.approx(0.8756528226809),
        "balanced_accuracy": pytest.approx(0.7272727272727),
        "youden_j": pytest.approx(0.4545454545455),
        "tpr_ci_wilson": pytest.approx((0.8888825522678, 0.9821837507641)),
        "tnr_ci_wilson": pytest.approx((0.2537815976337, 0.7462184023663)),
    }


def test_alpha_leaves_out_what_was_not_rated() -> None:
    none = None
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, none, none, none],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, none, 3],
        [none, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, none],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, none],
    ]
    assert krippendorff_alpha(ratings) == pytest.approx((0.7434210526316, 0.8153875037549, 0.8491071428571))


def test_alpha_takes_a_few_steps_for_each_score() -> None:
    steps = 0

    class Score(float):
        def __sub__(self, other: float) -> float:
            nonlocal steps
            steps += 1
            return float(self) - other

    human, judge = ([Score(n * factor) for n in range(1, 301)] for factor in (1, 1.5))
    assert krippendorff_alpha([human, judge]).interval == pytest.approx(0.7234074757020476)
    assert steps < 10 * 600


@pytest.mark.parametrize(
    ("rate", "tpr", "tnr"), [(0.8, 0.95, 0.9), (0.5, 0.99, 0.99), (0.8, 0.95, 0.3), (0.5, 0.5, 0.5)]
)
def test_the_interval_of_kappa_of_twenty_labels_misses_it_as_seldom_as_it_says(
    rate: float, tpr: float, tnr: float
) -> None:
    cells = rate * tpr, (1 - rate) * (1 - tnr), rate * (1 - tpr), (1 - rate) * tnr
    kappa = agreement_binary(*cells).cohen_kappa
    assert kappa is not None
    missed = whole = 0.0
    for counts in product(range(21), repeat=3):
        table = (*counts, 20 - sum(counts))
        ends = kappa_interval(*table) if table[3] >= 0 else None
        if ends is not None:
            chance = exp(lgamma(21) + sum(k * log(p) - lgamma(k + 1) for k, p in zip(table, cells, strict=True)))
            whole, missed = whole + chance, missed + chance * (not ends[0] <= kappa <= ends[1])
    assert missed / whole < 0.065


@pytest.mark.parametrize("table", [(0, 0, 3, 4), (3, 4, 0, 0), (0, 3, 0, 4), (3, 0, 4, 0), (0, 0, 0, 0)])
def test_a_rater_who_says_one_thing_only_has_no_interval_of_kappa(table: tuple[int, int, int, int]) -> None:
    assert kappa_interval(*table) is None


def test_the_interval_of_kappa_holds_the_estimate_and_has_a_width() -> None:
    low, high = kappa_interval(10, 0, 0, 10) or (1.0, 1.0)
    assert low < high == 1.0
