"""What the toy format runs, judges and counts with."""

from __future__ import annotations

import runpy
from collections.abc import Collection
from typing import Any

from evalwright.formats import shims
from evalwright.model.plan import Plan, Variant
from evalwright.model.result import Evaluation, Status
from evalwright.model.snapshot import Case
from evalwright.model.summary import GateOutcome, RunSummary
from evalwright.model.trace import Answer, Output, Trace
from evalwright_toy import FORMAT


def polite(text: str) -> str:
    """What users' code imports from `toylib`."""
    return f"{text}, please"


class Agent:
    """A function in a user's file."""

    def __init__(self, variant: Variant) -> None:
        file, _, name = variant.config["function"].rpartition(":")
        shims.serve(FORMAT)
        self._function = runpy.run_path(file)[name]

    async def run(self, case: Case, trial: int) -> Answer:
        return Answer(output=Output(self._function(case.input)))


class Same:
    """The answer is the wanted one."""

    def __init__(self, loud: bool = False) -> None:
        self._loud = loud

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        said, want = trace.output.final_answer or "", case.extra["want"]
        return Evaluation(said.lower() == want if self._loud else said == want)


class ToyTotals:
    """Counts right answers; half of them are enough."""

    def __init__(self, plan: Plan) -> None:
        self._right = self._all = 0

    def add(self, trace: Any, results: Collection[Any], status: Status, score: float | None = None) -> None:
        self._right += status == "pass"
        self._all += 1

    def merge(self, other: ToyTotals) -> None:
        self._right += other._right
        self._all += other._all

    def finish(self, summary: RunSummary) -> None:
        summary.native = {"right": self._right, "asked": self._all}
        summary.gate = GateOutcome(2 * self._right >= self._all, reason=f"{self._right} of {self._all} are right")
