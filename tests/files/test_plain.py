"""Values of every kind as JSON can hold them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
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
