"""Scores without models."""

import asyncio
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import EvaluatorError
from evalwright.formats.pixie.assignment import best_pairs
from evalwright.pixie import Evaluable, JSONDiff, LevenshteinMatch, ListContains, NumericDiff, ValidJSON


def scored(evaluator, output, expected):
    evaluable = Evaluable(eval_input="q", eval_output=[{"name": "output", "value": output}], expectation=expected)
    return asyncio.run(evaluator(evaluable))


@pytest.mark.parametrize(
    ("evaluator", "output", "expected", "score"),
    [
        (LevenshteinMatch(), "kitten", "sitting", 1 - 3 / 7),
        (NumericDiff(), 6, 7, 1 - 1 / 13),
        (NumericDiff(), 0, 0, 1.0),
        (JSONDiff(), {"a": 1}, {"a": 1, "b": 2}, 0.5),
        (JSONDiff(), 1, "1", 1 / 3),
        (ValidJSON(), "[1]", None, 1.0),
        (ValidJSON(schema={"type": "integer"}), "1", None, 1.0),
        (ListContains(), ["a", "b"], ["b"], 0.5),
        (ListContains(allow_extra_entities=True), ["a", "b"], ["b"], 1.0),
    ],
)
def test_scores_follow_their_rules(evaluator, output, expected, score):
    assert scored(evaluator, output, expected).score == pytest.approx(score)


def test_what_cannot_be_scored_says_why():
    with pytest.raises(EvaluatorError, match="NumericDiff requires a number as output, found str"):
        scored(NumericDiff(), "six", 7)


_sizes = st.integers(1, 4)


@given(st.data())
def test_the_pairing_is_the_best_one(data):
    rows, columns = data.draw(_sizes), data.draw(_sizes)
    weight = st.floats(0, 1).map(lambda x: round(x, 3))
    weights = [[data.draw(weight) for _ in range(columns)] for _ in range(rows)]
    found = sum(weights[i][j] for i, j in best_pairs(weights))
    if rows <= columns:
        ways = (sum(weights[i][j] for i, j in enumerate(way)) for way in permutations(range(columns), rows))
    else:
        ways = (sum(weights[i][j] for j, i in enumerate(way)) for way in permutations(range(rows), columns))
    assert found == pytest.approx(max(ways))
