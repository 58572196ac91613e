"""Variants that another one dominates, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalwright.reports.text import folded, one_line

__all__ = ["dominated_lines"]


def dominated_lines(found: Mapping[str, Sequence[str]], columns: int | None) -> list[str]:
    """Variants that another one dominates: a paragraph below the decisions about them."""
    lines = []
    for name, rivals in found.items():
        who = ", ".join(one_line(rival, 30) for rival in rivals)
        why = "not worse in pass rate, cost and latency, and better in one of them"
        lines += folded(f"{one_line(name, 30)} is dominated by {who}: {why}".split(), columns, indent="  ")
    return ["", *lines] if lines else []
