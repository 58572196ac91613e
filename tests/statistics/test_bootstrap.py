"""Reference numbers: all draws enumerated; scipy.stats.bootstrap with 400,000 draws."""

from __future__ import annotations

import pytest

from evalwright.statistics import bootstrap_mean, bootstrap_mean_bca, cluster_bootstrap_mean

SCORES = [0.91, 0.42, 0.77, 0.65, 0.88, 0.3, 0.95, 0.71, 0.58, 0.83, 0.49, 0.79]


def test_few_scores_are_drawn_in_every_way() -> None:
    assert bootstrap_mean([0.0, 0.25, 0.5, 1.0, 1.0]) == pytest.approx((0.1788854382, 0.1788854382, 0.2, 0.9))


def test_few_clusters_are_drawn_in_every_way() -> None:
    found = cluster_bootstrap_mean([1, 0, 1, 1, 1, 0, 0, 0.5, 1], ["a", "a", "b", "b", "b", "c", "c", "d", "d"])
    assert found == pytest.approx((0.191758621259, 0.1875, 0.9090909090909))


def test_many_scores_are_drawn_always_alike() -> None:
    found = bootstrap_mean(SCORES)
    assert found.boot_se == pytest.approx(found.closed_form_se_ddof0, rel=0.02)
    assert found == bootstrap_mean(SCORES)


def test_corrected_interval_comes_near_the_reference() -> None:
    found = bootstrap_mean_bca(SCORES)
    assert found.bca == pytest.approx((0.5658333333333, 0.79), abs=0.006)
    assert found.percentile == pytest.approx((0.5741666666667, 0.7966666666667), abs=0.006)


def test_what_cannot_be_drawn_is_undefined() -> None:
    assert bootstrap_mean([]) == (None, None, None, None)
    assert bootstrap_mean_bca([0.5, 0.5]) == (None, None)
    assert cluster_bootstrap_mean([1, 0], ["a", "a"]) == (None, None, None)
