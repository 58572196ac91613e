"""The outcome of a run's gate, as pages show it."""

from __future__ import annotations

from typing import Any

from evalwright.model.summary import GateOutcome
from evalwright.reports import numbers
from evalwright.reports.gates import gate_decisions
from evalwright.reports.text import Paint

__all__ = ["gate_context"]


def gate_context(gate: GateOutcome | None) -> dict[str, Any]:
    """Its outcome in a word, its conditions, those of each run, and what was decided; `gate` is None without one."""
    if gate is None:
        return {"gate": None}
    return {
        "gate": gate,
        "gate_outcome": numbers.outcome(gate),
        "gate_is_reward": numbers.is_reward(gate),
        "gate_parts": _conditions(gate),
        "gate_runs": [(numbers.outcome(run), run.reason, _conditions(run)) for run in gate.runs],
        "gate_spreads": list(numbers.over_runs(gate.runs)),
        "gate_decided": "\n".join(gate_decisions(gate, Paint())),
    }


def _conditions(gate: GateOutcome) -> list[tuple[str, str, str]]:
    """A word, its style, and the condition."""
    return [(*numbers.met(part), numbers.condition(part)) for part in gate.parts]
