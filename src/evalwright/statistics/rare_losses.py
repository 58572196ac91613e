"""How often a loss that falls wholly on a few units looks like none, because many samples hold too few of them."""

from __future__ import annotations

from math import fsum, sqrt

from evalwright.statistics.distributions import binomial_mass, normal_cdf, t_quantile
from evalwright.statistics.units import Units

__all__ = ["rare_loss_risk"]

_FAR = 8
"""So many standard deviations above its mean, and as many units, no number of losses is to be expected."""
_ROUNDING = 1e-9
"""What the same interval may differ by if it is computed in another order."""


def rare_loss_risk(
    units: Units,
    low: float,
    margin: float,
    alpha: float,
    scale: float = 1.0,
    *,
    gain: float = 0.0,
    fall: float | None = None,
    guarded: bool = False,
) -> float:
    """The chance of an interval with a lower end of `low` or more if B lost exactly `margin`, because a share of the
    units, (`gain` + margin)/(gain + fall), falls by `fall` (None: by the whole `scale`) while all others gain `gain`.

    With the `low` that was seen, it is the p-value of such a loss; with -`margin`, the chance that the interval misses
    it; 0 if all units would have to fall by more. All other units vary about `gain` as much as those of `units` above
    it do, for a gain is no loss, and as many losses are noise. The interval is Student's t, or `guarded`, of the level
    1 - alpha. Where noise is large, the chance of missing the loss is alpha/2. Raises ValueError without units.
    """
    if not units.n:
        raise ValueError("expected values, found none")
    above = [(unit.total - gain * unit.size, unit.size, times) for unit, times in units.parts.items()]
    noise = 2 * fsum(times * total**2 / size for total, size, times in above if total > 0) / units.n / scale**2
    n, end, others, drop = round(units.effective), low / scale, gain / scale, (scale if fall is None else fall) / scale
    limit = (others + margin / scale) / (others + drop)
    if limit >= 1:
        return 0.0
    t = t_quantile(1 - alpha / 2, units.df)
    added = 2 if guarded else 0

    def shown(lost: int) -> float:
        weight = n + added
        centre = ((n - lost) * others - lost * drop) / weight
        squares = n * noise + (n - lost) * others**2 + lost * drop**2 + added
        variance = (squares / weight - centre**2) / max(1, weight - (not guarded))
        room = centre - end - t * sqrt(max(0.0, variance))
        return normal_cdf(room / sqrt(noise / n)) if noise else float(room > -_ROUNDING)

    most = min(n, round(limit * n + _FAR * sqrt(limit * n) + _FAR))
    return fsum(binomial_mass(lost, n, limit) * shown(lost) for lost in range(most + 1))
