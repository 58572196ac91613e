"""Is the later of two runs no worse than the earlier one? A decision with its error rate, by case.

A trial without verdict, because the system or an evaluator broke, is missing: it is in no rate and no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Literal, NamedTuple

import msgspec

from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict
from evalwright.scoring.facts import ResultFacts, TraceFacts
from evalwright.scoring.newest import newest_cells
from evalwright.scoring.verdict import cell_status, names_needed
from evalwright.statistics.corrections import adjust_p_values
from evalwright.statistics.differences import DecidedDifference, decide_difference

__all__ = ["PASS_RATE", "Correction", "Finding", "Measured", "decide_pairs", "measured"]

PASS_RATE = "pass_rate"
Correction = Literal["holm", "bh", "none"]
Verdict = Literal["accepted", "rejected", "undecided"]
_ADJUSTED = {"holm": "holm_adjusted", "bh": "benjamini_hochberg_adjusted"}


class Measured(NamedTuple):
    """One variant of one run: the values of each case's judged trials, and how many trials have none."""

    values: Mapping[str, Sequence[float]]
    errors: Mapping[str, int]
    groups: Mapping[str, str]


class Finding(NamedTuple):
    """The decision about one variant."""

    verdict: Verdict
    found: DecidedDifference | None
    """None where no case was judged on both sides."""
    p: float | None
    """Two-sided, of a difference of exactly -margin, adjusted for the number of variants."""
    errors: tuple[int, int]
    """Trials without verdict, before and after."""
    undecided_by: str = ""
    """`data`, or `errors` where counting errors as failures or as passes would turn the verdict."""


def measured(reader: RunReader, plan: Plan, variant: str, metric: str) -> Measured:
    """What one variant of a run came to, as pass or failure, or by the score of one evaluator."""
    values: dict[str, list[float]] = {}
    errors: dict[str, int] = {}
    groups: dict[str, str] = {}
    value_of = _value_by_verdict(reader, plan) if metric == PASS_RATE else _value_by_score(metric)
    for trace, rows in newest_cells(reader):
        if trace.variant_name != variant:
            continue
        case = trace.case_key
        if trace.group is not msgspec.UNSET:
            groups[case] = trace.group
        value = value_of(trace, rows)
        if value is None:
            errors[case] = errors.get(case, 0) + 1
        elif value is not msgspec.UNSET:
            values.setdefault(case, []).append(value)
    return Measured(values, errors, groups)


_Value = Callable[[TraceFacts, Collection[ResultFacts]], float | msgspec.UnsetType | None]
"""A cell's value; None for an error, UNSET where it was skipped."""


def _value_by_verdict(reader: RunReader, plan: Plan) -> _Value:
    needed = names_needed(reader, plan)
    stored = {(v.case_key, v.variant_name, v.trial, v.attempt): v.status for v in reader.verdicts(CaseVerdict)}

    def value(trace: TraceFacts, rows: Collection[ResultFacts]) -> float | msgspec.UnsetType | None:
        key = (trace.case_key, trace.variant_name, trace.trial, trace.attempt)
        status = stored.get(key) or cell_status(plan.pass_criteria, needed, trace.error is not None, rows)
        broken = trace.error is not None or any(row.error is not None for row in rows)
        if status == "error" or (broken and status in ("fail", "borderline")):
            return None
        return msgspec.UNSET if status == "skip" else float(status == "pass")

    return value


def _value_by_score(evaluator: str) -> _Value:
    def value(trace: TraceFacts, rows: Collection[ResultFacts]) -> float | msgspec.UnsetType | None:
        row = next((row for row in rows if row.evaluator == evaluator), None)
        if row is None or row.error is not None or trace.error is not None:
            return None
        return msgspec.UNSET if row.skipped or row.score is None else row.score

    return value


def decide_pairs(
    pairs: Sequence[tuple[Measured, Measured]], *, margin: float, alpha: float, correction: Correction
) -> list[Finding]:
    """A decision for each pair of sides (before, after), all of them together at `alpha`."""
    plain = [_found(one, other, margin, alpha) for one, other in pairs]
    ps = _adjusted([None if found is None else found.p_margin for found in plain], correction)
    parts = []
    for (one, other), found, p in zip(pairs, plain, ps, strict=True):
        verdict, by = _verdict(found, p, margin, alpha), ""
        errors = (sum(one.errors.values()), sum(other.errors.values()))
        if verdict == "undecided":
            by = "data"
        elif any(errors):
            bounds = [_bounded(one, other, which, margin, alpha) for which in (0, 1)]
            if any(_verdict(bound, bound and bound.p_margin, margin, alpha) != verdict for bound in bounds):
                verdict, by = "undecided", "errors"
        parts.append(Finding(verdict, found, p, errors, by))
    return parts


def _verdict(found: DecidedDifference | None, p: float | None, margin: float, alpha: float) -> Verdict:
    if found is None or found.difference is None or p is None or p > alpha:
        return "undecided"
    return "accepted" if found.difference > -margin else "rejected"


def _adjusted(ps: Sequence[float | None], correction: Correction) -> Iterator[float | None]:
    known = [p for p in ps if p is not None]
    values: Iterable[float] = known if correction == "none" else adjust_p_values(known)[_ADJUSTED[correction]]
    rest = iter(values)
    return (None if p is None else float(next(rest)) for p in ps)


def _bounded(one: Measured, other: Measured, which: int, margin: float, alpha: float) -> DecidedDifference | None:
    """The difference with all errors counted as the least (0) or the greatest (1) value that was seen."""
    seen = [value for side in (one, other) for values in side.values.values() for value in values]
    value = max([1.0, *seen]) if which else min([0.0, *seen])

    def counted(side: Measured) -> Measured:
        cases = dict.fromkeys([*side.values, *side.errors])
        return side._replace(
            values={case: [*side.values.get(case, ()), *[value] * side.errors.get(case, 0)] for case in cases}
        )

    return _found(counted(one), counted(other), margin, alpha)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _found(one: Measured, other: Measured, margin: float, alpha: float) -> DecidedDifference | None:
    """Over the cases that both sides judged."""
    shared = [case for case in one.values if case in other.values]
    groups = {**one.groups, **other.groups}
    values = [value for side in (one, other) for case in shared for value in side.values[case]]
    single = len(values) == 2 * len(shared) and all(value in (0.0, 1.0) for value in values)
    scale = max(1.0, max(values) - min(values)) if values else 1.0
    if not shared:
        return None
    return decide_difference(
        [_mean(other.values[case]) - _mean(one.values[case]) for case in shared],
        [groups.get(case, (case,)) for case in shared] if groups else None,
        alpha=alpha,
        margin=margin,
        one_trial=single,
        scale=scale,
    )
