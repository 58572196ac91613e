"""Warnings where a decision errs more often than its alpha says: found by simulation, as no test could tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from evalwright.decisions.pairing import Counting, Ground
from evalwright.decisions.sides import PASS_RATE
from evalwright.model.decision import Decision

__all__ = ["approximations_of"]

_FEW_GROUPS = 8
"""With fewer effective groups, error rates only approximate those asked for."""
_MANY_TRIALS = 2
"""So many times the other side's trials are harmless."""
_FEW_RARE = 15
"""Of the side with fewer trials, so many are expected to have the rarer outcome where alpha still holds."""


def approximations_of(decision: Decision, ground: Ground, counting: Counting) -> Iterator[str]:
    """What makes the error rates of a decision approximate, one line each."""
    if decision.units < decision.n and decision.effective_units < _FEW_GROUPS:
        effective = f"{decision.effective_units:.1f} effective groups of {decision.units}"
        yield f"units: only {effective}: error rates are approximate"
    if decision.method in ("t", "sign_flip"):
        yield from _unlike_trials(ground, counting)
    if decision.method == "t" and decision.verdict == "ship" and not decision.better:
        yield from _unseen_failures(decision, ground)


def _unlike_trials(ground: Ground, counting: Counting) -> Iterator[str]:
    """Many trials per case on one side and few on the other: differences of cases are skewed then if outcomes are.

    10 cases at 90 %, 1 trial against 10: 16 % false alarms at alpha .05; 100 at 98 %: 14 %; 200 at 90 %: 5 %.
    """
    a, b = _trials_of_both(ground, counting)
    few, many, side = (a, b, "A") if a.number < b.number else (b, a, "B")
    scale = ground.scale
    if many.number <= _MANY_TRIALS * few.number or not scale.width:
        return
    mean = (few.total + many.total) / (few.number + many.number)
    share = (mean - scale.low) / scale.width
    if few.number * min(share, 1 - share) < _FEW_RARE:
        at = f"pass rate {100 * mean:.1f} %" if ground.terms.metric == PASS_RATE else f"mean {mean:.3g}"
        yield (
            f"trials: {side} has only {few.number:,}, the other side {many.number:,}, and most end alike ({at}): "
            "error rates may be three times alpha"
        )


class _Trials(NamedTuple):
    total: float
    number: int


def _trials_of_both(ground: Ground, counting: Counting) -> tuple[_Trials, _Trials]:
    """All trials of A and of B, of the cases that both sides judged."""
    shared = ground.shared()
    counted = [(*counting.of(one), *counting.of(other)) for one, other in shared.kinds]
    pairs = [(pair, n) for pair, n in zip(counted, shared.times, strict=True) if pair[1] and pair[3]]
    total_a, number_a, total_b, number_b = (sum(pair[i] * n for pair, n in pairs) for i in range(4))
    return _Trials(total_a, int(number_a)), _Trials(total_b, int(number_b))


def _unseen_failures(decision: Decision, ground: Ground) -> Iterator[str]:
    """Student's t knows only what these cases show: a loss that falls on few cases may have missed them all."""
    share = decision.margin / ground.scale.width
    chance = (1 - share) ** decision.effective_units
    if share and chance > decision.alpha / decision.family:
        of = f"{decision.n:,} cases" if decision.units == decision.n else f"{decision.units:,} groups"
        what = "failed in every trial" if ground.terms.metric == PASS_RATE else "fell from the best score to the worst"
        yield (
            f"cases: if {100 * share:.3g} % of all cases {what} with B, a sample of {of} would miss them "
            f"all with a chance of {100 * chance:.0f} %"
        )
