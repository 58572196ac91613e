"""Variants that another one dominates, as lines below the decisions."""

from __future__ import annotations

from evalwright.reports.decision_words import dominated_lines


def test_what_is_dominated_is_said_within_the_width_of_the_screen() -> None:
    empty, *lines = dominated_lines({"slow": ["quick", "cheap"]}, 40)
    assert empty == ""
    assert max(map(len, lines)) <= 40
    assert [line[:2] for line in lines] == ["sl", "  ", "  "]
    whole = "slow is dominated by quick, cheap: not worse in pass rate, cost and latency, and better in one of them"
    assert " ".join(" ".join(lines).split()) == whole
    assert dominated_lines({"slow": ["quick", "cheap"]}, None) == ["", whole]


def test_nothing_is_said_where_no_variant_is_dominated() -> None:
    assert dominated_lines({}, 80) == []
