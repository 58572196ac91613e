"""Whether two runs had the same cases and evaluators, or some that changed under the same name."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from evalwright.model.decision import IdentityPart
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case, case_digest, evaluator_digests

__all__ = ["Identity", "identity_of", "identity_of_cases", "some_names"]

_LISTED = 10


class Identity(msgspec.Struct):
    """What changed between two runs besides their systems."""

    cases: list[str] = []
    evaluators: list[str] = []
    alone: list[str] = []
    """Evaluators of one run only: adding one changes what a pass means."""
    shared: int = 0
    """Cases that both runs have."""
    checked: bool = True
    """Whether both runs have the hashes to tell: a folder written by another program does not."""

    def part(self, a_only: list[str], b_only: list[str]) -> IdentityPart:
        return IdentityPart(self.cases, self.evaluators, a_only, b_only)


def identity_of(reader_a: RunReader, plan_a: Plan, reader_b: RunReader, plan_b: Plan) -> Identity:
    """Compare the cases and evaluators that both runs have, by name."""
    if reader_a.plan is None or reader_b.plan is None:
        return Identity(checked=False)
    if (same := getattr(reader_a, "has_cases_of", None)) is not None and same(reader_b):
        return Identity([], *_changed_evaluators(plan_a, plan_b), plan_b.cases_total)
    return identity_of_cases(reader_a, plan_a, reader_b.cases(), plan_b)


def identity_of_cases(reader_a: RunReader, plan_a: Plan, cases_b: Iterable[Case], plan_b: Plan) -> Identity:
    """As `identity_of`, for a run B that has not begun; A may be from another program that left no hashes."""
    if reader_a.plan is None:
        return Identity(checked=False)
    known = {case.key: _hash(case) for case in reader_a.cases()}
    cases, shared = [], 0
    for case in cases_b:
        before = known.get(case.key)
        shared += before is not None
        if before is not None and before != _hash(case):
            cases.append(case.key)
    return Identity(cases, *_changed_evaluators(plan_a, plan_b), shared)


def _changed_evaluators(plan_a: Plan, plan_b: Plan) -> tuple[list[str], list[str]]:
    """The evaluators that changed between the runs, and those of one run only."""
    mine, theirs = _evaluators(plan_a), _evaluators(plan_b)
    changed = sorted(name for name in mine.keys() & theirs.keys() if mine[name] != theirs[name])
    return changed, sorted(mine.keys() ^ theirs.keys())


def _hash(case: Case) -> str:
    """The hash that the run stored; runs of an earlier version have only the case itself."""
    return case_digest(case) if case.digest is msgspec.UNSET else case.digest


def _evaluators(plan: Plan) -> dict[str, str]:
    digests = evaluator_digests(spec for spec in plan.evaluators if spec.name not in plan.evaluator_digests)
    return digests | {
        spec.name: plan.evaluator_digests[spec.name] for spec in plan.evaluators if spec.name not in digests
    }


def some_names(names: list[str]) -> str:
    """At most ten names, and how many more there are."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
