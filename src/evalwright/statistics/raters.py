"""Does a judge agree with people? Agreement corrected for chance, in its usual forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations
from math import fsum, sqrt
from typing import Any, NamedTuple

from evalwright.statistics.distributions import Interval, two_sided_z
from evalwright.statistics.ranks import kendall_tau_b, spearman
from evalwright.statistics.rates import wilson
from evalwright.statistics.units import require_finite

__all__ = [
    "Agreement",
    "BinaryAgreement",
    "Krippendorff",
    "agreement",
    "agreement_binary",
    "kappa_interval",
    "krippendorff_alpha",
]

Table = list[list[float]]


class Agreement(NamedTuple):
    """Two raters. Kappa is None if chance alone always agrees; values that need numbers are None for other labels."""

    n: int
    percent_agreement: float | None
    cohen_kappa: float | None
    cohen_kappa_se: float | None
    cohen_kappa_ci95: Interval | None
    cohen_kappa_linear: float | None
    cohen_kappa_quadratic: float | None
    spearman: float | None
    kendall_tau_b: float | None
    mean_bias_judge_minus_human: float | None
    krippendorff_nominal: float | None
    krippendorff_ordinal: float | None
    krippendorff_interval: float | None
    gwet_ac1: float | None
    pabak: float | None


def agreement(human: Sequence[Any], judge: Sequence[Any], labels: Sequence[Any] | None = None) -> Agreement:
    """Labels of a person and of a judge for the same items; `labels` lists them all in order, including unused ones.

    Cohen 1960 and 1968 (weights by position) with the standard error of Fleiss, Cohen and Everitt 1969; Krippendorff
    2011; Gwet 2008; prevalence-adjusted kappa (q po - 1)/(q - 1). Raises ValueError unless both have the same length.
    """
    if len(human) != len(judge):
        raise ValueError(f"expected as many labels of both, found {len(human)} and {len(judge)}")
    n = len(human)
    names = list(labels) if labels is not None else sorted({*human, *judge})
    if not n:
        return Agreement(0, *[None] * 14)
    counts = Counter(zip(human, judge, strict=True))
    table: Table = [[counts[row, column] / n for column in names] for row in names]
    po, q = fsum(table[i][i] for i in range(len(names))), len(names)
    kappa, error = _kappa_with_error(table, n)
    half = two_sided_z(0.95) * error if error is not None else 0.0
    numeric = all(isinstance(label, int | float) for label in names)
    alpha = krippendorff_alpha([list(human), list(judge)])
    return Agreement(
        n,
        po,
        kappa,
        error,
        (kappa - half, kappa + half) if kappa is not None and error is not None else None,
        _kappa(table, lambda i, j: abs(i - j)),
        _kappa(table, lambda i, j: (i - j) ** 2),
        spearman(human, judge) if numeric else None,
        kendall_tau_b(human, judge) if numeric else None,
        fsum(y - x for x, y in zip(human, judge, strict=True)) / n if numeric else None,
        alpha.nominal,
        alpha.ordinal,
        alpha.interval,
        _gwet(table),
        (q * po - 1) / (q - 1) if q > 1 else None,
    )


def _margins(table: Table) -> tuple[list[float], list[float]]:
    return [fsum(row) for row in table], [fsum(column) for column in zip(*table, strict=True)]


def _kappa(table: Table, weight: Callable[[int, int], float]) -> float | None:
    """1 - seen disagreement / disagreement by chance, weighted."""
    rows, columns = _margins(table)
    places = [(i, j) for i in range(len(rows)) for j in range(len(columns))]
    chance = fsum(weight(i, j) * rows[i] * columns[j] for i, j in places)
    return 1 - fsum(weight(i, j) * table[i][j] for i, j in places) / chance if chance > 1e-15 else None


def _kappa_with_error(table: Table, n: float) -> tuple[float | None, float | None]:
    kappa = _kappa(table, lambda i, j: float(i != j))
    if kappa is None:
        return None, None
    rows, columns = _margins(table)
    places = range(len(rows))
    chance = fsum(rows[i] * columns[i] for i in places)
    same = fsum(table[i][i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in places)
    other = fsum(table[i][j] * (columns[i] + rows[j]) ** 2 for i in places for j in places if i != j)
    variance = same + (1 - kappa) ** 2 * other - (kappa - chance * (1 - kappa)) ** 2
    return kappa, sqrt(max(0.0, variance) / n) / (1 - chance)


_ADDED = 1.0
"""Labels added to each of the four combinations: with fewer, a good judge's kappa has too narrow an interval."""


def kappa_interval(tp: float, fp: float, fn: float, tn: float) -> Interval | None:
    """The 95 % interval of Cohen's kappa of a judge's passes and failures; None where either rater says one thing only.

    That of Fleiss, Cohen and Everitt 1969 is much too narrow where few labels contradict the judge, and has no width
    where none does. So it is that of a table with one label more in each cell (after Agresti and Coull 1998), stretched
    to hold the estimate.
    """
    n = tp + fp + fn + tn
    if not all((tp + fn, fp + tn, tp + fp, fn + tn)):
        return None
    value = _kappa([[tp / n, fn / n], [fp / n, tn / n]], lambda i, j: float(i != j))
    more = n + 4 * _ADDED
    added = [[(count + _ADDED) / more for count in row] for row in ((tp, fn), (fp, tn))]
    centre, error = _kappa_with_error(added, more)
    if value is None or centre is None or error is None:
        return None
    half = two_sided_z(0.95) * error
    return max(-1.0, min(value, centre - half)), min(1.0, max(value, centre + half))


def _gwet(table: Table) -> float | None:
    rows, columns = _margins(table)
    shares = [(row + column) / 2 for row, column in zip(rows, columns, strict=True)]
    chance = fsum(p * (1 - p) for p in shares) / (len(shares) - 1) if len(shares) > 1 else 0.0
    return (fsum(table[i][i] for i in range(len(rows))) - chance) / (1 - chance) if chance < 1 else None


class BinaryAgreement(NamedTuple):
    """A judge's passes and failures against a person's; kappa falls when one label is rare, AC1 does not."""

    accuracy: float | None
    sensitivity_tpr: float | None
    specificity_tnr: float | None
    precision: float | None
    f1: float | None
    mcc: float | None
    cohen_kappa: float | None
    gwet_ac1: float | None
    balanced_accuracy: float | None
    youden_j: float | None
    tpr_ci_wilson: Interval | None
    tnr_ci_wilson: Interval | None


def agreement_binary(tp: float, fp: float, fn: float, tn: float) -> BinaryAgreement:
    """The confusion table of a judge, the person's label being the reference and pass the positive one."""
    n, positive, negative, judged_positive = tp + fp + fn + tn, tp + fn, tn + fp, tp + fp
    if not n:
        return BinaryAgreement(*[None] * 12)
    tpr = tp / positive if positive else None
    tnr = tn / negative if negative else None
    both = None if tpr is None or tnr is None else tpr + tnr
    table = [[tp / n, fn / n], [fp / n, tn / n]]
    square = judged_positive * positive * negative * (n - judged_positive)
    return BinaryAgreement(
        (tp + tn) / n,
        tpr,
        tnr,
        tp / judged_positive if judged_positive else None,
        2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None,
        (tp * tn - fp * fn) / sqrt(square) if square else None,
        _kappa(table, lambda i, j: float(i != j)),
        _gwet(table),
        None if both is None else both / 2,
        None if both is None else both - 1,
        wilson(tp, positive),
        wilson(tn, negative),
    )


class Krippendorff(NamedTuple):
    """Krippendorff's alpha by level of measurement; None without disagreement by chance."""

    nominal: float | None
    ordinal: float | None
    interval: float | None


def krippendorff_alpha(ratings: Sequence[Sequence[Any]]) -> Krippendorff:
    """Raters in rows, units in columns, None where a rater gave no rating (Krippendorff 2011).

    Units with one rating do not count; the upper levels are None for labels that are not numbers.
    Raises ValueError for numbers that are not finite.
    """
    seen: dict[tuple[Any, Any], float] = {}
    for unit in zip(*ratings, strict=True):
        values = [value for value in unit if value is not None]
        for pair in permutations(values, 2):
            seen[pair] = seen.get(pair, 0.0) + 1 / (len(values) - 1)
    weights: dict[Any, list[float]] = {}
    for (x, _), weight in seen.items():
        weights.setdefault(x, []).append(weight)
    totals = {value: fsum(weights_of_value) for value, weights_of_value in weights.items()}
    if len(totals) < 2:
        return Krippendorff(None, None, None)
    n = fsum(totals.values())
    apart = fsum(weight for (x, y), weight in seen.items() if x != y)
    nominal = 1 - (n - 1) * apart / (n * n - fsum(total * total for total in totals.values()))
    if not all(isinstance(value, int | float) for value in totals):
        return Krippendorff(nominal, None, None)
    require_finite(totals)
    return Krippendorff(nominal, _alpha(seen, totals, _ranks(totals)), _alpha(seen, totals, {x: x for x in totals}))


def _alpha(seen: dict[tuple[Any, Any], float], totals: dict[Any, float], places: dict[Any, float]) -> float:
    """Alpha for squared distances. Those of all pairs add up to their squares around the mean, twice n times."""
    n = fsum(totals.values())
    mean = fsum(total * places[x] for x, total in totals.items()) / n
    chance = 2 * n * fsum(total * (places[x] - mean) ** 2 for x, total in totals.items())
    disagreement = fsum(weight * (places[x] - places[y]) ** 2 for (x, y), weight in seen.items())
    return 1 - (n - 1) * disagreement / chance


def _ranks(totals: dict[Any, float]) -> dict[Any, float]:
    """The mean rank of each value: the ordinal distance of two values is the squared difference of their ranks."""
    ranks, below = {}, 0.0
    for value in sorted(totals):
        ranks[value] = below + totals[value] / 2
        below += totals[value]
    return ranks
