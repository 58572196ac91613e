"""What the decision would be if the trials without a verdict had one: all failed, all passed, and the two extremes.

They have none because something broke, or because the run is not finished: a planned trial that was not run is missing
like one that erred.
"""

from __future__ import annotations

from collections.abc import Mapping

from evalwright.decisions.kinds import tallied
from evalwright.decisions.pairing import Counting, Ground, Pairs, ValueRange
from evalwright.decisions.sides import CaseTotal
from evalwright.decisions.terms import Terms
from evalwright.model.decision import Bound, DecisionVerdict, ErrorCounts, ErrorPart
from evalwright.statistics.missing import error_bounds

__all__ = ["error_counts", "error_part", "readings"]


def error_part(ground: Ground, verdict: DecisionVerdict) -> ErrorPart:
    """Count the trials without a verdict; if there are any, decide again with all of them failed and all passed."""
    a, b = ground.outcomes()
    part = ErrorPart(error_counts(a), error_counts(b), ground.terms.errors)
    shares = _shares(ground).difference(ground.alpha)
    part.share_difference, part.ci = shares.difference, shares.ci
    if not part.missing:
        return part
    bounds = [_bound(ground, *reading) for reading in readings(ground.terms, ground.scale)]
    part.all_failed, part.all_passed, *_ = bounds
    part.lowest, part.highest = _extremes(ground)
    part.same_verdict = all(bound.verdict == verdict for bound in bounds)
    return part


def readings(terms: Terms, scale: ValueRange) -> list[tuple[Counting, Counting]]:
    """What trials of A and of B without a verdict may have been: all failed, all passed, then both extremes if strict.

    A conclusion stands only if it is the same in each.
    """
    low, high = scale.low, scale.high
    worst = Counting(low, low, low)
    # Where errors are the product's own, those of the system are failures in every reading.
    best = Counting(low if terms.errors == "fail" else high, high, high)
    extremes = [(best, worst), (worst, best)] if terms.errors == "strict" else []
    return [(worst, worst), (best, best), *extremes]


def _extremes(ground: Ground) -> tuple[float | None, float | None]:
    """The lowest and the highest difference that the trials without a verdict allow."""
    shared = ground.shared()
    a, b = ([_triple(kind[side], ground) for kind in shared.kinds] for side in (0, 1))
    bounds = error_bounds(a, b, shared.times)
    width = ground.scale.width
    return tuple(None if end is None else end * width for end in (bounds.lowest, bounds.highest))  # type: ignore[return-value]


def _triple(outcome: CaseTotal, ground: Ground) -> tuple[float, int, int]:
    """Total on a scale from 0 to 1, trials with a verdict, trials without; errors that count as failures have one."""
    scale, failed = ground.scale, outcome.target_errors if ground.terms.errors == "fail" else 0
    total = (outcome.total - scale.low * outcome.judged) / scale.width if scale.width else 0.0
    return total, outcome.judged + failed, _errors(outcome) + outcome.not_run - failed


def _bound(ground: Ground, one: Counting, other: Counting) -> Bound:
    decided = ground.decided(ground.pairs(one, other))
    return Bound(decided.difference, decided.ci, decided.verdict)


def error_counts(outcomes: Mapping[str, CaseTotal]) -> ErrorCounts:
    """The trials of one side without a verdict."""
    counts = tallied(outcomes)
    return ErrorCounts(
        sum(kind.target_errors * n for kind, n in counts),
        sum(kind.evaluator_errors * n for kind, n in counts),
        sum(kind.not_run * n for kind, n in counts),
    )


def _shares(ground: Ground) -> Pairs:
    """The share of trials that erred, by case."""
    shared = ground.shared()
    tried = [(one, other) if _trials(one) and _trials(other) else None for one, other in shared.kinds]
    values = [None if kind is None else _share(kind[1]) - _share(kind[0]) for kind in tried]
    single = all(_trials(kind[0]) == _trials(kind[1]) == 1 for kind in tried if kind is not None)
    return ground.differences(shared, values, ValueRange(), single=single)


def _share(outcome: CaseTotal) -> float:
    return _errors(outcome) / _trials(outcome)


def _errors(outcome: CaseTotal) -> int:
    return outcome.target_errors + outcome.evaluator_errors


def _trials(outcome: CaseTotal) -> int:
    return outcome.judged + _errors(outcome)
