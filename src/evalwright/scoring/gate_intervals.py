"""How certain the value of a gate's condition is: an interval beside the value, which alone decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from msgspec import UNSET

from evalwright.model.facts import TraceLike
from evalwright.statistics.latency import quantile_ends, quantile_needs
from evalwright.statistics.rates import rate_of_units, score_ends
from evalwright.statistics.units import Cluster, Units, units_from

__all__ = ["CountedPasses", "Ends", "OwnedScores", "Reaches", "ends_of_condition"]

Interval = tuple[float, float]
Reaches = Callable[[float], bool]

QUANTILES = {"median": 0.5, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


class OwnedScores(NamedTuple):
    """The scores of one evaluator, in any order, each with its case or group of cases: these are independent."""

    scores: Sequence[float] = ()
    owners: Sequence[Hashable] = ()


class Ends(NamedTuple):
    """The 95 % interval of a condition's value, or why there is none."""

    ends: Interval | None
    missing: str = ""


class CountedPasses:
    """Cells that passed, by case or group of cases: these are independent, unlike the cells of one."""

    def __init__(self) -> None:
        self._units: dict[Hashable, list[int]] = {}

    def add(self, trace: TraceLike, passed: bool) -> None:
        owner: Hashable = trace.case_key if trace.group is UNSET else (trace.group,)
        unit = self._units.setdefault(owner, [0, 0])
        unit[0] += passed
        unit[1] += 1

    def merge(self, other: CountedPasses) -> None:
        for owner, (passed, n) in other._units.items():
            unit = self._units.setdefault(owner, [0, 0])
            self._units[owner] = [unit[0] + passed, unit[1] + n]

    def ends(self) -> Interval | None:
        """The 95 % interval of the share that passed; None without cells."""
        return rate_of_units(units_from(Counter(Cluster(float(passed), n) for passed, n in self._units.values()))).ci


def ends_of_condition(rule: Mapping[str, Any], owned: Mapping[str, OwnedScores], reaches: Reaches) -> Ends:
    """The interval of a mean, of an accuracy (in percent), or of a median or percentile of one score for each case.

    The lowest and the highest score of a sample say nothing about further ones; a percentile lies between order
    statistics (`quantile_ends`). `reaches` says which scores count as passed.
    """
    weighted = rule["kind"] == "weighted_average"
    weights: Mapping[str, float] = rule["weights"] if weighted else {rule["metric_key"]: 1.0}
    parts = [owned.get(key, OwnedScores()) for key in weights]
    if not all(part.scores for part in parts):
        return Ends(None, "an evaluator has no scores")
    aggregation = rule["aggregation"]
    if aggregation in ("min", "max"):
        word = "least" if aggregation == "min" else "greatest"
        return Ends(None, f"the {word} score of a sample says nothing about other cases")
    if aggregation not in ("avg_score", "accuracy"):
        return _quantile(parts, QUANTILES[aggregation])
    try:
        return _ends_of_mean(parts, list(weights.values()), reaches if aggregation == "accuracy" else None)
    except OverflowError:
        return Ends(None, "the scores are too large for one")


def _ends_of_mean(parts: Sequence[OwnedScores], weights: Sequence[float], reaches: Reaches | None) -> Ends:
    """Of an accuracy, if `reaches` is given. Raises OverflowError for scores that cannot be squared or added up."""
    units = _units(parts, weights, reaches or float)
    if units is None:
        return Ends(None, "the evaluators did not score the same cases")
    if reaches is None:
        seen = [score for part in parts for score in part.scores]
        return Ends(score_ends(units, low=min(0.0, *seen), high=max(1.0, *seen)))
    ends = rate_of_units(units).ci if len(parts) == 1 else score_ends(units)
    return Ends(None if ends is None else (100 * ends[0], 100 * ends[1]))


def _quantile(parts: Sequence[OwnedScores], share: float) -> Ends:
    """Order statistics require independent scores: one evaluator, and one score for each case."""
    if len(parts) > 1:
        return Ends(None, "an average of percentiles of several evaluators has none")
    scores, owners = parts[0]
    if len(set(owners)) < len(owners):
        return Ends(None, "some cases have several scores, or belong to one group: they are not independent")
    ends = quantile_ends(scores, share)
    return Ends(ends, "" if ends else f"it takes {quantile_needs(share)} scores, there are {len(scores):,}")


def _units(parts: Sequence[OwnedScores], weights: Sequence[float], value: Callable[[float], float]) -> Units | None:
    """Totals by case or group; None unless each evaluator has the same number of scores in each."""
    scores, owners = parts[0]
    if len(parts) == 1 and len(set(owners)) == len(owners):  # nothing to add up, and nothing to hold for each case
        return units_from(Counter(Cluster(float(value(score)), 1) for score in scores))
    sizes = Counter(owners)
    if any(Counter(part.owners) != sizes for part in parts[1:]):
        return None
    values: dict[Hashable, list[float]] = {}
    for part, weight in zip(parts, weights, strict=True):
        share = weight / sum(weights)
        for score, owner in zip(part.scores, part.owners, strict=True):
            values.setdefault(owner, []).append(share * value(score))
    return units_from(Counter(Cluster(fsum(found), sizes[owner]) for owner, found in values.items()))
