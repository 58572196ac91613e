"""Reasons in groups: what cells share, whatever their numbers, quotations and ids are."""

from __future__ import annotations

import random

import pytest

from evalwright.model.trace import TraceError
from evalwright.reports.reasons import ReasonGroups, group_reasons, reasons_of, shape_of
from evalwright.testing import a_verdict
from reports.runs import stored, summary, variant

STACK = 'File "/x/agent.py", line 40, in answer\n    go()\n  File "/x/agent.py", line 41, in number\n    int(x)\n'


@pytest.mark.parametrize(
    ("reason", "shape"),
    [
        ("says: missing: 'a', 'b'; in 'You paid €75.00'", "says: missing: '…'; in '…'"),
        ('says: missing: "it\'s"', "says: missing: '…'"),
        ("changes: unexpected: refund(number='1', cents=2400)", "changes: unexpected: refund(…)"),
        ("changes: refund(reason='Refund order 12, I...)", "changes: refund(…)"),
        ("judge_2: the users' list isn't long enough", "judge_2: the users' list isn't long enough"),
        ("judge: took 812.5 ms, limit 1,000", "judge: took … ms, limit …"),
        ("job: 3f2b8c1d-0000-4a4b-8c8c-0123456789ab gone, deadbeef99 too", "job: … gone, … too"),
        ("case: no row for c-12x", "case: no row for …"),
        ("score", "score"),
        ("", ""),
    ],
)
def test_what_differs_from_cell_to_cell_is_left_out(reason: str, shape: str) -> None:
    assert shape_of(reason, "c-12x") == shape


def test_an_error_names_the_frame_of_the_user_and_hides_the_results_without_an_answer() -> None:
    error = TraceError("adapter_error", "ValueError: invalid literal: '10O2' in agent.py:41", STACK)
    reason, *others = reasons_of(
        a_verdict(status="error", error=error, reasons=["adapter_error: ...", "says: no result"])
    )
    assert not others
    assert reason.text == "agent.py:41 in number: ValueError: invalid literal: '10O2'"
    assert reason.shape == "agent.py:41 in number: ValueError: invalid literal: '…'"


def test_a_cell_is_counted_once_in_each_of_its_groups() -> None:
    groups = ReasonGroups()
    groups.add(a_verdict(status="fail", reasons=["says: missing 'a'", "says: missing 'b'", "fast: 3 s"]), (0, 0, 0))
    assert [(group.shape, group.count) for group in groups] == [("says: missing '…'", 1), ("fast: … s", 1)]


def test_groups_are_the_same_however_the_cells_ended() -> None:
    verdicts = [
        a_verdict(case_id=f"c{i:03}", case_index=i, status="fail", reasons=[f"e_{'ab'[i % 2]}: got {i // 100}"])
        for i in range(300)
    ]
    seen = set()
    for seed in range(3):
        random.Random(seed).shuffle(verdicts)
        failed, _ = group_reasons(stored(*verdicts), summary(variants=[variant("v", cells={"fail": 300})]))
        seen.add(tuple((g.title, g.count, *(case.case_key for case, _ in g.cases)) for g in failed))
    assert seen == {(("e_a: got …", 150, "c000", "c002", "c004"), ("e_b: got …", 150, "c001", "c003", "c005"))}
