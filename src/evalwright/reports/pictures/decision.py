"""Decisions as a picture."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from evalwright.decisions.sides import PASS_RATE
from evalwright.model.decision import Decision
from evalwright.reports.decision import forest_of
from evalwright.reports.decision_words import WORDS
from evalwright.reports.pictures.elements import Html
from evalwright.reports.pictures.plots import forest_svg

__all__ = ["decision_image", "decision_svg", "image_of"]


def decision_svg(decisions: Sequence[Decision]) -> Html:
    """The difference, evaluators and slices below each other; with names if there are several variants."""
    several = len(decisions) > 1
    rows = [
        row._replace(label=f"{decision.variant_b}: {row.label}") if several else row
        for decision in decisions
        for row in forest_of(decision)
    ]
    message = ", ".join(
        (f"{decision.variant_b}: " if several else "") + WORDS[decision.verdict] for decision in decisions
    )
    first = decisions[0]
    return forest_svg(f"{message}: B − A", rows, margin=first.margin, points=first.metric == PASS_RATE)


def decision_image(decisions: Sequence[Decision]) -> str:
    """The picture as an image URL; empty if nothing was measured."""
    return image_of(decision_svg(decisions)) if any(forest_of(decision) for decision in decisions) else ""


def image_of(svg: Html) -> str:
    """A picture as a data URL: pages show it without a request, and nothing in it can run."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode('utf-8', 'replace')).decode()}"
