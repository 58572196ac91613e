"""The evaluators that are audited: those of a plan without the ones that are not called, and what is said of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from evalwright.errors import InputError
from evalwright.evaluators.build import build, is_judge, parts_read
from evalwright.model.audit import EvaluatorAudit
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plan
from evalwright.model.snapshot import Case
from evalwright.run.judge import compares

__all__ = ["AuditedEvaluators", "criteria_without"]

_CHANGED = frozenset({"output", "messages", "tool_calls", "tool_results", "spans"})
"""The parts of a trace that hold what the system did; `extra` repeats some of them, and holds what was used."""


class AuditedEvaluators:
    """The plan without the evaluators that are not called, and why they are not."""

    def __init__(self, plan: Plan, *, judges: bool) -> None:
        self._judges = judges
        self.left_out: dict[str, str] = {}
        specs, criteria = self._kept(plan.evaluators), criteria_without(plan.pass_criteria, self.left_out)
        if self.left_out and (criteria is None or not specs):
            reasons = "; ".join(f"{name} {why}" for name, why in self.left_out.items())
            raise InputError(f"no evaluator that decides is left to be audited: {reasons}")
        self.plan: Plan = msgspec.structs.replace(plan, evaluators=specs, pass_criteria=criteria or plan.pass_criteria)

    def of(self, case: Case) -> Case:
        """The case without them, too."""
        if case.evaluators is None:
            return case
        return msgspec.structs.replace(case, evaluators=self._kept(case.evaluators))

    def _kept(self, specs: Sequence[EvaluatorSpec]) -> list[EvaluatorSpec]:
        reasons = [self._why_not(spec) for spec in specs]
        self.left_out |= {spec.name: why for spec, why in zip(specs, reasons, strict=True) if why}
        return [spec for spec, why in zip(specs, reasons, strict=True) if not why]

    def _why_not(self, spec: EvaluatorSpec) -> str:
        """Why an evaluator is not called; empty if it is. Cases may have different ones of the same name."""
        if compares(spec.type):
            return "compares the answers of several variants"
        return "calls a model; --judges audits it, too" if is_judge(spec) and not self._judges else ""

    def limit_use(self, case: Case) -> bool:
        """Whether an evaluator of the case looks at nothing but times, costs or tokens."""
        specs = self.plan.evaluators if case.evaluators is None else case.evaluators
        return any(_looks_at(spec) == "use" for spec in specs)

    def with_note(self, audit: EvaluatorAudit, *, use_tested: bool) -> EvaluatorAudit:
        """An evaluator's counts, with a word on what they mean if it decides nothing; `use_tested`: there are mutants
        that use more."""
        if not audit.mutants:
            note = "not tested: it passed no trace that has mutants"
        elif audit.changes:
            return audit
        elif audit.errors == audit.mutants:
            note = "not tested: it had an error on every mutant"
        elif audit.noticed.value:
            note = "redundant here: without it, every verdict is the same"
        elif any(
            spec.name == audit.evaluator and _looks_at(spec) in ("files", "" if use_tested else "use")
            for spec in self.plan.evaluators
        ):
            note = "not tested: it looks at nothing that mutations change"
        else:
            note = "decides nothing here: no mutant makes it fail"
        return msgspec.structs.replace(audit, note=note)


def _looks_at(spec: EvaluatorSpec) -> Literal["files", "use", "work"]:
    """What an evaluator looks at: files, nothing but what was used (times, costs, tokens), or also what was done."""
    if build(spec).traits.uses_artifact:
        return "files"
    return "use" if parts_read(spec).isdisjoint(_CHANGED) else "work"


def criteria_without(criteria: PassCriteria, names: Collection[str]) -> PassCriteria | None:
    """The criteria without some evaluators; None if nothing else was required: then every other one would be."""
    required, some = (
        [name for name in kept if name not in names] for kept in (criteria.all_required, criteria.any_required)
    )
    if (criteria.all_required or criteria.any_required) and not (required or some):
        return None
    return msgspec.structs.replace(criteria, all_required=required, any_required=some)
