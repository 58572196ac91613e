"""Answers and the verdicts on them, as they are held against people's labels and against other runs."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.model.trace import Output, TraceError
from evalwright.scoring.judged_answers import JudgedAnswers, Judgement, judged_answers
from evalwright.testing import MemoryRun, MemoryStore, a_case, a_plan, a_result, a_trace

CELL = ("c1", "v1", 0)


def run_of(**row: Any) -> MemoryRun:
    """One cell that is answered and judged once."""
    run = MemoryStore().create(a_plan(), [a_case()], {})
    run.append_trace(a_trace())
    run.append_results([a_result(evaluator="judge", **row)])
    return run


def judged(run: MemoryRun) -> JudgedAnswers:
    return judged_answers(run, ["judge"])


def judgement(**row: Any) -> Judgement:
    return judged(run_of(**row)).judgements["judge"][CELL]


def test_a_folder_of_another_program_has_neither_trials_nor_attempts() -> None:
    run = run_of(passed=True)
    for lines in (run._records.traces, run._records.results):
        assert b',"trial":0,"attempt":1' in lines[0]
        lines[0] = lines[0].replace(b',"trial":0,"attempt":1', b"")
    found = judged(run)
    assert (found.attempts, found.judgements["judge"][CELL].passed) == ({CELL: 1}, True)


def test_only_the_newest_answer_and_what_was_said_of_it_count() -> None:
    run = run_of(passed=False)
    first = judged(run).answers[CELL]
    run.append_trace(a_trace(attempt=2, output=Output("another")))
    assert judged(run).judgements == {"judge": {}}
    run.append_results([a_result(evaluator="judge", attempt=2, passed=True), a_result(evaluator="other", attempt=2)])
    found = judged(run)
    assert found.judgements == {"judge": {CELL: Judgement(True, None, None)}}
    assert (found.attempts[CELL], found.lengths[CELL], found.answers[CELL] != first) == (2, len("another"), True)


@pytest.mark.parametrize(("output", "lengths"), [(Output("four"), {CELL: 4}), (Output(None), {}), (None, {})])
def test_only_texts_have_a_length(output: Output | None, lengths: dict[Any, int]) -> None:
    run = MemoryStore().create(a_plan(), [a_case()], {})
    run.append_trace(a_trace(output=output))
    assert judged(run).lengths == lengths


@pytest.mark.parametrize(
    ("score", "detail", "found"),
    [
        (0.5, {}, (0.5, None)),
        (1, {"threshold": 0.75}, (1.0, 0.75)),
        (None, {"threshold": True}, (None, None)),
        (0.5, {"rubric": {"score": 4, "threshold": 3}, "threshold": 0.1}, (4.0, 3.0)),
        (0.5, {"rubric": {"score": True, "threshold": "3"}}, (None, None)),
        (0.5, {"rubric": "be fair"}, (0.5, None)),
    ],
)
def test_a_score_is_that_of_the_rubric_if_there_is_one(score: Any, detail: dict[str, Any], found: Any) -> None:
    said = judgement(score=score, detail=detail)
    assert (said.score, said.threshold) == found


@pytest.mark.parametrize("how", [{"error": TraceError("bad_reply", "?")}, {"skipped": True}])
def test_an_evaluator_that_said_nothing_has_no_verdict(how: dict[str, Any]) -> None:
    comparisons = [{"first": "answer", "winner": "tie"}, {"first": "reference", "winner": "tie"}]
    said = judgement(passed=True, detail={"comparisons": comparisons}, **how)
    assert (said.passed, said.orders) == (None, ())


@pytest.mark.parametrize(
    ("votes", "found"),
    [
        ([{"model": "a", "passed": True}, {"model": "b", "passed": False}], (("a", True), ("b", False))),
        ([{"model": "a", "passed": None}, {"model": "b", "passed": 1}, "c", {"model": "d"}], ()),
        ({"model": "a", "passed": True}, ()),
        (None, ()),
    ],
)
def test_a_vote_is_a_verdict_of_a_model(votes: Any, found: Any) -> None:
    assert judgement(detail={"votes": votes}).votes == found


def test_orders_are_pairs_of_which_the_first_showed_the_answer_first() -> None:
    rows = [(first, winner) for first in ("answer", "reference") for winner in ("answer", "tie")]
    one, two, three, four = ({"first": first, "winner": winner} for first, winner in rows)
    assert judgement(detail={"comparisons": [one, four, two, three, one]}).orders == (
        ("answer", "tie"),
        ("tie", "answer"),
    )
    assert judgement(detail={"comparisons": [three, one, one, two, "?", four]}).orders == ()
    assert judgement(detail={"comparisons": {"first": one}}).orders == ()
