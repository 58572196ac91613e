"""Evaluators that do no more than to look at a case and a trace, at once."""

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
"""What `look` gives where there is nothing more to say."""


class Onlooker(msgspec.Struct, frozen=True, dict=True):
    """The base of evaluators that judge a trace without waiting for anything: by `look`, or by what `looking` makes.

    What is said of most traces was said of others before. So `look` may give the same evaluation again: whoever gets
    one must not change it, and may go by its identity.
    """

    def look(self, case: Case, trace: Trace) -> Evaluation:
        """Raises EvaluatorError (or anything) if no verdict is possible."""
        return self._look(case, trace)

    def looking(self) -> Look:
        """`look` for many traces: an evaluator may make a function here that has at hand what it is configured with."""
        return self.look

    @cached_property
    def _look(self) -> Look:
        return self.looking()

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        """An evaluation for the caller alone."""
        said = self.look(case, trace)
        lists = [*said.hits], [*said.misses]
        return Evaluation(said.passed, said.score, said.reason, {**said.detail}, said.skipped, said.cost_usd, *lists)
