"""Whether a recording has an answer."""

from __future__ import annotations

import msgspec

from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Answered"]


class Answered(msgspec.Struct, frozen=True):
    """The final answer is there and not empty.

    Where the recording cannot tell, which its `extra.answer_unrecorded` gives the reason for, it is skipped.
    """

    uses_case = False

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if trace.output.final_answer:
            return Evaluation(True, 1.0)
        unrecorded = trace.extra.get("answer_unrecorded")
        if isinstance(unrecorded, str):
            return Evaluation(False, None, unrecorded, skipped=True)
        return Evaluation(False, 0.0, "there is no answer")
