"""Which variants another one makes superfluous."""

from __future__ import annotations

import pytest

from evalwright.decisions.pairing import CaseGroups
from evalwright.decisions.sides import SideCounts
from evalwright.decisions.terms import Guard, Terms
from evalwright.decisions.tradeoffs import dominated
from evalwright.model.facts import MetricFacts, TraceFacts

CASES = 60


def side(name: str, passed: int, cost: float | None = None, latency: int | None = None) -> SideCounts:
    """A variant that passes the first cases, with costs and latencies that differ from case to case."""
    counts = SideCounts(name)
    for i in range(CASES):
        metrics = MetricFacts(cost_usd=None if cost is None else cost * (1 + i % 3 / 10))
        took = None if latency is None else latency + i % 7
        trace = TraceFacts(case_id=f"c{i}", variant_name=name, latency_ms=took, metrics=metrics)
        counts.add(trace, [], "pass" if i < passed else "fail")
    return counts


@pytest.mark.parametrize(
    ("sides", "found"),
    [
        # as good at half the price
        ((side("a", 40, 2, 500), side("b", 40, 1, 500)), {"a": ["b"]}),
        # better, at the same price
        ((side("a", 30, 2, 500), side("b", 50, 2, 500)), {"a": ["b"]}),
        # cheaper and slower, better and dearer: a choice
        ((side("a", 40, 2, 500), side("b", 40, 1, 900)), {}),
        ((side("a", 30, 1, 500), side("b", 50, 2, 500)), {}),
        # nothing is shown to be better
        ((side("a", 40, 2, 500), side("b", 40, 2, 500)), {}),
        # three: the best one makes both superfluous
        ((side("a", 30, 2, 500), side("b", 50, 1, 500), side("c", 50, 2, 500)), {"a": ["b", "c"], "c": ["b"]}),
        # a cost that only one side tells of is not known to be no worse; costs of neither are no matter
        ((side("a", 30, 2, 500), side("b", 50, None, 500)), {}),
        ((side("a", 30, None, 500), side("b", 50, None, 500)), {"a": ["b"]}),
        ((side("a", 30, 0, None), side("b", 50, 0, None)), {"a": ["b"]}),
    ],
)
def test_a_variant_is_dominated_by_one_that_is_no_worse_in_anything_and_better_in_something(
    sides: tuple[SideCounts, ...], found: dict[str, list[str]]
) -> None:
    assert dominated({one.variant: one for one in sides}, Terms(margin=0.1), CaseGroups()) == found


def test_margins_are_those_that_are_asked_for() -> None:
    sides = {"a": side("a", 40, 2, 500), "b": side("b", 60, 2.1, 500)}
    assert dominated(sides, Terms(), CaseGroups()) == {}
    assert dominated(sides, Terms(guards=(Guard("cost", 1.1),)), CaseGroups()) == {"a": ["b"]}
    # of 60 cases, none of which changed, a loss of 2 points is not excluded, one of 10 is
    cheaper = {"a": side("a", 40, 2, 500), "b": side("b", 40, 1, 500)}
    assert dominated(cheaper, Terms(), CaseGroups()) == {}
    assert dominated(cheaper, Terms(margin=0.1), CaseGroups()) == {"a": ["b"]}
