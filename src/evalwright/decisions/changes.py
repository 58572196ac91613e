"""Cases that changed between two sides, and how many an unchanged system would show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import fsum

from evalwright.decisions.pairing import Counting
from evalwright.decisions.sides import CaseTotal
from evalwright.model.decision import ChangedPart, ShiftedCase
from evalwright.statistics.changes import changed_cases, flip_chance
from evalwright.statistics.paired import mcnemar, mcnemar_interval
from evalwright.statistics.sequences import changed_pairs_e_value

__all__ = ["changed_part"]

_Q = 0.1
_TRIALS = 4
"""Fewer trials a side show no change of a single case, whatever they came to."""


_Table = tuple[int, int, int, int]
"""Passed trials and trials of A, and of B."""


def changed_part(
    a: Mapping[str, CaseTotal],
    b: Mapping[str, CaseTotal],
    left_out: Collection[str],
    counting: Counting,
    alpha: float | None = None,
) -> ChangedPart:
    """Changed cases by name, those beyond noise apart. A case without verdict on a side is none of them.

    With `alpha`, given where cases are no groups, pairs of single trials are tested together.
    """
    names: list[str] = []
    tables: list[_Table] = []
    part = ChangedPart()
    for case, one in a.items():
        other = b.get(case)
        if other is None or case in left_out:
            continue
        passed, n, passed_b, m = one.total, one.judged, other.total, other.judged
        if one.target_errors or one.evaluator_errors:
            passed, n = counting.of(one)
        if other.target_errors or other.evaluator_errors:
            passed_b, m = counting.of(other)
        if n and m:
            names.append(case)
            tables.append((int(passed), n, int(passed_b), m))
            if (before := int(passed) * m) != (after := int(passed_b) * n):
                (part.worse if after < before else part.better).append(case)
    part.worse.sort()
    part.better.sort()
    part.flipped = len(part.worse) + len(part.better)
    kinds = Counter(tables)
    if any(n > 1 or m > 1 for _, n, _, m in kinds):
        part.flipped_expected = fsum(flip_chance(*table) * times for table, times in kinds.items())
        part.too_few_trials = all(min(n, m) < _TRIALS for _, n, _, m in kinds)
        part.beyond_noise = _beyond_noise(names, tables)
    elif alpha is not None and part.flipped:
        both = sum(times for (x, _, y, _), times in kinds.items() if x and y)
        _evidence(part, both, len(tables), alpha)
    return part


def _evidence(part: ChangedPart, both_pass: int, n: int, alpha: float) -> None:
    """What the cases that changed say together."""
    worse, better = len(part.worse), len(part.better)
    rest = n - worse - better - both_pass
    exact = mcnemar_interval(both_pass, worse, better, rest, alpha)
    part.b_won, part.b_won_ci = exact.share_b_of_changed, exact.share_ci
    part.chance_b_better = mcnemar(both_pass, worse, better, rest).posterior_prob_b_better
    part.e_value = changed_pairs_e_value(worse, better, alpha).e_value


def _beyond_noise(names: Sequence[str], tables: Sequence[_Table]) -> list[ShiftedCase]:
    found = changed_cases([(x, n) for x, n, _, _ in tables], [(y, m) for _, _, y, m in tables], _Q)
    return [ShiftedCase(names[place], found.p_values[place], found.q_values[place]) for place in found.changed]
