"""Reference numbers: statsmodels OLS with clustered covariance."""

from __future__ import annotations

import pytest

from evalwright.statistics import clustered_mean, paired_difference_clustered

SCORES = [1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1]
CLUSTERS = [f"d{i // 3}" for i in range(18)]


def test_clustered_mean_has_the_reference_numbers() -> None:
    assert clustered_mean(SCORES, CLUSTERS)._asdict() == {
        "mean": pytest.approx(0.6111111111111),
        "n": 18,
        "n_clusters": 6,
        "se_naive": pytest.approx(0.1182356373538),
        "se_cr0": pytest.approx(0.1452258068644),
        "se_cr1": pytest.approx(0.1590869007031),
        "se_miller_eq4": pytest.approx(0.1478755662279),
        "ci_cr1_t_df_clusters_minus_1": pytest.approx((0.2021652138761, 1.020057008346)),
        "design_effect_cr1": pytest.approx(1.81038961039),
        "effective_n": pytest.approx(9.942611190818),
        "icc_anova": pytest.approx(0.3661971830986),
    }


def test_clusters_of_one_score_change_little() -> None:
    found = clustered_mean(SCORES, list(range(18)))
    assert found.se_cr1 == pytest.approx(found.se_naive)
    assert found.icc_anova is None


def test_a_single_cluster_says_nothing_about_the_error() -> None:
    found = clustered_mean([1, 0, 1], ["a", "a", "a"])
    assert (found.n_clusters, found.se_cr1, found.ci_cr1_t_df_clusters_minus_1) == (1, None, None)


def test_no_scores_have_no_mean() -> None:
    assert clustered_mean([], []).mean is None


def test_a_score_without_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="found 1 for 2"):
        clustered_mean([1, 0], ["a"])


def test_clustered_pairs_have_the_reference_numbers() -> None:
    a, b = [1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0], [1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0]
    found = paired_difference_clustered(a, b, [f"t{i // 3}" for i in range(12)])
    assert found[:-1] == pytest.approx((1 / 6, 1 / 6, 0.09622504486494, 1.732050807569, 3, 0.1816901138162))
    assert found.ci == pytest.approx((1 / 6 - 3.182446305284 * found.se_cr1, 1 / 6 + 3.182446305284 * found.se_cr1))


def test_equal_sides_have_no_test() -> None:
    assert paired_difference_clustered([1, 0], [1, 0], ["a", "b"]).p_two_sided is None
