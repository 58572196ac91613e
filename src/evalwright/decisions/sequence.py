"""A run that is decided while it works: each unit is bet on once, in an order that was fixed before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from evalwright.decisions.engine import EXIT_CODES, decision_of
from evalwright.decisions.identity import Identity
from evalwright.decisions.looks import difference_ends
from evalwright.decisions.pairing import CaseGroups, ValueRange
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Terms
from evalwright.errors import counted
from evalwright.model.decision import ALL_LOOKED_AT, BETTING, Decision, DecisionVerdict
from evalwright.model.plan import UntilDecided
from evalwright.model.result import Status
from evalwright.statistics.sequences import BettingWager

__all__ = ["Bet", "UnitSequence"]


class Bet(msgspec.Struct, frozen=True):
    """One unit: the least and greatest difference that it can have, its size, and the capitals after it.

    Its size counts the cases with trials on both sides.
    """

    cases: list[str]
    least: float
    greatest: float
    weight: float
    log_capital_above: float
    log_capital_below: float


class UnitSequence:
    """Units in their order, the cells that each still waits for, and the bets so far.

    An error counts as the worst value for what is bet on: as failed of B where B is to be shown as good, as passed
    where it is to be shown as worse, and of A the other way round. A case without any trial on one side is not bet on.
    """

    def __init__(
        self,
        terms: UntilDecided,
        units: Sequence[Sequence[str]],
        cells: int,
        before: Mapping[str, CaseTotal] | None,
        largest: int,
        earlier: Sequence[Bet] = (),
        beyond: int = 0,
    ) -> None:
        self.terms: UntilDecided = terms
        self.units: Sequence[Sequence[str]] = units
        self.largest: int = largest
        self.earlier: Sequence[Bet] = earlier
        self.all_units: int = len(units) + beyond
        """Includes the units that the run is not to look at."""
        self._unit_of = {case: place for place, cases in enumerate(units) for case in cases}
        self._left = [len(cases) * cells for cases in units]
        self._after: dict[str, CaseTotal] = {}
        self._before: dict[str, CaseTotal] = dict(before or {})
        # A is known from a stored run: cells of this one are B's even if both have the same name
        self._sides = {terms.variant_b: self._after}
        if before is None:
            self._sides[terms.variant_a] = self._before
        self._wager, self._better = BettingWager(terms.margin, terms.alpha), BettingWager(0.0, terms.alpha)
        self.bets: list[Bet] = []
        self.looked: int = 0
        """Units that were looked at in this run, in their order; there is no bet on one without any trial."""
        for bet in earlier:
            self._bet(bet.least, bet.greatest, bet.weight)

    @property
    def verdict(self) -> str | None:
        """`ship` or `dont` once it is decided."""
        return self._wager.verdict

    @property
    def over(self) -> bool:
        """Whether nothing is left to look at or to decide."""
        return self.verdict is not None or self.looked == len(self.units)

    def count(self, case: str, variant: str, status: Status) -> None:
        """Count one more verdict; units that are now complete are bet on in their order, until it is decided."""
        place = self._unit_of.get(case)
        if place is None or variant not in self._sides:
            return
        outcome = self._sides[variant].setdefault(case, CaseTotal())
        if status == "error":
            outcome.target_errors += 1
        elif status != "skip":
            outcome.judged += 1
            outcome.total += status == "pass"
        self._left[place] -= 1
        while not self.over and self._left[self.looked] <= 0:
            self._look(self.units[self.looked])

    def _look(self, cases: Sequence[str]) -> None:
        self.looked += 1
        ends = difference_ends(cases, self._before, self._after, ValueRange())
        if ends is None:
            return
        least, greatest, judged = ends
        weight = judged / self.largest
        self._bet(least, greatest, weight)
        self.bets.append(Bet(list(cases), least, greatest, weight, self._wager.above, self._wager.below))

    def _bet(self, least: float, greatest: float, weight: float) -> None:
        self._wager.add(least, greatest, weight)
        self._better.add(least, greatest, weight)

    def decision(self, groups: Mapping[str, str]) -> Decision:
        """The decision after the bets so far; its interval is valid at any time, and no other is shown."""
        terms = self.terms
        cases = {case for bet in self.bets for case in bet.cases}
        sides = [SideCounts(name, passes=_only(passes, cases)) for name, passes in self._named_sides()]
        plain_terms = Terms(margin=terms.margin, alpha=terms.alpha)
        known = CaseGroups({case: group for case, group in groups.items() if case in cases})
        decision = decision_of(sides[0], sides[1], plain_terms, Identity(shared=len(cases)), known)
        if self.earlier:
            bets = [*self.earlier, *self.bets]
            middles = sum(bet.weight * (bet.least + bet.greatest) / 2 for bet in bets)
            decision.difference = middles / sum(bet.weight for bet in bets)
        decision.verdict = _answer(self.verdict)
        decision.reasons = [] if self.verdict else ["data"]
        if not self.verdict and self.looked == self.all_units:
            decision.reasons.append(ALL_LOOKED_AT)
        decision.exit_code = EXIT_CODES[decision.verdict]
        decision.method, decision.ci = BETTING, self._wager.interval() if self.bets or self.earlier else None
        decision.p_margin, decision.p_better = self._wager.p_value, self._better.p_value
        decision.a.ci = decision.b.ci = None
        decision.errors.all_failed = decision.errors.all_passed = decision.next = None
        decision.errors.same_verdict = True
        decision.warnings.append(f"valid at any time: {self._progress()}")
        if any((decision.errors.a.target, decision.errors.b.target)):
            decision.warnings.append("errors count as the worst that they could have been")
        return decision

    def _named_sides(self) -> list[tuple[str, Mapping[str, CaseTotal]]]:
        return [(self.terms.variant_a, self._before), (self.terms.variant_b, self._after)]

    def _progress(self) -> str:
        """How much of the suite was looked at."""
        earlier = f", and {len(self.earlier):,} of {self.terms.continues}" if self.earlier else ""
        return f"looked at {self.looked:,} of {counted(self.all_units, 'unit')}{earlier}"


def _answer(verdict: str | None) -> DecisionVerdict:
    return "ship" if verdict == "ship" else "dont" if verdict == "dont" else "undecided"


def _only(outcomes: Mapping[str, CaseTotal], cases: Collection[str]) -> dict[str, CaseTotal]:
    return {case: outcome for case, outcome in outcomes.items() if case in cases}
