"""Deep equality that keeps types apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.evaluators.values.equality import deeply_equal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_plain_data_equals_its_copy(value: Any) -> None:
    assert deeply_equal(value, json.loads(json.dumps(value)))


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, "1"), ([1], [True]), ({"a": 0}, {"a": False})])
def test_values_of_different_types_are_not_equal(one: Any, other: Any) -> None:
    assert not deeply_equal(one, other)
    assert not deeply_equal(other, one)
