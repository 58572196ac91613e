"""Values of every kind as JSON can hold them."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from evalwright.errors import TargetError
from evalwright.files.plain import MAX_DEPTH, plain


@pytest.mark.parametrize("wrap", [lambda inner: {"k": inner}, lambda inner: [inner]], ids=["mappings", "lists"])
def test_nesting_has_a_limit(wrap: Any) -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH - 1):
        value = wrap(value)
    assert plain(value, "answer", []) == value
    with pytest.raises(TargetError, match="answer is nested deeper than 200 levels"):
        plain(wrap(wrap(value)), "answer", [])


def test_a_circle_is_nested_too_deeply() -> None:
    value: dict[str, Any] = {}
    value["self"] = [value]
    with pytest.raises(TargetError, match="nested deeper"):
        plain(value, "answer", [])


def test_keys_become_text_that_can_be_written() -> None:
    notes: list[str] = []
    assert plain({"ä": 1, 2: "b", None: 3}, "answer", notes) == {"ä": 1, "2": "b", "None": 3}
    assert notes == []
    assert plain({"half \ud83d": 1}, "answer", notes) == {"half \ufffd": 1}
    assert notes == ["answer (key): lone surrogates replaced by U+FFFD"]


def test_numbers_that_json_has_no_form_for_become_text_and_are_noted() -> None:
    notes: list[str] = []
    assert plain([1.5, -0.0, float("inf"), 2**63 - 1, 2**64], "answer", notes) == [
        1.5,
        0.0,
        "inf",
        2**63 - 1,
        str(2**64),
    ]
    assert [note.partition(":")[0] for note in notes] == ["answer[2]", "answer[4]"]


class Found(BaseModel):
    when: date
    at: Any


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


def test_objects_are_their_fields_or_else_their_text() -> None:
    notes: list[str] = []
    assert plain({"a": [Found(when=date(2026, 1, 2), at=(1, {2.5}))]}, "answer", notes) == {
        "a": [{"when": "2026-01-02", "at": [1, [2.5]]}]
    }
    assert notes == []
    assert plain([Odd()], "answer", notes) == ["<odd>"]
    assert notes == ["answer[0]: <odd> has no JSON form, kept as text"]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.characters(categories=["Cs"])
    | st.binary()
    | st.dates()
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.tuples(inner)
        | st.frozensets(st.text())
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_plain_data_survives_a_round_trip_unchanged(value: Any) -> None:
    cleaned = plain(value, "x", [])
    assert msgspec.json.decode(msgspec.json.encode(cleaned)) == cleaned
    assert plain(cleaned, "x", []) == cleaned


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_json_data_is_left_as_it_is(value: Any) -> None:
    notes: list[str] = []
    assert plain(value, "x", notes) == json.loads(json.dumps(value))
    assert notes == []


def test_the_depth_that_is_taken_can_be_stored() -> None:
    value: object = "x"
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert msgspec.json.encode(plain(value, "x", []))
