"""What became of a run as a whole, for every report: its gate, the decisions behind it, and cells that were not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from evalwright.model.protocols import RunReader
from evalwright.model.summary import GateOutcome, RunSummary, decisions_of
from evalwright.reports import numbers
from evalwright.reports.text import Paint, one_line

__all__ = ["RunFailure", "gate_conditions", "gate_decisions", "is_cut_short", "run_failures"]


class RunFailure(NamedTuple):
    """Why a run as a whole did not pass: without it, its cells might all have passed."""

    subject: Literal["gate", "cells"]
    status: Literal["fail", "error"]
    """ "error" if it is unknown whether the run would pass."""
    text: str


def run_failures(reader: RunReader, summary: RunSummary, longest: int) -> Iterator[RunFailure]:
    """A gate that did not pass, and cells that were not run, each in one line of at most so many characters."""
    if (gate := summary.gate) is not None and not gate.passed:
        texts = [numbers.outcome(gate)[0], *([gate.reason] if gate.reason else []), *gate_conditions(gate)]
        yield RunFailure("gate", "error" if gate.undecided else "fail", one_line("; ".join(texts), longest))
    if is_cut_short(reader, summary):
        yield RunFailure("cells", "error", numbers.missing_cells(summary))


def is_cut_short(reader: RunReader, summary: RunSummary) -> bool:
    """Whether cells were not run although no decision made them needless."""
    return bool(summary.cells_missing) and (reader.plan is None or reader.plan.until_decided is None)


def gate_conditions(gate: GateOutcome) -> list[str]:
    """Each condition with its outcome: `missed: pass_rate 0.5, at least 0.9 (40 scores)`."""
    return [f"{numbers.met(part)[0]}: {numbers.condition(part)}" for part in gate.parts]


def gate_decisions(gate: GateOutcome, paint: Paint) -> list[str]:
    """The lines of each decision; none for a gate without a baseline, which has no decisions."""
    decisions = decisions_of(gate)
    if not decisions:
        return []
    from evalwright.reports.decision import decision_lines

    return [line for decision in decisions for line in decision_lines(decision, paint, titled=len(decisions) > 1)]
