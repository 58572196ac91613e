from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import evalwright.statistics as statistics


def test_every_public_name_can_be_had() -> None:
    assert sorted(statistics.__all__) == list(statistics.__all__)
    assert all(callable(getattr(statistics, name)) for name in statistics.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'average'"):
        importlib.import_module("evalwright.statistics").average  # noqa: B018


@pytest.mark.parametrize("strange", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cluster_jackknife", lambda x: ([1.0, x, 0.0],)),
        ("decide_difference", lambda x: ([1.0, x, 0.0],)),
        ("mean_interval", lambda x: ([1.0, x, 0.0],)),
        ("quantiles", lambda x: ([1.0, x, 2.0],)),
        ("rate_with_design_effect", lambda x: ([1.0, x, 0.0],)),
        ("ratio_of_means", lambda x: ([1.0, x], [1.0, 2.0])),
        ("slope", lambda x: ([1.0, x, 3.0], [1.0, 2.0, 4.0])),
        ("calibration", lambda x: ([0.1, x], [1, 0])),
        ("non_inferiority", lambda x: ([1.0, x], [0.5, 0.2], 0.1)),
        ("krippendorff_alpha", lambda x: ([[1, x, 2], [1, 2, 2]],)),
    ],
)
def test_values_that_are_not_finite_are_refused(
    name: str, arguments: Callable[[float], tuple[Any, ...]], strange: float
) -> None:
    with pytest.raises(ValueError, match=r"finite|NaN"):
        getattr(statistics, name)(*arguments(strange))
