"""Functions of users that answer for a model."""

from __future__ import annotations

import builtins
import threading
import time
from pathlib import Path

import pytest

from evalwright.errors import EvaluatorError
from evalwright.model.chat import ChatReply
from llm.models import outcomes_of, refused, request


def kind(outcome):
    assert isinstance(outcome, EvaluatorError)
    return outcome.type


async def gateway(asked_for):
    """A gateway of the user's own."""
    return f"{asked_for.model} was asked {asked_for.messages[0].content}"


def test_a_function_can_answer_for_a_model():
    (said,), server = outcomes_of([refused(500)], request(model="python:llm.test_functions:gateway"))
    assert (said.text, server.requests) == ("python:llm.test_functions:gateway was asked hi", [])
    assert 0 <= said.latency_ms < 600_000


turns = iter(range(100))


def next_gateway(_asked_for):
    return f"reply {next(turns)}"


def test_a_function_may_have_changed_and_is_called_again_unless_a_cache_is_named(tmp_path):
    one = request(model="python:llm.test_functions:next_gateway")
    first, second = (outcomes_of([refused(500)], one)[0][0] for _ in range(2))
    assert (first.text == second.text, second.cached) == (False, False)
    first, second = (outcomes_of([refused(500)], one, cache=tmp_path / "c")[0][0] for _ in range(2))
    assert (first.text == second.text, second.cached) == (True, True)


async def slow_gateway(_asked_for):
    """Answers when the clock shows five minutes more."""
    clock = time.monotonic
    time.monotonic = lambda: clock() + 300
    return "done"


def test_the_time_of_a_function_is_measured_in_milliseconds(monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.monotonic)  # is put back afterwards
    (said,), _ = outcomes_of([refused(500)], request(model="python:llm.test_functions:slow_gateway"))
    assert 300_000 <= said.latency_ms < 300_250


meeting = threading.Barrier(2)


def meeting_gateway(_asked_for):
    """Answers once a second question is being asked."""
    meeting.wait(20)
    return "met"


def test_a_function_that_waits_holds_up_no_other_call():
    found, _ = outcomes_of(
        [refused(500)], *[request(text, model="python:llm.test_functions:meeting_gateway") for text in "ab"]
    )
    assert [one.text for one in found] == ["met", "met"]


async def odd_gateway(_asked_for):
    return ChatReply(text=5, model="m")


def test_a_function_that_answers_in_another_shape_gives_no_reply():
    (outcome,), _ = outcomes_of([refused(500)], request(model="python:llm.test_functions:odd_gateway"))
    assert kind(outcome) == "bad_reply"


def failing_gateway(asked_for):
    """Raises at the first call what the file says that is the question."""
    file = Path(asked_for.messages[0].content)
    raised = file.read_text()
    file.write_text("")
    if raised:
        raise getattr(builtins, raised)("no luck")
    return "now"


def asked_failing_gateway(file, raised):
    file.write_text(raised)
    return outcomes_of([refused(500)], request(str(file), model="python:llm.test_functions:failing_gateway"))[0][0]


@pytest.mark.parametrize("raised", ["TypeError", "KeyError", "RecursionError", "ValueError"])
def test_a_mistake_in_a_function_is_not_tried_again(tmp_path, raised):
    outcome = asked_failing_gateway(tmp_path / "calls", raised)
    assert kind(outcome) == "exception"
    assert raised in str(outcome)
    assert "(test_functions.py:" in str(outcome)


@pytest.mark.parametrize("raised", ["RuntimeError", "ConnectionResetError", "UnicodeError"])
def test_a_function_may_need_another_attempt(tmp_path, raised):
    assert asked_failing_gateway(tmp_path / "calls", raised).text == "now"


def test_a_missing_function_is_reported():
    (outcome,), _ = outcomes_of([refused(500)], request(model="python:llm.test_functions:gone"))
    assert (kind(outcome), "gone" in str(outcome)) == ("bad_request", True)
