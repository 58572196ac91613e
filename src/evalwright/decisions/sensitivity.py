"""What a decision would be if the trials without verdict had one: all failed, all passed, and the two extremes."""

from __future__ import annotations

from collections.abc import Mapping

from evalwright.decisions.pairing import Counting, Ground, Pairs, ValueRange
from evalwright.decisions.sides import CaseTotal
from evalwright.model.decision import Answer, Bound, ErrorCounts, ErrorPart
from evalwright.statistics.missing import error_bounds

__all__ = ["error_part"]


def error_part(ground: Ground, verdict: Answer) -> ErrorPart:
    """Count the errors; where there are any, decide again with all of them failed and with all passed."""
    a, b = ground.outcomes()
    part = ErrorPart(_counts(a), _counts(b), ground.terms.errors)
    errors = any((part.a.target, part.a.evaluator, part.b.target, part.b.evaluator))
    shares = _shares(ground, errors).difference(ground.alpha)
    part.share_difference, part.ci = shares.difference, shares.ci
    if not errors:
        return part
    low, high = ground.scale.low, ground.scale.high
    worst = Counting(low, low)
    # Where errors are the product's own, those of the system are failures in every reading.
    best = Counting(low if ground.terms.errors == "fail" else high, high)
    part.all_failed, part.all_passed = _bound(ground, worst, worst), _bound(ground, best, best)
    part.lowest, part.highest = _extremes(ground)
    bounds = [part.all_failed, part.all_passed]
    if ground.terms.errors == "strict":
        bounds += [_bound(ground, best, worst), _bound(ground, worst, best)]
    part.same_verdict = all(bound.verdict == verdict for bound in bounds)
    return part


def _extremes(ground: Ground) -> tuple[float | None, float | None]:
    """The lowest and the highest difference that the errors allow."""
    a, b = ground.outcomes()
    cases = [case for case in a if case in b and case not in ground.left_out]
    found = error_bounds(*([_triple(side[case], ground) for case in cases] for side in (a, b)))
    width = ground.scale.width
    return tuple(None if end is None else end * width for end in (found.lowest, found.highest))  # type: ignore[return-value]


def _triple(outcome: CaseTotal, ground: Ground) -> tuple[float, int, int]:
    """Total on a scale from 0 to 1, trials with a verdict, trials without; errors that count as failures have one."""
    scale, failed = ground.scale, outcome.target_errors if ground.terms.errors == "fail" else 0
    total = (outcome.total - scale.low * outcome.judged) / scale.width if scale.width else 0.0
    return total, outcome.judged + failed, _errors(outcome) - failed


def _bound(ground: Ground, one: Counting, other: Counting) -> Bound:
    found = ground.decided(ground.pairs(one, other))
    return Bound(found.difference, found.ci, found.verdict)


def _counts(outcomes: Mapping[str, CaseTotal]) -> ErrorCounts:
    erred = [one for one in outcomes.values() if one.target_errors or one.evaluator_errors]
    return ErrorCounts(sum(one.target_errors for one in erred), sum(one.evaluator_errors for one in erred))


def _shares(ground: Ground, errors: bool) -> Pairs:
    """The share of trials that erred, by case."""
    a, b = ground.outcomes()
    if not errors:  # as mostly: nothing is to be divided
        judged = {case for case, other in b.items() if other.judged}
        cases = [case for case, one in a.items() if one.judged and case in judged and case not in ground.left_out]
        single = all(a[case].judged == b[case].judged == 1 for case in cases)
        return Pairs(cases, [0.0] * len(cases), ground.units(cases), single, ValueRange())
    shared = [(case, one, b[case]) for case, one in a.items() if case in b and case not in ground.left_out]
    tried = [(case, one, other) for case, one, other in shared if _trials(one) and _trials(other)]
    cases = [case for case, _, _ in tried]
    differences = [_errors(other) / _trials(other) - _errors(one) / _trials(one) for _, one, other in tried]
    single = all(_trials(one) == _trials(other) == 1 for _, one, other in tried)
    return Pairs(cases, differences, ground.units(cases), single, ValueRange())


def _errors(outcome: CaseTotal) -> int:
    return outcome.target_errors + outcome.evaluator_errors


def _trials(outcome: CaseTotal) -> int:
    return outcome.judged + _errors(outcome)
