"""Cases that changed between two sides, and how many an unchanged system would show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import fsum

from evalwright.decisions.pairing import Counting, SharedCases, shared_cases
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.model.decision import ChangedPart, ShiftedCase
from evalwright.statistics.changes import changed_cases, flip_chance
from evalwright.statistics.paired import mcnemar, mcnemar_interval
from evalwright.statistics.sequences import changed_pairs_e_value

__all__ = ["changed_counts", "changed_part"]

_NUMBER = re.compile("([0-9]+)")
_Q = 0.1
_TRIALS = 4
"""With fewer trials a side, a change of a single case is shown only if nearly all cases change, or the other side has
many."""


_Table = tuple[int, int, int, int]
"""Passed trials and trials of A, and of B."""


def changed_part(shared: SharedCases, counting: Counting, alpha: float | None = None) -> ChangedPart:
    """Changed cases, largest change first, those beyond noise apart. A case without a verdict on one side is left out.

    With `alpha`, given where cases are no groups, pairs of single trials are tested together.
    """
    tables = [_table(*kind, counting) for kind in shared.kinds]
    judged = shared.only([n > 0 and m > 0 for _, n, _, m in tables])
    gains = [y * n - x * m for x, n, y, m in tables]
    part = ChangedPart(
        worse=_largest_first(judged.only([gain < 0 for gain in gains]), tables),
        better=_largest_first(judged.only([gain > 0 for gain in gains]), tables),
    )
    part.flipped = len(part.worse) + len(part.better)
    kinds = [(table, times) for table, times in zip(tables, judged.times, strict=True) if times]
    if any(n > 1 or m > 1 for (_, n, _, m), _ in kinds):
        part.flipped_expected = fsum(flip_chance(*table) * times for table, times in kinds)
        cases, of = judged.listed()
        part.beyond_noise = _beyond_noise(cases, [tables[kind] for kind in of])
        part.too_few_trials = not part.beyond_noise and all(min(n, m) < _TRIALS for (_, n, _, m), _ in kinds)
    elif alpha is not None and part.flipped:
        both = sum(times for (x, _, y, _), times in kinds if x and y)
        _evidence(part, both, sum(judged.times), alpha)
    return part


def _largest_first(changed: SharedCases, tables: Sequence[_Table]) -> list[str]:
    """Case names by how much their share of passed trials changed, then in natural order: `c2` before `c10`."""

    def order(one: tuple[str, int]) -> tuple[float, list[tuple[int, str]], str]:
        name, kind = one
        x, n, y, m = tables[kind]
        return -round(abs(y / m - x / n), 9), _natural(name), name

    return [name for name, _ in sorted(zip(*changed.listed(), strict=True), key=order)]


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that orders numbers within names by value."""
    texts_and_numbers = enumerate(_NUMBER.split(name))
    return [(len(part.lstrip("0")), part.lstrip("0")) if place % 2 else (0, part) for place, part in texts_and_numbers]


def changed_counts(a: SideCounts, b: SideCounts) -> tuple[int, int, float | None]:
    """How many of the cases that both sides judged are worse in B, how many better, and the mean change of their shares
    of passed trials; None without such cases."""
    shared = shared_cases(a.passes, b.passes)
    tables = [(_table(*kind, Counting()), times) for kind, times in zip(shared.kinds, shared.times, strict=True)]
    changes = [(y / m - x / n, times) for (x, n, y, m), times in tables if n and m]
    cases = sum(times for _, times in changes)
    worse = sum(times for change, times in changes if change < 0)
    better = sum(times for change, times in changes if change > 0)
    return worse, better, fsum(change * times for change, times in changes) / cases if cases else None


def _table(one: CaseTotal, other: CaseTotal, counting: Counting) -> _Table:
    (passed, n), (passed_b, m) = counting.of(one), counting.of(other)
    return int(passed), n, int(passed_b), m


def _evidence(part: ChangedPart, both_pass: int, n: int, alpha: float) -> None:
    """The combined evidence of the cases that changed."""
    worse, better = len(part.worse), len(part.better)
    rest = n - worse - better - both_pass
    exact = mcnemar_interval(both_pass, worse, better, rest, alpha)
    part.b_won, part.b_won_ci = exact.share_b_of_changed, exact.share_ci
    part.chance_b_better = mcnemar(both_pass, worse, better, rest).posterior_prob_b_better
    part.e_value = changed_pairs_e_value(worse, better, alpha).e_value


def _beyond_noise(names: Sequence[str], tables: Sequence[_Table]) -> list[ShiftedCase]:
    cases = changed_cases([(x, n) for x, n, _, _ in tables], [(y, m) for _, _, y, m in tables], _Q)
    return [ShiftedCase(names[place], cases.p_values[place], cases.q_values[place]) for place in cases.changed]
