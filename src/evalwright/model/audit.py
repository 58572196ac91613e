"""What an audit found: which mutants of a run's traces its evaluators noticed (produced records)."""

from __future__ import annotations

import msgspec

from evalwright.model.calibration import Share

__all__ = ["AuditReport", "EvaluatorAudit", "MutationAudit", "Survivor"]


class MutationAudit(msgspec.Struct):
    """One mutation, on all traces on which it changes something."""

    mutation: str
    caught: Share
    """The share of its mutants that did not pass, of those with a verdict; cases are the units of the interval."""
    mutants: int = 0
    survived: int = 0
    errors: int = 0
    """Mutants without a verdict because an evaluator had an error; neither caught nor survived."""
    not_applicable: int = 0
    """Traces in which it changes nothing, such as numbers in an answer without any."""


class EvaluatorAudit(msgspec.Struct):
    """One evaluator, on the mutants of traces that it had passed."""

    evaluator: str
    noticed: Share
    """The share of the mutants that it did not pass, of those that it judged."""
    mutants: int = 0
    errors: int = 0
    changes: int = 0
    """Verdicts on traces and mutants that would be others without it."""
    note: str = ""
    """Why it decides nothing, if that is so."""


class Survivor(msgspec.Struct):
    """A mutant that passed."""

    case_id: str
    variant_name: str
    trial: int
    mutation: str
    change: str
    """What was changed: the new answer, or the tool calls."""


class AuditReport(msgspec.Struct):
    """The audit of a run."""

    run_id: str
    name: str
    config_path: str
    """The suite that the run names."""
    passed: int
    """Cells of the run that passed."""
    traces: int
    """Those of them that were audited."""
    mutants: int
    caught: Share
    errors: int
    mutations: list[MutationAudit] = []
    evaluators: list[EvaluatorAudit] = []
    survivors: list[Survivor] = []
    left_out: dict[str, str] = {}
    """Evaluators that were not called, with the reason."""
    error_example: str = ""
    judge_cost_usd: float = 0.0
    """What the evaluators' calls of models cost, US dollars; a cached reply has its original cost."""
    unjudged: int = 0
    """Traces that passed in the run and have no verdict here, because an evaluator had an error."""
    notes: list[str] = []
