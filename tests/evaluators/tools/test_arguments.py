"""Expected arguments against actual ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import EvaluatorError
from evalwright.evaluators.tools.arguments import matches_subset


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": True}, {"a": 1}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": None}, {"a": None}, True),
        ({"a": None}, {}, False),
        ({"a": None}, {"a": ""}, False),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, False),
        ({"a": {"b": 1}}, {"a": [1]}, False),
        ({"a": [1, 2]}, {"a": [1, 2]}, True),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": [2, 1]}, {"a": [1, 2]}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, True),
        ({"a": "~=^AB"}, {"a": "ABC"}, True),
        ({"a": "~=BC"}, {"a": "ABC"}, True),
        ({"a": "~=^BC"}, {"a": "ABC"}, False),
        ({"a": "~=3"}, {"a": 3}, False),
        ({"a": "~="}, {"a": ""}, True),
        ({"a": ["~=^A", 1]}, {"a": ["ABC", 1]}, True),
        ({"a": "x~=y"}, {"a": "x~=y"}, True),
        ({"a": 1}, "a", False),
    ],
)
def test_what_is_expected_must_be_there(expected: Any, actual: Any, matches: bool) -> None:
    assert matches_subset(expected, actual) is matches


def test_an_invalid_pattern_is_an_error_once_it_is_reached() -> None:
    with pytest.raises(EvaluatorError, match="invalid pattern '\\['"):
        matches_subset({"a": "~=["}, {"a": "x"})


def test_an_invalid_pattern_that_is_not_reached_is_none() -> None:
    assert matches_subset({"a": 1, "b": "~=["}, {"a": 2, "b": "x"}) is False


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc~ü"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)
MAPPINGS = st.dictionaries(st.text(max_size=2), VALUES, max_size=4)


@given(MAPPINGS)
def test_a_mapping_matches_itself(mapping: dict[str, Any]) -> None:
    assert matches_subset(mapping, mapping)


@given(MAPPINGS, MAPPINGS, MAPPINGS)
def test_more_arguments_never_break_a_match(
    expected: dict[str, Any], actual: dict[str, Any], more: dict[str, Any]
) -> None:
    enough = {**actual, **expected}
    assert matches_subset(expected, {**more, **enough})
