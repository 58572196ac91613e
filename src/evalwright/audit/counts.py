"""Counts what became of the mutants, by mutation and by evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evalwright.audit.bench import JudgedTrace
from evalwright.audit.mutants import Mutant
from evalwright.audit.mutations import MUTATIONS
from evalwright.model.audit import EvaluatorAudit, MutationAudit, Survivor
from evalwright.model.calibration import Share
from evalwright.model.result import FAILED
from evalwright.model.trace import Trace
from evalwright.statistics.rates import rate_of_cases

__all__ = ["AuditedTrace", "Counts"]


@dataclass(slots=True)
class _Rate:
    """How many of each case's mutants were caught: those of one case, or of one group, are not independent.

    The rate is the mean over cases, as in pass rates.
    """

    cases: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def add(self, case: str, caught: bool) -> None:
        hits, of = self.cases.get(case, (0, 0))
        self.cases[case] = hits + caught, of + 1

    def share(self, groups: Mapping[str, str]) -> Share:
        rate = rate_of_cases(self.cases, groups)
        return Share(rate.rate, sum(of for _, of in self.cases.values()), rate.ci)


@dataclass(slots=True)
class _Mutation:
    rate: _Rate = field(default_factory=_Rate)
    survived: int = 0
    errors: int = 0
    not_applicable: int = 0


@dataclass(slots=True)
class _Evaluator:
    rate: _Rate = field(default_factory=_Rate)
    errors: int = 0
    changes: int = 0


class AuditedTrace(NamedTuple):
    """What the evaluators found in a trace and in its mutants; None for those that would be the same trace."""

    trace: Trace
    passed: bool
    """In the run."""
    before: JudgedTrace
    mutants: Sequence[tuple[Mutant, JudgedTrace | None]]


class Counts:
    """What is known so far."""

    def __init__(self) -> None:
        self.traces: int = 0
        self.not_passing: int = 0
        self.unjudged: int = 0
        self.survivors: list[Survivor] = []
        self.error_example: str = ""
        self._all = _Rate()
        self._groups: dict[str, str] = {}
        self._mutations = {name: _Mutation() for name in MUTATIONS}
        self._evaluators: dict[str, _Evaluator] = {}

    def add(self, audited: AuditedTrace) -> None:
        """A trace, and its mutants if it passed."""
        trace, before = audited.trace, audited.before
        if audited.passed and not before.passes:
            error = _error_in(before)
            self.unjudged += bool(error)
            self.not_passing += not error
            self.error_example = self.error_example or error
            return
        if isinstance(trace.group, str):
            self._groups[trace.case_key] = trace.group
        self.traces += bool(audited.mutants)
        self._add_changes(before)
        for mutant, judged in audited.mutants:
            if judged is None:
                self._mutations[mutant.mutation].not_applicable += 1
            else:
                self._add_mutant(trace, mutant, judged)
                self._add_changes(judged)
                self._add_results(trace.case_key, before, judged)

    def _add_mutant(self, trace: Trace, mutant: Mutant, judged: JudgedTrace) -> None:
        counted = self._mutations[mutant.mutation]
        if judged.status == "error":
            counted.errors += 1
            self.error_example = self.error_example or _error_in(judged)
            return
        caught = judged.status in FAILED
        counted.rate.add(trace.case_key, caught)
        self._all.add(trace.case_key, caught)
        if not caught:
            counted.survived += 1
            whose = trace.case_key, trace.variant_name, trace.trial
            self.survivors.append(Survivor(*whose, mutant.mutation, mutant.change))

    def _add_changes(self, judged: JudgedTrace) -> None:
        """An evaluator with an error leaves a trace without a verdict: it decided nothing there."""
        for name, status in judged.without.items():
            counts = self._evaluators.setdefault(name, _Evaluator())
            counts.changes += judged.status != "error" and status != judged.status

    def _add_results(self, case: str, before: JudgedTrace, judged: JudgedTrace) -> None:
        passed = {row.evaluator for row in before.results if row.status == "pass"}
        for row in judged.results:
            if row.evaluator in passed:
                counts = self._evaluators[row.evaluator]
                if row.error is not None:
                    counts.errors += 1
                else:
                    counts.rate.add(case, row.status in FAILED)

    def mutations(self) -> list[MutationAudit]:
        return [
            MutationAudit(
                name,
                share := mutation.rate.share(self._groups),
                share.n + mutation.errors,
                mutation.survived,
                mutation.errors,
                mutation.not_applicable,
            )
            for name, mutation in self._mutations.items()
        ]

    def evaluators(self) -> list[EvaluatorAudit]:
        return [
            EvaluatorAudit(
                name,
                share := evaluator.rate.share(self._groups),
                share.n + evaluator.errors,
                evaluator.errors,
                evaluator.changes,
            )
            for name, evaluator in self._evaluators.items()
        ]

    def caught(self) -> Share:
        """Of all mutants with a verdict."""
        return self._all.share(self._groups)


def _error_in(judged: JudgedTrace) -> str:
    return next((f"{row.evaluator}: {row.error.message}" for row in judged.results if row.error is not None), "")
