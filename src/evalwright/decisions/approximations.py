"""Warnings where a decision errs more often than its alpha says: found by simulation, as no test could tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from evalwright.decisions.pairing import Counting, Ground, Pairs
from evalwright.decisions.sides import PASS_RATE
from evalwright.errors import apart_from, counted
from evalwright.model.decision import Decision
from evalwright.statistics.rare_losses import rare_loss_risk
from evalwright.statistics.units import Cluster, units_from

__all__ = ["approximations_of"]

_FEW_GROUPS = 8
"""With fewer effective groups, error rates only approximate those asked for."""
_MANY_TRIALS = 2
"""So many times the other side's trials are harmless."""
_OF_A_SAMPLE = ("t", "sign_flip", "guarded", "mcnemar")
"""Methods for which the cases are a sample, of a size that their results did not decide."""
_GUARDED = ("guarded", "mcnemar")
"""Those of them whose interval has pseudo-units."""
_FEW_RARE = 15
"""Of the side with fewer trials, so many are expected to have the rarer outcome where alpha still holds."""


def approximations_of(decision: Decision, ground: Ground, counting: Counting, pairs: Pairs) -> Iterator[str]:
    """What makes the error rates of a decision approximate, one line each."""
    if decision.units < decision.n and decision.effective_units < _FEW_GROUPS:
        effective, groups = f"{decision.effective_units:.1f}", decision.units
        few = counted(groups, "group")
        if effective != f"{groups:.1f}":  # of unequal size
            few = f"{effective} effective groups of {groups}"
        yield f"units: only {few}: error rates are approximate"
    # what a guard, a slice or errors have decided does not turn with the difference
    if decision.method in _OF_A_SAMPLE and decision.verdict == ground.verdict(decision.ci) != "undecided":
        yield from _turning_skips(decision, ground)
    if decision.method in ("t", "sign_flip"):
        yield from _unlike_trials(ground, counting)
    if decision.method in _OF_A_SAMPLE and decision.verdict == "ship":
        yield from _rare_losses(decision, ground, counting, pairs)
    if decision.method in _OF_A_SAMPLE:
        yield from _rare_gains(decision, ground, counting, pairs)


def _turning_skips(decision: Decision, ground: Ground) -> Iterator[str]:
    """Skipped trials count for nothing, which is wrong if one side skips what it would fail.

    B is 10 points worse, and skips 70 % of all that it would fail: 16 to 55 % false SHIP of 60 to 200 cases, and 100 %
    if it skips all.
    """
    shared = ground.shared()
    times = [n if one.judged or other.judged else 0 for (one, other), n in zip(shared.kinds, shared.times, strict=True)]
    skips = [sum(kind[side].skipped * n for kind, n in zip(shared.kinds, times, strict=True)) for side in (0, 1)]
    if not any(skips):
        return
    decided = ground.decided(ground.pairs_of_skips())
    if decided.verdict != decision.verdict and decided.difference is not None:
        points = ground.terms.metric == PASS_RATE
        change = f"{100 * decided.difference:+.1f} pp" if points else f"{decided.difference:+.3g}"
        failed = "failed" if points else "got the worst score"
        yield (
            f"skipped: {skips[0]:,} of A's trials and {skips[1]:,} of B's count for nothing; if they had {failed}, "
            f"B − A would be {change.replace('-', '−')}, and the verdict another"
        )


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


def _rare_losses(decision: Decision, ground: Ground, counting: Counting, pairs: Pairs) -> Iterator[str]:
    """A loss that falls on few cases may have missed them all, or all but few, and the others vary too little to tell.

    B fails 2 % of 200 cases, and a fifth of the others in 1 trial of 10: 8 % false SHIP at alpha .05, not 2.5 %; 5 %
    if an interval only counts that such a loss would have shown less often than alpha. B falls to 0 in 3 % of 50 cases
    and gains 0.027 in the others: 20 % false "better".
    """
    if decision.ci is None or decision.difference is None:
        return
    low, fall = decision.ci[0], max(_means_of_a(ground, counting), default=ground.scale.low) - ground.scale.low
    if fall <= 0:
        return
    # All the others gained if B is shown to be better: the loss that would undo that is not the margin.
    gain, margin = (decision.difference, 0.0) if low > 0 else (0.0, decision.margin)
    width, guarded = ground.scale.width, decision.method in _GUARDED
    risk = rare_loss_risk(pairs.units, low, margin, ground.alpha, width, gain=gain, fall=fall, guarded=guarded)
    if risk > ground.alpha:
        share = (gain + margin) / (gain + fall)
        what = "failed in every trial" if ground.terms.metric == PASS_RATE else "fell from the best score to the worst"
        otherwise = "otherwise gain as much as these" if gain else "otherwise vary as little as these"
        then = ", B would be no better, and" if gain else " with B,"
        yield (
            f"cases: if {100 * share:.3g} % of all cases {what}{then} {_sample(decision)} that {otherwise} "
            f"would show an interval as good as this with a chance of {_chance(risk, ground)} %"
        )


def _rare_gains(decision: Decision, ground: Ground, counting: Counting, pairs: Pairs) -> Iterator[str]:
    """The mirror image, where B is shown to be worse: a gain on few cases that would make up for the loss of the rest.

    B rises from 0 to 1 in 3 % of 50 cases and loses 0.03 in the others: 21 % false "worse".
    """
    if decision.ci is None or decision.difference is None or decision.ci[1] >= 0:
        return
    high, loss = decision.ci[1], -decision.difference
    rise = ground.scale.high - min(_means_of_a(ground, counting), default=ground.scale.high)
    if rise <= 0:
        return
    margin = decision.margin if high < -decision.margin else 0.0
    mirrored = units_from({Cluster(-unit.total, unit.size): times for unit, times in pairs.units.parts.items()})
    width, guarded = ground.scale.width, decision.method in _GUARDED
    risk = rare_loss_risk(mirrored, -high, -margin, ground.alpha, width, gain=loss, fall=rise, guarded=guarded)
    if risk > ground.alpha:
        share = (loss - margin) / (loss + rise)
        what = "passed in every trial" if ground.terms.metric == PASS_RATE else "rose from the worst score to the best"
        no_worse = "no worse than the margin" if margin else "no worse"
        yield (
            f"cases: if {100 * share:.3g} % of all cases {what}, B would be {no_worse}, and {_sample(decision)} that "
            f"otherwise lose as much as these would show an interval as bad as this with a chance of "
            f"{_chance(risk, ground)} %"
        )


def _sample(decision: Decision) -> str:
    return counted(decision.n, "case") if decision.units == decision.n else counted(decision.units, "group")


def _chance(risk: float, ground: Ground) -> str:
    return apart_from(100 * ground.alpha, 100 * risk, 2)


def _means_of_a(ground: Ground, counting: Counting) -> list[float]:
    """Of the cases of A, from which B can fall no further, and rise no further, than to an end of the scale."""
    shared = ground.shared()
    kinds = [counting.of(one) for (one, _), n in zip(shared.kinds, shared.times, strict=True) if n]
    return [total / trials for total, trials in kinds if trials]
