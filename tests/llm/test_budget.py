"""Money that is reserved before a call, and what a call has cost in the end."""

import pytest

from evalwright.llm.budget import Spending
from evalwright.llm.failures import CallFailed
from evalwright.model.chat import ChatMessage, ChatRequest
from evalwright.model.plan import Price

ASKED = ChatRequest("m", [ChatMessage("user", "abcd")], max_tokens=9)
"""One token in and nine out: 10 dollars at a dollar each."""


def spending(cap):
    return Spending({"m": Price(1e6, 1e6)}, cap)


def test_calls_under_way_share_what_is_left_and_give_back_what_they_did_not_use():
    money = spending(21.0)
    first, second = money.reserve(ASKED), money.reserve(ASKED)
    assert (first, second) == (10.0, 10.0)
    with pytest.raises(CallFailed, match="would exceed") as raised:
        money.reserve(ASKED)
    assert raised.value.kind == "cost_limit"
    money.settle(first, 1.0)
    assert money.reserve(ASKED) == 10.0
    with pytest.raises(CallFailed):
        money.reserve(ASKED)
    money.settle(second, None)  # nobody knows what it cost: all of it counts
    assert money.spent == 11.0


@pytest.mark.parametrize("kind", ["rate_limited", "authentication", "bad_request", "http_5xx"])
def test_a_call_that_was_refused_costs_nothing(kind):
    money = spending(10.0)
    money.release(money.reserve(ASKED), CallFailed(kind, "no"))
    assert (money.spent, money.reserve(ASKED)) == (0.0, 10.0)


@pytest.mark.parametrize(
    "failure", [CallFailed("timeout", "late"), CallFailed("connection", "gone"), KeyboardInterrupt()]
)
def test_a_call_that_may_have_been_answered_counts_in_full(failure):
    money = spending(10.0)
    money.release(money.reserve(ASKED), failure)
    with pytest.raises(CallFailed):
        money.reserve(ASKED)
