"""Evaluators that only look at a case and a trace, without waiting."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import msgspec

from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["PASSED", "Look", "Onlooker"]

Look = Callable[[Case, Trace], Evaluation]

PASSED = Evaluation(True, 1.0)
"""The result of `look` when there is nothing more to say."""


class Onlooker(msgspec.Struct, frozen=True, dict=True):
    """The base of evaluators that judge a trace without waiting: by `look`, or by the function from `looking`.

    Most traces get an evaluation that others got before, so `look` may return the same object again: callers must not
    change it, and may compare it by identity.
    """

    def look(self, case: Case, trace: Trace) -> Evaluation:
        """Raises EvaluatorError (or anything) if no verdict is possible."""
        return self._look(case, trace)

    def looking(self) -> Look:
        """`look` for many traces: an evaluator may return a function here that has its configuration at hand."""
        return self.look

    @cached_property
    def _look(self) -> Look:
        return self.looking()

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        """An evaluation for the caller alone."""
        said = self.look(case, trace)
        lists = [*said.hits], [*said.misses]
        return Evaluation(said.passed, said.score, said.reason, {**said.detail}, said.skipped, said.cost_usd, *lists)
