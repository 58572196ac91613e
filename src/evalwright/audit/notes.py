"""What an audit says about evaluators that decide nothing."""

from __future__ import annotations

import msgspec

from evalwright.errors import InputError
from evalwright.evaluators.build import build, parts_read
from evalwright.model.audit import EvaluatorAudit
from evalwright.model.plan import Plan

__all__ = ["with_note"]

_CHANGED = frozenset({"output", "messages", "tool_calls", "tool_results", "spans"})
"""The parts of a trace that mutations change; they change `extra` only where it repeats one of these."""


def with_note(found: EvaluatorAudit, plan: Plan) -> EvaluatorAudit:
    """The evaluator's counts, with a word on what they mean if it decides nothing."""
    if not found.mutants:
        note = "it passed no trace that was audited"
    elif found.changes:
        return found
    elif found.noticed.value:
        note = "redundant here: without it, every verdict is the same"
    elif _looks_elsewhere(found.evaluator, plan):
        note = "not tested: it looks at nothing that mutations change"
    else:
        note = "decides nothing here: no mutant makes it fail"
    return msgspec.structs.replace(found, note=note)


def _looks_elsewhere(name: str, plan: Plan) -> bool:
    """Whether an evaluator looks at other things than answers and calls: times, costs, files."""
    spec = next((one for one in plan.evaluators if one.name == name), None)
    if spec is None:
        return False
    try:
        return build(spec).traits.uses_artifact or parts_read(spec).isdisjoint(_CHANGED)
    except InputError:
        return False
