"""Which cases changed beyond noise, and how often a case contradicts itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, exp, fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.corrections import false_discovery
from evalwright.statistics.distributions import Interval, log_choose
from evalwright.statistics.means import t_interval, variance_of

__all__ = [
    "ChangedCases",
    "FlakeRate",
    "changed_cases",
    "fisher_exact",
    "flake_rate",
    "flip_chance",
    "flip_chance_at",
    "flipping_share",
]

_SLACK = 1 + 1e-7
"""Tables as likely as the one seen count as such, in spite of rounding."""


class FlakeRate(NamedTuple):
    """The chance that two trials of one case disagree, over the cases with two trials."""

    rate: float | None
    se: float | None
    ci: Interval | None
    mixed_cases: int


def flake_rate(passed: Sequence[int], trials: Sequence[int], confidence: float = 0.95) -> FlakeRate:
    """Mean over cases of 2c(K - c)/(K(K - 1)) for c of K passed trials; Student's t over cases, within 0..1.

    Raises ValueError unless there is a number of trials for each number of passed ones.
    """
    rates = [2 * c * (k - c) / (k * (k - 1)) for c, k in zip(passed, trials, strict=True) if k > 1]
    mixed = sum(0 < c < k for c, k in zip(passed, trials, strict=True))
    variance = variance_of(rates)
    if variance is None:
        return FlakeRate(rates[0] if rates else None, None, None, mixed)
    rate, error = fsum(rates) / len(rates), sqrt(variance / len(rates))
    ends = t_interval(rate, error, len(rates) - 1, confidence)
    return FlakeRate(rate, error, ends and (max(0.0, ends[0]), min(1.0, ends[1])), mixed)


class ChangedCases(NamedTuple):
    """The test of each case, and the places of those that changed."""

    p_values: list[float]
    q_values: list[float]
    changed: list[int]


def changed_cases(a: Sequence[Sequence[int]], b: Sequence[Sequence[int]], q: float = 0.1) -> ChangedCases:
    """Fisher's exact test of (passed, trials) of each case, adjusted for their number (Benjamini and Hochberg 1995).

    At most a share `q` of the cases named as changed is expected not to be. Raises ValueError for unequal lengths.
    """
    known: dict[tuple[int, int, int, int], float] = {}
    tables = [(one[0], one[1], other[0], other[1]) for one, other in zip(a, b, strict=True)]
    for table in tables:
        if table not in known:
            known[table] = fisher_exact(*table)
    ps = [known[table] for table in tables]
    qs = false_discovery(ps)
    return ChangedCases(ps, qs, [place for place, value in enumerate(qs) if value <= q])


def fisher_exact(passed_a: int, trials_a: int, passed_b: int, trials_b: int) -> float:
    """Two-sided p of equal rates: the chance of every table that is at most as likely as this one (Fisher 1935)."""
    passed, trials = passed_a + passed_b, trials_a + trials_b
    whole = log_choose(trials, passed)
    chances = [
        exp(log_choose(trials_a, k) + log_choose(trials_b, passed - k) - whole)
        for k in range(max(0, passed - trials_b), min(trials_a, passed) + 1)
    ]
    mine = chances[passed_a - max(0, passed - trials_b)]
    return min(1.0, fsum(chance for chance in chances if chance <= mine * _SLACK))


def flip_chance(passed_a: int, trials_a: int, passed_b: int, trials_b: int) -> float:
    """The chance that two draws of so many trials from an unchanged case, at the pooled rate, have different shares."""
    return flip_chance_at((passed_a + passed_b) / (trials_a + trials_b), trials_a, trials_b)


def flip_chance_at(rate: float, trials_a: int, trials_b: int) -> float:
    """The same for a case that passes at a known rate."""
    if rate in (0.0, 1.0):
        return 0.0
    same = fsum(
        _mass(k, trials_a, rate) * _mass(k * trials_b // trials_a, trials_b, rate)
        for k in range(trials_a + 1)
        if k * trials_b % trials_a == 0
    )
    return max(0.0, 1 - same)


def flipping_share(shares: Mapping[float, int], trials: int) -> float:
    """The share of cases that two draws of so many trials show as changed, from the number of cases with each rate."""
    number = sum(shares.values())
    return fsum(n * flip_chance_at(rate, trials, trials) for rate, n in shares.items()) / number if number else 0.0


def _mass(k: int, n: int, p: float) -> float:
    return comb(n, k) * p**k * (1 - p) ** (n - k) if n < 1000 else exp(log_choose(n, k)) * p**k * (1 - p) ** (n - k)
