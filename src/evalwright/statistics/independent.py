"""Two shares from different cases: is B higher? Every difference is B - A."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import log_beta, log_choose, normal_two_sided, root_of, two_sided_z
from evalwright.statistics.proportions import Interval, wilson

__all__ = ["TwoProportions", "two_proportions"]

_Share = tuple[int, int]


class TwoProportions(NamedTuple):
    """Two independent shares; `ci_newcombe` and `p_fisher` are the ones to use."""

    diff_b_minus_a: float | None
    ci_newcombe: Interval | None
    ci_miettinen_nurminen_score: Interval | None
    z_pooled: float | None
    p_z_pooled: float | None
    p_fisher: float
    prob_b_better_uniform_priors: float


def two_proportions(a: Sequence[int], b: Sequence[int], confidence: float = 0.95) -> TwoProportions:
    """Two shares, each given as (successes, n), of different cases. Raises ValueError unless 0 <= successes <= n.

    Newcombe 1998 (hybrid score), Miettinen and Nurminen 1985, pooled z, Fisher's exact test, and P(B > A) with
    uniform priors (Bowyer, Aitchison and Ivanova 2025, arXiv 2503.01747). Where a side is empty, all but the last
    two are None.
    """
    one, other = _checked(a), _checked(b)
    fisher, better = _fisher(one, other), _prob_better(one, other)
    ends_a, ends_b = wilson(*one, confidence), wilson(*other, confidence)
    if ends_a is None or ends_b is None:
        return TwoProportions(None, None, None, None, None, fisher, better)
    p_a, p_b = one[0] / one[1], other[0] / other[1]
    difference = p_b - p_a
    below = sqrt((p_b - ends_b[0]) ** 2 + (ends_a[1] - p_a) ** 2)
    above = sqrt((ends_b[1] - p_b) ** 2 + (p_a - ends_a[0]) ** 2)
    pooled = (one[0] + other[0]) / (one[1] + other[1])
    error = sqrt(pooled * (1 - pooled) * (1 / one[1] + 1 / other[1]))
    z = difference / error if error else None
    return TwoProportions(
        difference,
        (difference - below, difference + above),
        _score_interval(one, other, two_sided_z(confidence)),
        z,
        None if z is None else normal_two_sided(z),
        fisher,
        better,
    )


def _checked(share: Sequence[int]) -> _Share:
    successes, n = share
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 <= successes <= n, found {successes} of {n}")
    return successes, n


def _score_interval(a: _Share, b: _Share, z: float) -> Interval:
    """The differences that the score test with its n/(n-1) correction does not refuse.

    statsmodels up to 0.14.6 gives others: its restricted estimate has a wrong coefficient (its issue 10269).
    """
    observed = b[0] / b[1] - a[0] / a[1]
    low = root_of(lambda d: z - _score(a, b, d), -1.0, observed)
    high = root_of(lambda d: -z - _score(a, b, d), observed, 1.0)
    return low, high


def _score(a: _Share, b: _Share, difference: float) -> float:
    """The score statistic of p_B - p_A = `difference`; falls from left to right."""
    p_a = _restricted(a, b, difference)
    p_b = min(1.0, max(0.0, p_a + difference))
    n = a[1] + b[1]
    variance = (p_a * (1 - p_a) / a[1] + p_b * (1 - p_b) / b[1]) * n / (n - 1)
    gap = b[0] / b[1] - a[0] / a[1] - difference
    if variance <= 0:
        return 0.0 if gap == 0 else gap * 1e300
    return gap / sqrt(variance)


def _restricted(a: _Share, b: _Share, difference: float) -> float:
    """The likeliest p_A when p_B = p_A + `difference`: where the likelihood's slope, which falls, is zero."""
    low, high = max(0.0, -difference), min(1.0, 1.0 - difference)

    def falling(p: float) -> float:
        q = p + difference
        up = _over(a[0], p) + _over(b[0], q)
        return up - _over(a[1] - a[0], 1 - p) - _over(b[1] - b[0], 1 - q)

    return root_of(lambda p: -falling(p), low, high)


def _over(count: int, p: float) -> float:
    return count / max(p, 1e-300) if count else 0.0


def _fisher(a: _Share, b: _Share) -> float:
    """Two-sided: the sum over all tables with these margins that are no likelier than the one seen."""
    passed, n = a[0] + b[0], a[1] + b[1]
    whole = log_choose(n, passed)
    tables = range(max(0, passed - b[1]), min(passed, a[1]) + 1)
    masses = [exp(log_choose(a[1], k) + log_choose(b[1], passed - k) - whole) for k in tables]
    seen = masses[a[0] - tables.start] * (1 + 1e-7)
    return min(1.0, fsum(mass for mass in masses if mass <= seen))


def _prob_better(a: _Share, b: _Share) -> float:
    """P(p_B > p_A) for Beta posteriors, in closed form: a sum over the successes of B."""
    wins_a, losses_a = a[0] + 1, a[1] - a[0] + 1
    losses_b = b[1] - b[0] + 1
    whole = log_beta(wins_a, losses_a)
    terms = (
        exp(log_beta(wins_a + i, losses_a + losses_b) - log_beta(1 + i, losses_b) - whole) / (losses_b + i)
        for i in range(b[0] + 1)
    )
    return min(1.0, fsum(terms))
