"""Cells whose systems have answered are judged in order, once no more answers come."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalwright.run.judge_queue import JudgeQueue
from evalwright.testing import a_case, a_trace


class Turns:
    """What happens in the turns of an event loop."""

    def __init__(self, running: int) -> None:
        self.happened: list[str] = []
        self.next: list[Callable[[], None]] = []
        self.queue = JudgeQueue(
            lambda case, _: self.happened.append(case.id),
            range(running),
            lambda: self.happened.append("traces"),
            lambda: self.happened.append("all"),
            self.next.append,
        )

    def put(self, *names: str, size: int = 1000) -> None:
        for name in names:
            self.queue.put(a_case(id=name), a_trace(case_id=name), size)

    def turn(self) -> list[str]:
        """What the next turn does."""
        self.happened.clear()
        functions, self.next[:] = list(self.next), []
        for function in functions:
            function()
        return [*self.happened]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr("evalwright.run.judge_queue._PATIENCE", 1000)
    monkeypatch.setattr("evalwright.run.judge_queue._MOMENT", 1000)


def test_cells_are_judged_in_the_first_turn_without_an_answer_after_their_traces_are_written(patient) -> None:
    turns = Turns(running=9)
    turns.put("a", "b")
    assert turns.turn() == ["traces"]
    turns.put("c")
    assert turns.turn() == ["traces"]
    assert turns.turn() == ["traces", "a", "b", "c", "all"]
    assert (turns.turn(), bool(turns.queue)) == ([], False)


def test_answers_that_never_cease_do_not_keep_cells_from_being_judged(patient, monkeypatch) -> None:
    monkeypatch.setattr("evalwright.run.judge_queue._PATIENCE", 0)
    turns = Turns(running=9)
    turns.put("a")
    assert turns.turn() == ["traces", "a", "all"]


def test_judging_stops_for_the_calls_and_goes_on_in_the_next_turn(patient, monkeypatch) -> None:
    monkeypatch.setattr("evalwright.run.judge_queue._MOMENT", 0)
    turns = Turns(running=9)
    turns.put("a")
    turns.turn()
    assert turns.turn() == ["traces", "all"]
    monkeypatch.setattr("evalwright.run.judge_queue._MOMENT", 1000)
    assert turns.turn() == ["traces", "a", "all"]


def test_no_more_cells_wait_than_are_running(patient) -> None:
    turns = Turns(running=2)
    turns.put("a", "b", "c", "d")
    assert turns.happened == ["traces", "a", "traces", "b"]
    turns.turn()
    assert turns.turn() == ["traces", "c", "d", "all"]


def test_no_more_wait_than_are_small_together(patient) -> None:
    turns = Turns(running=9)
    turns.put("a", "b", "c")
    turns.put("d", size=1 << 23)
    assert turns.happened == ["traces", "a", "b", "c"]
    turns.turn()
    assert turns.turn() == ["traces", "d", "all"]


def test_a_cell_that_is_large_by_itself_does_not_wait(patient) -> None:
    turns = Turns(running=9)
    turns.put("a", size=1 << 24)
    assert turns.happened == ["traces", "a"]


def test_cells_that_are_left_to_a_later_session_are_not_judged(patient) -> None:
    turns = Turns(running=9)
    turns.put("a", "b", size=1 << 22)
    turns.queue.clear()
    assert (turns.turn(), turns.turn(), bool(turns.queue)) == (["traces"], [], False)
    turns.put("c", size=1 << 22)
    assert turns.happened == []
