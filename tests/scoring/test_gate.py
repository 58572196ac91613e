"""Gates over scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scoring.gate import AGGREGATIONS, aggregated, decided

SCORES = {"a": [1.0, 0.5, 0.25, 1.0, 0.0], "b": [0.0, 1.0, 1.0, 0.75, 0.5]}


def simple(key="a", aggregation="avg_score", op="gte", value=0.0, **more):
    return {"kind": "simple", "metric_key": key, "aggregation": aggregation, "op": op, "value": value, **more}


@pytest.mark.parametrize(
    ("aggregation", "value"),
    [("avg_score", 0.55), ("accuracy", 40.0), ("min", 0.0), ("max", 1.0), ("median", 0.5), ("p50", 0.5), ("p95", 1.0)],
)
def test_aggregations(aggregation, value):
    assert aggregated(SCORES["a"], aggregation) == pytest.approx(value)


def test_accuracy_counts_from_the_threshold():
    assert aggregated(SCORES["a"], "accuracy", 0.5) == 60.0


def test_percentiles_interpolate_between_ranks():
    assert aggregated([0.0, 1.0], "p95") == pytest.approx(0.95)


@pytest.mark.parametrize(("op", "passed"), [("gt", False), ("gte", True), ("lt", False), ("lte", True), ("eq", True)])
def test_comparisons_are_exact(op, passed):
    assert decided(simple("a", "max", op, 1.0), SCORES).passed is passed


@pytest.mark.parametrize(("operator", "passed"), [("and", False), ("or", True)])
def test_conditions_combine(operator, passed):
    rule = {"kind": "logical", "operator": operator, "conditions": [simple(value=0.6), simple("b", value=0.6)]}
    outcome = decided(rule, SCORES)
    assert (outcome.passed, [part.passed for part in outcome.parts]) == (passed, [False, True])


def test_weights_are_shares_of_their_sum():
    rule = {"kind": "weighted_average", "aggregation": "avg_score", "weights": {"a": 7, "b": 3}, "op": "eq", "value": 1}
    (part,) = decided(rule, SCORES).parts
    assert part.value == pytest.approx(0.7 * 0.55 + 0.3 * 0.65)


def test_without_scores_the_value_is_nothing():
    assert decided(simple(value=0.1), {}).passed is False


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from(AGGREGATIONS))
def test_an_aggregate_lies_between_the_scores(scores, aggregation):
    value = aggregated(scores, aggregation) / (100 if aggregation == "accuracy" else 1)
    low, high = (0, 1) if aggregation == "accuracy" else (min(scores), max(scores))
    assert low - 1e-9 <= value <= high + 1e-9
