"""Reference numbers: statsmodels multipletests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics import adjust_p_values

P_VALUES = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]


@pytest.mark.parametrize(
    ("method", "adjusted", "rejected"),
    [
        ("bonferroni", [0.01, 0.08, 0.39, 0.41, 0.42, 0.6, 0.74, 1.0, 1.0, 1.0], 1),
        ("holm", [0.01, 0.072, 0.312, 0.312, 0.312, 0.312, 0.312, 0.615, 0.615, 0.615], 1),
        ("hochberg", [0.01, 0.072, 0.216, 0.216, 0.216, 0.216, 0.216, 0.216, 0.216, 0.216], 1),
        ("benjamini_hochberg", [0.01, 0.04, 0.084, 0.084, 0.084, 0.1, 0.1057142857143, 0.216, 0.216, 0.216], 2),
    ],
)
def test_adjusted_values_are_those_of_the_reference(method: str, adjusted: list[float], rejected: int) -> None:
    values = adjust_p_values(P_VALUES)
    assert values[f"{method}_adjusted"] == pytest.approx(adjusted)
    assert sum(values[f"{method}_reject"]) == rejected


@given(st.lists(st.floats(0, 1), max_size=20), st.randoms(use_true_random=False))
def test_order_does_not_matter(p_values: list[float], random: object) -> None:
    order = sorted(range(len(p_values)), key=lambda _: random.random())  # type: ignore[attr-defined]
    whole, mixed = adjust_p_values(p_values), adjust_p_values([p_values[i] for i in order])
    for name, values in whole.items():
        assert mixed[name] == [values[i] for i in order]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_no_method_makes_a_p_value_smaller(p_values: list[float]) -> None:
    for name, values in adjust_p_values(p_values).items():
        if name.endswith("_adjusted"):
            assert all(p - 1e-12 <= value <= 1 for p, value in zip(p_values, values, strict=True))


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        adjust_p_values([0.5, 1.5])
