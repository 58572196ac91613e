"""`{{ case.a.b }}` in configured values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.evaluators.templates import has_template, renderer
from evalwright.model.snapshot import Expected
from evalwright.testing import a_case

CASE = a_case(
    id="c7",
    input={"items": [{"sku": "A"}, "B"], "0": "zero"},
    metadata={"n": 3, "flag": True, "nothing": None, "map": {"a": 1}, "t": "{{ case.id }}"},
    expected=Expected(must_call_tools=["find"], facts={"city": "Paris"}),
)


@pytest.mark.parametrize(
    ("value", "rendered"),
    [
        ("{{ case.id }}", "c7"),
        ("{{case.id}}", "c7"),
        ("{{ case.metadata.n }}", 3),
        ("{{ case.metadata.flag }}", True),
        ("{{ case.metadata.nothing }}", None),
        ("{{ case.metadata.map }}", {"a": 1}),
        ("{{ case.metadata.t }}", "{{ case.id }}"),
        ("{{ case.input.items }}", [{"sku": "A"}, "B"]),
        ("{{ case.input.items.0.sku }}", "A"),
        ("{{ case.input.items.9 }}", None),
        ("{{ case.input.0 }}", "zero"),
        ("{{ case.expected.facts.city }}", "Paris"),
        ("{{ case.expected.must_call_tools }}", ["find"]),
        ("{{ case.metadata.nope }}", None),
        ("{{ case.id.x }}", None),
        ("{{ case.recorded }}", None),
        ("{{ trace.x }}", None),
        (" {{ case.metadata.n }}\n", 3),
        ("{{ }}", "{{ }}"),
        ("{{ 5 }}, {{ a name }}", "{{ 5 }}, {{ a name }}"),
        ("n={{ case.metadata.n }}", "n=3"),
        ("{{ case.id }}-{{ case.metadata.n }}", "c7-3"),
        ("{{ case.metadata.nope }}{{ case.metadata.nothing }}", ""),
        ("<{{ case.metadata.map }}>", "<{'a': 1}>"),
        ("~=^{{ case.id }}$", "~=^c7$"),
        ("{{{ case.id }}}", "{c7}"),
        ("{{ open", "{{ open"),
        (5, 5),
        ({"a": ["{{ case.id }}", 1], "{{ case.id }}": None}, {"a": ["c7", 1], "{{ case.id }}": None}),
    ],
)
def test_a_template_is_rendered_from_the_case(value: Any, rendered: Any) -> None:
    result = renderer(value)(CASE)
    assert (type(result), result) == (type(rendered), rendered)


def test_the_whole_expectation_is_given_as_plain_data() -> None:
    assert renderer("{{ case.expected }}")(CASE) == msgspec.to_builtins(CASE.expected)


def test_the_whole_case_is_given_without_its_recording() -> None:
    assert renderer("{{ case }}")(CASE) == CASE.argument()


PLAIN = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_a_value_without_templates_stays_as_it_is(value: Any) -> None:
    if not has_template(value):
        assert renderer(value)(CASE) is value
