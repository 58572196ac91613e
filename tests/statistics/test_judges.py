"""Reference numbers: Rogan and Gladen 1978 by hand; ppi-python."""

from __future__ import annotations

import pytest

from evalwright.statistics import corrected_rate_interval, prediction_powered_mean, rogan_gladen

HUMAN = [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1]
JUDGE = [1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1]
REST = [1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1]


def test_corrected_rate_has_the_reference_numbers() -> None:
    found = rogan_gladen(312, 400, 88, 7, 41, 9)
    assert found[:5] == pytest.approx((0.78, 0.9263157894737, 0.82, 0.8039492242595, 0.04251642451797))
    assert found.ci_normal == pytest.approx((0.7206185634529, 0.8872798850662))


@pytest.mark.parametrize("table", [(1, 1, 1, 1), (0, 0, 1, 1), (1, 9, 1, 9)])
def test_a_judge_no_better_than_chance_corrects_nothing(table: tuple[int, int, int, int]) -> None:
    assert rogan_gladen(5, 10, *table).corrected_rate is None


def test_the_interval_for_few_labels_is_that_of_lang_and_reiczigel() -> None:
    """By hand: 20 of 50 positive, sensitivity 18 of 20, specificity 27 of 30."""
    assert corrected_rate_interval(20, 50, 18, 2, 27, 3) == pytest.approx((0.16637, 0.59652), abs=1e-5)


def test_a_judge_without_a_mistake_on_few_labels_is_not_taken_for_perfect() -> None:
    few, many = corrected_rate_interval(70, 100, 5, 0, 5, 0), corrected_rate_interval(70, 100, 500, 0, 500, 0)
    assert few is not None
    assert many is not None
    assert few[1] - few[0] > 1.5 * (many[1] - many[0])


@pytest.mark.parametrize("table", [(1, 1, 1, 1), (0, 0, 5, 0), (30, 70, 1, 0)])
def test_without_skill_there_is_no_interval(table: tuple[int, int, int, int]) -> None:
    assert corrected_rate_interval(50, 100, *table) is None


def test_prediction_powered_mean_has_the_reference_numbers() -> None:
    assert prediction_powered_mean(HUMAN, JUDGE, REST)._asdict() == {
        "lambda_library_variant": pytest.approx(0.5024509803922),
        "ppi_plus_estimate_library_variant": pytest.approx(0.6499183006536),
        "ppi_plus_ci_library_variant": pytest.approx((0.4223407062062, 0.877495895101)),
        "classical_mean": pytest.approx(0.6666666666667),
        "classical_se_ddof1": pytest.approx(0.1421338109037),
        "ppi_estimate": pytest.approx(0.6333333333333),
        "rectifier": pytest.approx(-0.1666666666667),
        "ppi_se_ddof0": pytest.approx(0.1300284869073),
        "ppi_se_ddof1": pytest.approx(0.134697824799),
        "ppi_ci_ddof0": pytest.approx((0.3784821820307, 0.8881844846359)),
        "lambda_ppi_plus_unclipped": pytest.approx(0.5147058823529),
        "lambda_ppi_plus": pytest.approx(0.5147058823529),
        "ppi_plus_estimate": pytest.approx(0.6495098039216),
        "ppi_plus_se_ddof0": pytest.approx(0.1160434175078),
        "ppi_plus_ci_ddof0": pytest.approx((0.4220688849633, 0.8769507228798)),
        "judge_only_mean_all": pytest.approx(0.8095238095238),
    }


def test_a_judge_that_never_varies_has_no_weight() -> None:
    found = prediction_powered_mean([1, 0, 1], [1, 1, 1], [1, 1])
    assert (found.lambda_ppi_plus, found.ppi_plus_estimate, found.ppi_plus_ci_library_variant) == (None, None, None)
    assert found.ppi_estimate == pytest.approx(2 / 3)


def test_too_few_items_are_refused() -> None:
    with pytest.raises(ValueError, match="found 1, 1 and 2"):
        prediction_powered_mean([1], [1], [1, 0])
