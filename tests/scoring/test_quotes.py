"""Quotes in reasons: both the groups of a run's failures and the comparison of two runs leave them out."""

from __future__ import annotations

import pytest

from evalwright.evaluators.text.contains import ContainsText
from evalwright.model.trace import Output
from evalwright.scoring.reasons import QUOTED, beginning, shape_of
from evalwright.testing import a_case, a_trace

LONG = "The refund for your order {} will reach the account that you have named within five working days"


@pytest.mark.parametrize(
    ("reason", "left"),
    [
        ('in \'a "b" c\' and "it\'s"', "in ~ and ~"),
        ("missing: 'cut off..., 'b'; in 'cut...; called: look", "missing: ~, ~; in ~; called: look"),
        ("refund(a='cut off..., reason='cut…)", "refund(a=~, reason=~)"),
        ("in `a` “b” «c»", "in ~ ~ ~"),
        ("the users' list of the '90s isn't long", "the users' list of the '90s isn't long"),
        ("it can't end where 'a' isn't", "it can't end where ~ isn't"),
        ("in 'no end", "in 'no end"),
        ("in “a», «b`", "in “a», «b`"),
        ("in `a», «b”", "in `a», «b”"),
    ],
)
def test_what_is_quoted_is_found(reason: str, left: str) -> None:
    assert QUOTED.sub("~", reason) == left


def test_cases_that_expect_and_answer_something_else_have_one_reason() -> None:
    found = set()
    for order, answer in ((1001, "I'm sorry"), (1002, "Well..., it's gone"), (1003, "We can't, " + "alas " * 99)):
        check = ContainsText(all_of=[LONG.format(order), "soon"])
        found.add(shape_of(check.evaluate(a_case(), a_trace(output=Output(answer))).reason))
    assert len(found) == 1


def test_a_reason_is_read_to_its_beginning() -> None:
    assert (beginning("a" * 2_000), beginning("a" * 2_001)) == ("a" * 2_000, "a" * 2_000 + "…")
    assert shape_of("a" * 5_000) == shape_of("a" * 6_000)
