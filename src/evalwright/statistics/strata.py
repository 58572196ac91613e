"""Rates from labels that were drawn apart from the answers that a judge passes and from those that it fails."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import Interval, two_sided_z
from evalwright.statistics.rates import rate_with_design_effect

__all__ = ["StratifiedRates", "Stratum", "WeightedRate", "stratified_rates"]

_HALVINGS = 40
"""Of the range of a rate: the ends are exact to 1e-12."""


class Stratum(NamedTuple):
    """The answers to which a judge gave one verdict, and the human labels of a random sample of them."""

    judge: bool
    size: int
    """Answers, with and without a label: each of n labels stands for size/n of them."""
    labels: Sequence[bool]
    units: Sequence[Hashable]
    """The case or group of each label: labels of one are not independent of each other."""


class WeightedRate(NamedTuple):
    """A rate with its interval."""

    value: float
    ci: Interval


class StratifiedRates(NamedTuple):
    """What labels of all answers would show. `tpr` is None if people pass no answer of the sample, `tnr` if they fail
    none."""

    passed: WeightedRate
    accuracy: WeightedRate
    tpr: WeightedRate | None
    tnr: WeightedRate | None


class _Part(NamedTuple):
    """The share of all answers that a stratum has, and the share of its answers that have some property."""

    judge: bool
    weight: float
    value: float
    ends: Interval

    def inverse(self) -> _Part:
        """The share that does not have it."""
        return self._replace(value=1 - self.value, ends=(1 - self.ends[1], 1 - self.ends[0]))


def stratified_rates(strata: Sequence[Stratum], units: float, confidence: float = 0.95) -> StratifiedRates | None:
    """The rate of human passes, and a judge's accuracy, TPR and TNR, with each label weighted by size/n.

    None unless every stratum that has answers has labels. `units` is the number of independent cases that say
    as much as all answers: the cases are a sample too (double sampling for stratification, Cochran 1977, 12.2; for
    TPR and TNR Begg and Greenes 1983). The intervals of the strata (Agresti and Coull 1998) are joined by
    recovering variances (Zou and Donner 2008), so that a stratum whose labels are all alike is not taken to be
    without error; those of TPR and TNR hold the values that cannot be rejected (Donner and Zou 2012).
    """
    whole = sum(stratum.size for stratum in strata)
    parts: list[_Part] = []
    for stratum in strata:
        if not stratum.size:
            continue
        rate = rate_with_design_effect([float(label) for label in stratum.labels], stratum.units, confidence)
        if rate.rate is None:
            return None
        ends = _ends(rate.rate, rate.effective_n, two_sided_z(confidence))
        parts.append(_Part(stratum.judge, stratum.size / whole, rate.rate, ends))
    if not parts:
        return None
    inverse = [part.inverse() for part in parts]
    noise = two_sided_z(confidence) ** 2 / units
    right = [part if part.judge else other for part, other in zip(parts, inverse, strict=True)]
    return StratifiedRates(
        _sum(parts, noise), _sum(right, noise), _recall(parts, True, noise), _recall(inverse, False, noise)
    )


def _ends(rate: float, n: float, z: float) -> Interval:
    """Agresti and Coull's interval, which holds Wilson's: that covers too seldom with ten labels that are nearly all
    alike."""
    many = n + z * z
    middle = (rate * n + z * z / 2) / many
    half = z * sqrt(middle * (1 - middle) / many)
    return max(0.0, middle - half), min(1.0, middle + half)


def _sum(parts: Sequence[_Part], noise: float) -> WeightedRate:
    value, low, high = _weighted_sum(parts, [1.0] * len(parts), noise)
    return WeightedRate(value, (max(0.0, low), min(1.0, high)))


def _weighted_sum(parts: Sequence[_Part], factors: Sequence[float], noise: float) -> tuple[float, float, float]:
    """The weighted sum of the shares times their factors, with its ends."""
    terms = [(part.weight, factor, part) for part, factor in zip(parts, factors, strict=True)]
    value = fsum(weight * factor * part.value for weight, factor, part in terms)
    between = noise * fsum(weight * (factor * part.value - value) ** 2 for weight, factor, part in terms)
    below = fsum((weight * factor * (part.value - part.ends[factor < 0])) ** 2 for weight, factor, part in terms)
    above = fsum((weight * factor * (part.value - part.ends[factor >= 0])) ** 2 for weight, factor, part in terms)
    return value, value - sqrt(below + between), value + sqrt(above + between)


def _recall(parts: Sequence[_Part], verdict: bool, noise: float) -> WeightedRate | None:
    """The share of the property's answers to which the judge gave this verdict.

    It is t where the sum of (1 - t) times those with the verdict and -t times those without is 0; its interval has the
    t for which the interval of that sum holds 0.
    """
    agreement = fsum(part.weight * part.value for part in parts if part.judge is verdict)
    whole = fsum(part.weight * part.value for part in parts)
    if not whole:
        return None
    value = agreement / whole

    def rejected(t: float) -> bool:
        _, low, high = _weighted_sum(parts, [1 - t if part.judge is verdict else -t for part in parts], noise)
        return not low <= 0 <= high

    return WeightedRate(value, (_end(rejected, value, 0.0), _end(rejected, value, 1.0)))


def _end(rejected: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last value that is not rejected on the way from `inside` to `outside`."""
    if not rejected(outside):
        return outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if rejected(middle) else (middle, outside)
    return inside
