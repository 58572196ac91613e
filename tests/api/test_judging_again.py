"""Runs that are judged again, by their own evaluators or by others."""

import asyncio

import pytest

import evalwright as ew
from api import agents
from api.shouting import evaluate


def test_evaluators_are_added_and_systems_not_called(run):
    calls = []

    @ew.evaluator(name="short")
    def brief(output):
        calls.append(output)
        return len(output) < 4

    again = ew.re_evaluate(run, [brief, "answered"])
    assert list(again.cell("a").results) == ["loud", "short", "answered"]
    assert [cell.status for cell in again] == ["pass", "fail", "error", "pass"]
    assert sorted(calls) == ["HI", "YES", "quiet"]


def test_evaluators_are_replaced(run):
    again = ew.re_evaluate(run, lambda output: True, replace=True)
    assert [cell.status for cell in again] == ["pass", "pass", "error", "pass"]
    assert list(again.cell("a").results) == ["lambda"]


def test_the_runs_own_evaluators_judge_again(run):
    assert [cell.status for cell in ew.re_evaluate(run)] == [cell.status for cell in run]


def test_a_run_in_memory_is_judged_again():
    run = evaluate({"a": "x"}, agents.upper)
    assert ew.re_evaluate(run, lambda output: False).cell("a").status == "fail"


def test_an_evaluator_that_cannot_be_used_leaves_the_run_as_it_was(run):
    with pytest.raises(ew.InputError, match="did you mean"):
        ew.re_evaluate(run, "contans_text")
    with pytest.raises(ew.InputError, match="evaluators: nothing would be judged"):
        ew.re_evaluate(run, [], replace=True)
    assert len(run) == 4


def test_judging_again_below_a_running_loop(run):
    async def main():
        return ew.re_evaluate(run, "answered")

    assert "answered" in asyncio.run(main()).cell("a").results
