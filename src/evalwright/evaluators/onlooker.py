"""Evaluators that only look at a case and a trace, without waiting."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.model.trace_parts import TRACE_PARTS

__all__ = ["PASSED", "Look", "Onlooker", "own_copy"]

Look = Callable[[Case, Trace], Evaluation]

PASSED = Evaluation(True, 1.0)
"""The result of `look` when there is nothing more to say."""


class Onlooker(msgspec.Struct, frozen=True, dict=True):
    """The base of evaluators that judge a trace without waiting: by `look`, or by the function from `looking`.

    Most traces get an evaluation that others got before, so `look` may return the same object again: callers must not
    change it, and may compare it by identity.
    """

    @property
    def reads(self) -> frozenset[str]:
        """Those of the `TRACE_PARTS` of a trace that it looks at: re-evaluation does not decode the others."""
        return TRACE_PARTS

    @property
    def is_brief(self) -> bool:
        """Whether `look` never takes longer than to go through what it reads, so that nothing has to interrupt it: not
        with a pattern, path or schema of the user's, some of which take years."""
        return False

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
        evaluation = self.look(case, trace)
        parts = (
            own_copy(evaluation.detail),
            evaluation.skipped,
            evaluation.cost_usd,
            own_copy(evaluation.hits),
            own_copy(evaluation.misses),
        )
        return Evaluation(evaluation.passed, evaluation.score, evaluation.reason, *parts)


def own_copy(value: Any) -> Any:
    """A part of an evaluation for one result alone: an onlooker may return the same evaluation again, in any run.

    What a mapping holds is copied, too, as those are lists.
    """
    if value.__class__ is dict:
        return {key: item.copy() if item.__class__ in (dict, list) else item for key, item in value.items()}
    return value.copy() if value.__class__ is list else value
