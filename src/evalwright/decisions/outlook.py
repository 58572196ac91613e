"""How much more data it would take to settle an undecided decision, if everything else stays the same."""

from __future__ import annotations

from collections import Counter
from math import ceil, isfinite, log, sqrt

from evalwright.decisions.pairing import Pairs
from evalwright.decisions.sides import SideCounts
from evalwright.model.decision import Decision, GuardPart, NextPart
from evalwright.statistics.clusters import jackknife_error
from evalwright.statistics.differences import decide_units
from evalwright.statistics.distributions import normal_quantile, two_sided_z
from evalwright.statistics.power import power_paired_t
from evalwright.statistics.units import FEW_UNITS, Cluster, Units, units_from

__all__ = ["next_part"]

_POWER = 0.8
_MOST = 10_000_000
"""The largest number of cases that is considered."""
_APART = 1e-10
"""Between values of units that are not quite alike: more than their last digits, and nothing to an interval."""


def next_part(decision: Decision, pairs: Pairs, b: SideCounts, *, better: bool) -> NextPart | None:
    """How many cases would decide with 80 % power if the difference or ratio holds; None if no number would.

    If the suite is the population, it counts trials: there are no further cases.
    """
    now = max(decision.trials) if decision.population == "suite" else decision.n
    if "data" in decision.reasons:
        claim, needed = _need_of_difference(decision, pairs, now, better=better)
    elif decision.reasons == ["guard"]:
        claim, needed = _need_of_guards(decision, now)
    else:  # errors, judges, damage: more cases of the same kind would leave them open, too
        return None
    if needed is None or not now < needed <= _MOST:
        return None
    suite, trials = decision.population == "suite", decision.trials[1]
    mean = b.measures["cost"].mean_of_cases()
    cells = (needed - trials) * decision.n if suite else (needed - now) * trials
    cost = None if mean is None else cells * mean
    if cost is not None and not isfinite(cost):
        cost = None
    return NextPart(*((decision.n, needed) if suite else (needed, trials)), cost, claim)


def _need_of_difference(decision: Decision, pairs: Pairs, now: int, *, better: bool) -> tuple[str, int | None]:
    value = decision.difference or 0.0
    null = 0.0 if better and value > 0 else -decision.margin
    gap = value - null
    claim = "worse" if gap < 0 else "better" if better or not decision.margin else "not worse"
    if decision.ci is None or (better and null < value <= 0):  # neither better nor worse by more than the margin
        return claim, None
    alpha = decision.alpha / decision.family
    half = max(abs(decision.ci[1] - decision.ci[0]) / 2, 0.0)
    error = jackknife_error(pairs.units) if pairs.units.number > 1 else None
    if decision.population == "suite":
        error = half / two_sided_z(1 - alpha)
    if abs(gap) < (error or half) / 100:  # almost nothing would be left to show
        return claim, None
    if error and decision.method in ("t", "satterthwaite", "mcnemar"):
        # Degrees of freedom are those of the units: cases of few groups say less than as many of many.
        units = now if decision.population == "suite" else decision.effective_units
        needed = ceil(power_paired_t(abs(gap), error * sqrt(units), alpha).n_required_ceil * now / units)
        if needed > now:
            return claim, needed
        # Student's t would have decided: another method does, whose interval is wider.
        reach = value - decision.ci[0] if gap > 0 else decision.ci[1] - value
        return claim, _scaled_cases(now, reach, abs(gap), alpha)
    needed_units = _least_units(pairs, value, null, alpha, error or 0.0)
    return claim, None if needed_units is None else ceil(needed_units * decision.n / decision.units)


def _least_units(pairs: Pairs, value: float, null: float, alpha: float, error: float) -> int | None:
    """The least number of units like these that shows it with 80 % power, whichever method then decides: with few
    units, or few that moved, the interval is wider than Student's.

    Their difference is taken to come out nearer to the limit, by what it does in a fifth of samples.
    """
    unlucky = normal_quantile(_POWER) * error * sqrt(pairs.units.number) * (-1 if value > null else 1)

    def shown(n: int) -> bool:
        ends = decide_units(_alike(pairs.units, n, unlucky / sqrt(n)), alpha, scale=pairs.scale.width).ci
        return ends is not None and (ends[0] > null if value > null else ends[1] < null)

    low, high = pairs.units.number, 2 * pairs.units.number
    while not shown(high):
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def _alike(units: Units, number: int, shift: float) -> Units:
    """So many units in the proportions of these, each case shifted by as much.

    Of a value that was seen t times, one in t is likely to be another one in truth: those are made to differ a little,
    as far as it matters to the choice of the method.
    """
    parts: Counter[Cluster] = Counter()
    seen = made = 0
    for (total, size), times in sorted(units.parts.items()):
        seen += times
        more = round(seen * number / units.number) - made
        made += more
        others = min(more // times, FEW_UNITS)
        parts[Cluster(total + shift * size, size)] += more - others
        for place in range(1, others + 1):
            parts[Cluster(total + (shift + place * _APART) * size, size)] += 1
    return units_from(+parts)


def _need_of_guards(decision: Decision, now: int) -> tuple[str, int | None]:
    """The open guard that needs the most cases."""
    alpha = decision.alpha / decision.family
    needs = [(guard.name, _need_of_guard(guard, now, alpha)) for guard in decision.guards if guard.state == "undecided"]
    if any(needed is None for _, needed in needs):
        return "", None
    name, most = max(needs, key=lambda need: need[1] or 0)
    return f"guard {name}", most


def _need_of_guard(guard: GuardPart, now: int, alpha: float) -> int | None:
    if guard.value is None or guard.ci is None or guard.reason:
        return None
    ends: list[float] = [guard.value, *guard.ci, guard.limit]
    if not guard.name.startswith("evaluator:"):
        if min(ends) <= 0:
            return None
        ends = list(map(log, ends))  # ratios vary on the log scale
    value, low, high, limit = ends
    reach = high - value if limit > value else value - low
    return _scaled_cases(now, reach, abs(limit - value), alpha)


def _scaled_cases(now: int, reach: float, gap: float, alpha: float) -> int | None:
    """Cases with which an interval of this reach would end within the gap, with 80 % power."""
    z = two_sided_z(1 - alpha)
    if gap <= 0 or reach <= 0:
        return None
    needed = now * ((z + normal_quantile(_POWER)) / z * reach / gap) ** 2
    return ceil(needed) if isfinite(needed) and needed < 2 * _MOST else None
