"""Repeated trials of a task: at least one of k succeeds (pass@k), all of k succeed (pass^k)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, fsum, sqrt
from typing import NamedTuple

from evalwright.statistics.means import mean_of, variance_of

__all__ = [
    "PassK",
    "RepeatedRuns",
    "pass_at_k",
    "pass_at_k_table",
    "pass_hat_k",
    "repeated_runs",
    "share_at_k",
    "share_hat_k",
    "within_variance",
]


class PassK(NamedTuple):
    """Both estimates for one task; None when there were fewer than k trials."""

    pass_at_k: float | None
    pass_hat_k: float | None


def share_at_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate of pass@k from c successes in n >= k trials: 1 - C(n-c, k)/C(n, k) (Chen et al. 2021)."""
    return 1.0 - comb(n - c, k) / comb(n, k)


def share_hat_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate of pass^k from c successes in n >= k trials: C(c, k)/C(n, k) (Yao et al. 2024)."""
    return comb(c, k) / comb(n, k)


def within_variance(cases: Iterable[tuple[float, int]]) -> float:
    """Mean variance of a trial within a case, from (passed, judged) trials by case.

    Where no case ran twice it is the variance of the rate, which is at least as large; without cases, the variance at
    one half.
    """
    judged = [(passed / trials, trials) for passed, trials in cases if trials]
    several = [p * (1 - p) * trials / (trials - 1) for p, trials in judged if trials > 1]
    if several:
        return fsum(several) / len(several)
    rate = fsum(p for p, _ in judged) / len(judged) if judged else 0.5
    return rate * (1 - rate)


def pass_at_k(n: int, c: int, k: int) -> PassK:
    """pass@k and pass^k of one task. Raises ValueError unless 0 <= c <= n and k >= 1."""
    _check(n, c, k)
    return PassK(None, None) if k > n else PassK(share_at_k(n, c, k), share_hat_k(n, c, k))


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """pass^k of one task, None when k > n."""
    return pass_at_k(n, c, k).pass_hat_k


def pass_at_k_table(tasks_n_c: Sequence[tuple[int, int]], k: Iterable[int]) -> dict[str, object]:
    """Both estimates for several k, per task and as means over the tasks with at least k trials.

    The `plugin_*_biased` values, 1-(1-c/n)^k and (c/n)^k, are given to be recognised, not to be used.
    """
    table: dict[str, object] = {}
    for size in k:
        enough = [(n, c) for n, c in tasks_n_c if n >= size]
        for name, estimate, biased in (("at", share_at_k, _plugin_at), ("hat", share_hat_k, _plugin_hat)):
            values = [estimate(n, c, size) for n, c in enough]
            table[f"pass_{name}_{size}_per_task"] = [pass_at_k(n, c, size)[name == "hat"] for n, c in tasks_n_c]
            table[f"pass_{name}_{size}"] = mean_of(values)
            table[f"pass_{name}_{size}_se_over_tasks"] = _standard_error(values)
            table[f"plugin_pass_{name}_{size}_biased"] = mean_of([biased(c / n, size) for n, c in enough])
    return table


class RepeatedRuns(NamedTuple):
    """Where the spread of a mean over repeated cases comes from."""

    mean: float | None
    se_over_case_means: float | None
    within_case_variance: float | None
    between_case_variance_unclipped: float | None
    between_case_variance: float | None
    share_of_se2_due_to_repeats: float | None
    icc1: float | None
    case_pass_share: list[float]
    flaky_cases: list[int]
    """Positions of the cases whose scores differ from trial to trial."""


def repeated_runs(scores_by_case: Sequence[Sequence[float]]) -> RepeatedRuns:
    """Repeats are averaged inside their case; case means are the observations (Miller 2024, section 3.1).

    Var(mean) = (between + within/K)/N, K the harmonic mean of the numbers of trials. What needs repeats is None
    unless every case has two. Raises ValueError for a case without scores.
    """
    if not all(scores_by_case):
        raise ValueError("expected scores of every case, found a case without any")
    means = [sum(scores) / len(scores) for scores in scores_by_case]
    flaky = [i for i, scores in enumerate(scores_by_case) if min(scores) != max(scores)]
    error, total = _standard_error(means), variance_of(means)
    variances = [value for scores in scores_by_case if (value := variance_of(scores)) is not None]
    if total is None or len(variances) < len(means):
        return RepeatedRuns(mean_of(means), error, None, None, None, None, None, means, flaky)
    within = sum(variances) / len(variances)
    repeats = within * sum(1 / len(scores) for scores in scores_by_case) / len(means)
    between = max(0.0, total - repeats)
    return RepeatedRuns(
        mean_of(means),
        error,
        within,
        total - repeats,
        between,
        repeats / total if total else None,
        between / (between + within) if between + within else None,
        means,
        flaky,
    )


def _plugin_at(p: float, k: int) -> float:
    return 1.0 - (1.0 - p) ** k


def _plugin_hat(p: float, k: int) -> float:
    return float(p**k)


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"expected 0 <= c <= n and k >= 1, found n={n}, c={c}, k={k}")


def _standard_error(values: Sequence[float]) -> float | None:
    variance = variance_of(values)
    return None if variance is None else sqrt(variance / len(values))
