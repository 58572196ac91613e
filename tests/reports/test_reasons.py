"""Reasons in groups: what cells share, whatever their numbers, quotations and ids are."""

from __future__ import annotations

import random

from evalwright.reports.reasons import ReasonGroups, group_reasons
from evalwright.testing import a_verdict
from reports.runs import stored, summary, variant


def test_a_cell_is_counted_once_in_each_of_its_groups() -> None:
    groups = ReasonGroups()
    groups.add(a_verdict(status="fail", reasons=["says: missing 'a'", "says: missing 'b'", "fast: 3 s"]), (0, 0, 0))
    assert [(group.title, group.count) for group in groups] == [("says: missing 'a'", 1), ("fast: 3 s", 1)]


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
