"""Quality against cost and latency: which variants of a run are dominated by another one."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import NamedTuple

from evalwright.decisions.pairing import CaseGroups, Counting, Ground, scale_of
from evalwright.decisions.sensitivity import error_counts, readings
from evalwright.decisions.sides import SideCounts
from evalwright.decisions.terms import DEFAULT_MARGIN, Terms
from evalwright.statistics.corrections import adjust_p_values
from evalwright.statistics.distributions import t_two_sided
from evalwright.statistics.ratios import ratio_of_means

__all__ = ["dominated"]

_MEASURES = ("cost", "latency")


class _ShownEvidence(NamedTuple):
    """The evidence for one dimension of a rival."""

    not_worse: bool
    p_better: float
    """1 if it is not the better one."""


def dominated(sides: Mapping[str, SideCounts], terms: Terms, known: CaseGroups) -> dict[str, list[str]]:
    """The variants that others dominate, each with those that do (Pareto).

    A rival dominates if it is shown to be not worse in pass rate, mean cost and mean latency, as far as these are
    measured, and better in one of them (Holm 1979 over the three). Margins are those of `terms`: the loss of the
    metric, the limits of guards on cost and latency, else two percent. What is shown of the metric must hold if all
    trials without a verdict had failed, and if all had passed.
    """
    ratios = {
        name: [other for other, rival in sides.items() if other != name and _dominates(rival, side, terms, known)]
        for name, side in sides.items()
    }
    return {name: rivals for name, rivals in ratios.items() if rivals}


def _dominates(rival: SideCounts, side: SideCounts, terms: Terms, known: CaseGroups) -> bool:
    scale = scale_of(side, rival, terms.metric)
    margin = DEFAULT_MARGIN * scale.width if terms.margin is None else terms.margin
    groups = known.groups if terms.group is not None else {**side.groups, **rival.groups}
    ground = Ground(side, rival, terms, scale, margin, terms.alpha, groups, ())
    qualities = []
    for reading in _readings(ground):
        quality = ground.pairs(*reading).difference(terms.alpha)
        if quality.ci is None or quality.difference is None or quality.p_value is None or quality.ci[0] <= -margin:
            return False  # most pairs of many variants end at the first
        qualities.append(quality.p_value if quality.difference > 0 else 1.0)
    shown = [_ShownEvidence(True, max(qualities))]
    for measure in _MEASURES:
        if (ratio := _measured_ratio(ground, measure)) is not None:
            if not ratio.not_worse:
                return False
            shown.append(ratio)
    adjusted = adjust_p_values([tradeoff.p_better for tradeoff in shown])["holm_adjusted"]
    return any(float(p) <= terms.alpha for p in adjusted)


def _readings(ground: Ground) -> list[tuple[Counting | None, Counting | None]]:
    """The trials as they are, and if some have no verdict, what these may have been."""
    missing = any(error_counts(outcomes).missing for outcomes in ground.outcomes())
    return [(None, None), *(readings(ground.terms, ground.scale) if missing else [])]


def _measured_ratio(ground: Ground, measure: str) -> _ShownEvidence | None:
    """For cost or latency; None if neither side has it, or both have only zeros."""
    before, after = ground.a.measures[measure].means(), ground.b.measures[measure].means()
    if not any(before.values()) and not any(after.values()):
        return None
    cases = [case for case in before if case in after]
    ratio = ratio_of_means([before[c] for c in cases], [after[c] for c in cases], ground.units(cases), 1 - ground.alpha)
    if ratio.ratio is None or ratio.ci is None or ratio.se_log is None or ratio.df is None:
        return _ShownEvidence(False, 1.0)
    limits = [guard.limit for guard in ground.terms.guards if guard.name == measure]
    change = log(ratio.ratio)
    if not ratio.se_log:
        p = float(change == 0)
    else:
        p = t_two_sided(change / ratio.se_log, ratio.df)
    return _ShownEvidence(ratio.ci[1] <= (limits[0] if limits else 1 + DEFAULT_MARGIN), p if change < 0 else 1.0)
