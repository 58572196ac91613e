"""Answers judged in pairs: which system wins, and does the order of presentation decide?"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, log, sqrt
from typing import NamedTuple

from evalwright.statistics.distributions import binomial_two_sided_half
from evalwright.statistics.means import mean_of, variance_of

__all__ = ["BradleyTerry", "PairwiseSwap", "bradley_terry", "pairwise_swap"]


class PairwiseSwap(NamedTuple):
    """A wins a pair only if it wins in both orders; everything else is a tie."""

    n: int
    consistency_rate: float | None
    wins_a: int
    wins_b: int
    ties: int
    win_rate_b_ties_half: float | None
    win_rate_b_se: float | None
    p_sign_test_excluding_ties: float
    first_position_win_share: float | None
    prefers_first: int
    prefers_second: int
    p_position_bias: float


def pairwise_swap(order_ab: Sequence[str], order_ba: Sequence[str]) -> PairwiseSwap:
    """Winners `A`, `B` or `tie` of each pair, shown with A first and with B first (Zheng et al. 2023, 2306.05685).

    Position bias: exact binomial test on the pairs whose winner flips with the order (Wang et al. 2023, 2305.17926).
    Raises ValueError unless both are of one length.
    """
    if len(order_ab) != len(order_ba):
        raise ValueError(f"expected as many verdicts of both orders, found {len(order_ab)} and {len(order_ba)}")
    pairs = list(zip(order_ab, order_ba, strict=True))
    wins_a, wins_b = pairs.count(("A", "A")), pairs.count(("B", "B"))
    first, second = pairs.count(("A", "B")), pairs.count(("B", "A"))
    points = [1.0 if pair == ("B", "B") else 0.0 if pair == ("A", "A") else 0.5 for pair in pairs]
    variance, n = variance_of(points), len(pairs)
    decided = sum(winner in "AB" for pair in pairs for winner in pair)
    first_won = order_ab.count("A") + order_ba.count("B")
    return PairwiseSwap(
        n,
        sum(one == other for one, other in pairs) / n if n else None,
        wins_a,
        wins_b,
        n - wins_a - wins_b,
        mean_of(points),
        None if variance is None else sqrt(variance / n),
        binomial_two_sided_half(wins_a, wins_a + wins_b),
        first_won / decided if decided else None,
        first,
        second,
        binomial_two_sided_half(first, first + second),
    )


class BradleyTerry(NamedTuple):
    """Strengths with mean 0, in the order of the names; None when they have no maximum."""

    log_strength_centred: list[float] | None
    elo_scale_centred: list[float] | None
    """The strengths times 400/ln 10."""


def bradley_terry(names: Sequence[str], wins: Sequence[Sequence[float]]) -> BradleyTerry:
    """Likeliest strengths when `wins[i][j]` times i beat j (Bradley and Terry 1952; Zermelo's iteration).

    There is a maximum only when every system can be reached from every other by wins (Ford 1957).
    Raises ValueError unless the table is as large as the names.
    """
    n = len(names)
    if len(wins) != n or any(len(row) != n for row in wins):
        raise ValueError(f"expected a table of {n} by {n} wins")
    if not n or not _is_connected(wins):
        return BradleyTerry(None, None)
    strengths = [1.0] * n
    for _ in range(10_000):
        before = strengths
        strengths = [_improved_strength(i, before, wins) for i in range(n)]
        scale = exp(fsum(map(log, strengths)) / n)
        strengths = [strength / scale for strength in strengths]
        if max(abs(log(new / old)) for new, old in zip(strengths, before, strict=True)) < 1e-13:
            break
    centred = [log(strength) for strength in strengths]
    return BradleyTerry(centred, [400 / log(10) * value for value in centred])


def _improved_strength(i: int, strengths: Sequence[float], wins: Sequence[Sequence[float]]) -> float:
    others = [j for j in range(len(strengths)) if j != i]
    if not others:
        return 1.0
    won = fsum(wins[i][j] for j in others)
    return won / fsum((wins[i][j] + wins[j][i]) / (strengths[i] + strengths[j]) for j in others)


def _is_connected(wins: Sequence[Sequence[float]]) -> bool:
    """Whether all can be reached from the first one, and the first one from all, along wins."""
    return all(len(_reachable(table)) == len(wins) for table in (wins, list(zip(*wins, strict=True))))


def _reachable(wins: Sequence[Sequence[float]]) -> set[int]:
    reached, waiting = {0}, [0]
    while waiting:
        winner = waiting.pop()
        beaten = {loser for loser, number in enumerate(wins[winner]) if number > 0} - reached
        reached |= beaten
        waiting += beaten
    return reached
