"""The answer compared with a text that is known to be right (letta-evals 0.9, built-in `tool` graders).

The ground truth is the configuration's `ground_truth`, else the case's: `extra.ground_truth`, or
`expected.facts.ground_truth` in the native format.
"""

from __future__ import annotations

from typing import ClassVar

from evalwright.evaluators.onlooker import Onlooker
from evalwright.evaluators.wording import shown
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.sandbox.patterns import compiled_pattern, search

__all__ = ["AsciiPrintableOnly", "Contained", "Equals", "Matches"]

_MOST_OFFENDERS = 5


class _WithTruth(Onlooker, frozen=True):
    """Compares the answer with the ground truth: the configured one, else the case's."""

    ground_truth: str | None = None
    reads: ClassVar[frozenset[str]] = frozenset({"output"})

    def look(self, case: Case, trace: Trace) -> Evaluation:
        known = (self.ground_truth, case.extra.get("ground_truth"), case.expected.facts.get("ground_truth"))
        truth = next((text for text in known if isinstance(text, str)), "")
        if not truth:
            return Evaluation(False, 0.0, "the case has no ground truth")
        return self.compared(trace.output.final_answer or "", truth)

    def compared(self, answer: str, truth: str) -> Evaluation:
        raise NotImplementedError


class Equals(_WithTruth, frozen=True):
    """Whether answer and ground truth are equal, ignoring white space around them."""

    is_brief = True

    def compared(self, answer: str, truth: str) -> Evaluation:
        return _evaluation(answer.strip() == truth.strip(), "is", "is not", truth)


class Contained(_WithTruth, frozen=True):
    """Whether the answer contains the ground truth, ignoring case."""

    is_brief = True

    def compared(self, answer: str, truth: str) -> Evaluation:
        return _evaluation(truth.lower() in answer.lower(), "contains", "does not contain", truth)


class Matches(_WithTruth, frozen=True):
    """Whether the ground truth, a regular expression, is found anywhere in the answer."""

    def compared(self, answer: str, truth: str) -> Evaluation:
        try:
            pattern = compiled_pattern(truth)
        except ValueError as error:
            return Evaluation(False, 0.0, f"the ground truth {shown(truth)} is not a regular expression: {error}")
        return _evaluation(search(pattern, answer) is not None, "matches", "does not match", truth)


class AsciiPrintableOnly(Onlooker, frozen=True):
    """Whether every character except CR and LF is between U+0020 and U+007E."""

    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset({"output"})

    def look(self, case: Case, trace: Trace) -> Evaluation:
        answer = trace.output.final_answer or ""
        offenders = dict.fromkeys(c for c in answer if c not in "\r\n" and not " " <= c <= "~")
        if not offenders:
            return Evaluation(True, 1.0, "every character is printable ASCII")
        shown = ", ".join(f"U+{ord(c):04X}" for c in list(offenders)[:_MOST_OFFENDERS])
        more = len(offenders) - _MOST_OFFENDERS
        return Evaluation(False, 0.0, f"not printable ASCII: {shown}" + (f" and {more} more" if more > 0 else ""))


def _evaluation(passed: bool, yes: str, no: str, truth: str) -> Evaluation:
    return Evaluation(passed, float(passed), f"the answer {yes if passed else no} {shown(truth)}")
