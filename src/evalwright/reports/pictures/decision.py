"""Decisions as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.decisions.sides import PASS_RATE
from evalwright.model.decision import Decision
from evalwright.reports.decision import WORDS, forest_of
from evalwright.reports.pictures.elements import Html
from evalwright.reports.pictures.plots import forest_svg

__all__ = ["decision_svg"]


def decision_svg(decisions: Sequence[Decision]) -> Html:
    """What was compared, evaluators and slices below each other; of several variants each with its name."""
    several = len(decisions) > 1
    rows = [
        row._replace(label=f"{one.variant_b}: {row.label}") if several else row
        for one in decisions
        for row in forest_of(one)
    ]
    said = ", ".join((f"{one.variant_b}: " if several else "") + WORDS[one.verdict] for one in decisions)
    first = decisions[0]
    return forest_svg(f"{said}: B − A", rows, margin=first.margin, points=first.metric == PASS_RATE)
