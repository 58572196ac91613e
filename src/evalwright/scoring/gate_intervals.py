"""How sure the value of a gate's condition is: beside the point that decides, an interval that decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from evalwright.statistics.latency import quantiles
from evalwright.statistics.rates import rate_of_units, score_ends
from evalwright.statistics.units import Cluster, Units, units_from

__all__ = ["Owned", "Reaches", "ends_of_condition"]

Interval = tuple[float, float]
Reaches = Callable[[float], bool]

_MEDIANS = ("median", "p50")


class Owned(NamedTuple):
    """The scores of one evaluator, in any order, and of each the case or group of cases: those are independent."""

    scores: Sequence[float] = ()
    owners: Sequence[Hashable] = ()


def ends_of_condition(rule: Mapping[str, Any], owned: Mapping[str, Owned], reaches: Reaches) -> Interval | None:
    """The 95 % interval of a mean, of an accuracy (in percent) or of a median of one score for each case.

    None where there is none: of the least and the greatest score and of tails, of averages over evaluators that did not
    score the same cases, and without scores. `reaches` says which score counts as passed.
    """
    weighted = rule["kind"] == "weighted_average"
    weights: Mapping[str, float] = rule["weights"] if weighted else {rule["metric_key"]: 1.0}
    parts = [owned.get(key, Owned()) for key in weights]
    if not all(part.scores for part in parts):
        return None
    aggregation = rule["aggregation"]
    if aggregation in _MEDIANS and len(parts) == 1 and len(set(parts[0].owners)) == len(parts[0].owners):
        return quantiles(list(parts[0].scores)).median_ci
    if aggregation not in ("avg_score", "accuracy"):
        return None
    accuracy = aggregation == "accuracy"
    units = _units(parts, list(weights.values()), reaches if accuracy else float)
    if units is None:
        return None
    if not accuracy:
        seen = [score for part in parts for score in part.scores]
        return score_ends(units, low=min(0.0, *seen), high=max(1.0, *seen))
    ends = rate_of_units(units).ci if len(parts) == 1 else score_ends(units)
    return None if ends is None else (100 * ends[0], 100 * ends[1])


def _units(parts: Sequence[Owned], weights: Sequence[float], value: Callable[[float], float]) -> Units | None:
    """Totals by case or group; None unless each evaluator scored as many of each."""
    sizes = Counter(parts[0].owners)
    if any(Counter(part.owners) != sizes for part in parts[1:]):
        return None
    values: dict[Hashable, list[float]] = {}
    for part, weight in zip(parts, weights, strict=True):
        share = weight / sum(weights)
        for score, owner in zip(part.scores, part.owners, strict=True):
            values.setdefault(owner, []).append(share * value(score))
    return units_from(Counter(Cluster(fsum(found), sizes[owner]) for owner, found in values.items()))
