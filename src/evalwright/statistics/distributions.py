"""The few distribution functions that the interpreter lacks, so that nothing heavy is imported for them.

`NormalDist` of the standard library would do for the normal ones; importing it takes 20 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import erfc, exp, lgamma, log, log1p, pi, sqrt

__all__ = [
    "Interval",
    "beta_cdf",
    "beta_quantile",
    "binomial_cdf",
    "binomial_mass",
    "binomial_two_sided_half",
    "log_beta",
    "log_choose",
    "noncentral_t_above",
    "normal_cdf",
    "normal_quantile",
    "normal_two_sided",
    "root_of",
    "smooth_root",
    "t_cdf",
    "t_quantile",
    "t_two_sided",
    "two_sided_z",
]

Interval = tuple[float, float]
"""The lower and the upper end."""

_TINY = 1e-300


def normal_cdf(x: float) -> float:
    return erfc(-x / sqrt(2)) / 2


def normal_two_sided(z: float) -> float:
    """P(|Z| >= |z|) for a standard normal Z."""
    return erfc(abs(z) / sqrt(2))


def normal_quantile(p: float) -> float:
    """The x with P(Z <= x) = p. Raises ValueError unless 0 < p < 1.

    A rational start (Abramowitz and Stegun 26.2.23), then Halley's steps on the lower tail.
    """
    if not 0 < p < 1:
        raise ValueError(f"expected 0 < p < 1, found {p}")
    tail = min(p, 1 - p)
    t = sqrt(-2 * log(tail))
    x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    for _ in range(3):
        step = (normal_cdf(x) - tail) * sqrt(2 * pi) * exp(x * x / 2)
        x -= step / (1 + x * step / 2)
    return x if p <= 0.5 else -x


@cache
def two_sided_z(confidence: float) -> float:
    """The normal quantile of a two-sided interval: 1.96 for 0.95. Raises ValueError unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"expected 0 < confidence < 1, found {confidence}")
    return -normal_quantile((1 - confidence) / 2)


def log_beta(a: float, b: float) -> float:
    """Logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(X <= x) for X ~ Beta(a, b): the regularised incomplete beta function.

    Continued fraction evaluated by Lentz's method (DLMF 8.17.22).
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(a * log(x) + b * log1p(-x) - log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return min(1.0, front * _fraction(x, a, b) / a)
    return max(0.0, 1.0 - front * _fraction(1 - x, b, a) / b)


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    total, tiny = d, _TINY
    for m in range(1, 1000 + int(10 * sqrt(max(a, b)))):  # about sqrt(max(a, b)) steps are needed
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        # `_nonzero` four times, written out: large runs go through this loop ten thousand times
        d, c = 1 + even * d, 1 + even / c
        d, c = 1 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
        total *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 + odd * d, 1 + odd / c
        d, c = 1 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
        step = d * c
        total *= step
        if abs(step - 1) < 1e-15:
            break
    return total


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with P(X <= x) = p for X ~ Beta(a, b)."""
    return root_of(lambda x: beta_cdf(x, a, b) - p, 0.0, 1.0)


def t_two_sided(t: float, df: float) -> float:
    """P(|T| >= |t|) for Student's T with `df` degrees of freedom."""
    if abs(t) < 0.5:  # df / (df + t²) would round to 1; from the other side, a p this large loses no digits
        return 1 - beta_cdf(t * t / (df + t * t), 0.5, df / 2)
    return beta_cdf(df / (df + t * t), df / 2, 0.5)


def t_cdf(t: float, df: float) -> float:
    """P(T <= t) for Student's T with `df` degrees of freedom."""
    tail = t_two_sided(t, df) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=64)  # power is found in steps that need the same ones
def t_quantile(p: float, df: float) -> float:
    """The x with P(T <= x) = p. Raises ValueError unless 0 < p < 1."""
    if not 0 < p < 1:
        raise ValueError(f"expected 0 < p < 1, found {p}")
    wanted = log(_nonzero(2 * min(p, 1 - p)))  # far out, tails differ by powers of ten
    size = smooth_root(lambda t: wanted - log(_nonzero(t_two_sided(t, df))), 0.0, 2.0)
    return size if p >= 0.5 else -size


def noncentral_t_above(t: float, df: float, shift: float) -> float:
    """P(T > t) for noncentral T with `df` degrees of freedom.

    Simpson's rule over the spread of the estimated standard deviation (Johnson, Kotz and Balakrishnan 1995, 31).
    """
    reach = 9 / sqrt(2 * df)
    low, high = max(1e-9, 1 - reach), 1 + reach
    steps = 120 if reach < 1 else 600  # few leave no error where the density vanishes at both ends
    width = (high - low) / steps
    front = log(2) + df / 2 * log(df / 2) - lgamma(df / 2)
    total = 0.0
    for i in range(steps + 1):
        s = low + i * width
        density = exp(front + (df - 1) * log(s) - df * s * s / 2)
        total += (1 if i in (0, steps) else 4 if i % 2 else 2) * density * normal_cdf(shift - t * s)
    return min(1.0, total * width / 3)


def binomial_mass(k: int, n: int, p: float) -> float:
    """P(X = k) for X ~ Binomial(n, p)."""
    if not 0 <= k <= n:
        return 0.0
    if p <= 0 or p >= 1:
        return float(k == (0 if p <= 0 else n))
    return exp(log_choose(n, k) + k * log(p) + (n - k) * log1p(-p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k) for X ~ Binomial(n, p)."""
    if k < 0:
        return 0.0
    return 1.0 if k >= n else beta_cdf(1 - p, n - k, k + 1)


def binomial_two_sided_half(k: int, n: int) -> float:
    """Two-sided exact p-value of k successes in n tries against 1/2; 1 without tries."""
    return min(1.0, 2 * binomial_cdf(min(k, n - k), n, 0.5)) if n else 1.0


def root_of(rising: Callable[[float], float], low: float, high: float, steps: int = 200) -> float:
    """Where a rising function crosses zero between `low` and `high`, by bisection: with 200 steps to the last bit."""
    for _ in range(steps):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def smooth_root(rising: Callable[[float], float], low: float, high: float) -> float:
    """As `root_of`, of a smooth function, in about ten evaluations: the Illinois method (Dowell and Jarratt 1971).

    `high` is doubled until the function is positive there.
    """
    below, above = rising(low), rising(high)
    while above < 0:
        low, below, high = high, above, 2 * high
        above = rising(high)
    if below >= 0:
        return low
    kept, chosen = 0, high
    for _ in range(100):
        chosen = (low * above - high * below) / (above - below)
        value = rising(chosen)
        if value == 0 or abs(value) < 1e-14 or high - low < 1e-13 * max(1.0, abs(high)):
            break
        if value < 0:
            low, below, above, kept = chosen, value, above / 2 if kept < 0 else above, -1
        else:
            high, above, below, kept = chosen, value, below / 2 if kept > 0 else below, 1
    return chosen
