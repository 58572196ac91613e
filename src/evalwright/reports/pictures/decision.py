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


def decision_image(decisions: Sequence[Decision]) -> str:
    """The picture as an address of an image; empty where nothing was measured."""
    return image_of(decision_svg(decisions)) if any(forest_of(one) for one in decisions) else ""


def image_of(svg: Html) -> str:
    """A picture as an address that holds it whole: pages show it without a request, and nothing in it can run."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode('utf-8', 'replace')).decode()}"
