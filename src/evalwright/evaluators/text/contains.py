"""What the final answer and the thinking contain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from evalwright.evaluators.fields import text_at
from evalwright.evaluators.wording import listed, shown
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Answered", "ContainsText", "ThinkingPresent"]

_ANSWER = "output.final_answer"


class ContainsText(msgspec.Struct, frozen=True):
    """Whether a text contains all, some or none of the given strings.

    Lists that are not given come from the case: `all_of` from `expected.answer_should_include`, `none_of` from
    `expected.answer_should_not_include`; an empty list given here overrides them. Case is ignored by lower-casing.
    """

    all_of: list[str] | None = None
    any_of: list[str] | None = None
    none_of: list[str] | None = None
    case_sensitive: bool = False
    field: str = _ANSWER
    absent: Literal["error", "empty"] = "error"
    """A field that the trace does not have is an error, or "" as in the original evalh."""

    @property
    def uses_case(self) -> bool:
        return bool(self.expected_keys)

    @property
    def expected_keys(self) -> frozenset[str]:
        """The keys of `expected` that it reads."""
        given = {"answer_should_include": self.all_of, "answer_should_not_include": self.none_of}
        return frozenset(key for key, value in given.items() if value is None)

    @property
    def needed_keys(self) -> frozenset[str]:
        """The keys of `expected` without any of which it checks nothing."""
        return frozenset() if self.all_of or self.any_of or self.none_of else self.expected_keys

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        all_of = case.expected.answer_should_include if self.all_of is None else self.all_of
        none_of = case.expected.answer_should_not_include if self.none_of is None else self.none_of
        any_of = self.any_of or ()
        text = trace.output.final_answer or "" if self.field == _ANSWER else self._text_elsewhere(trace)
        fold: Callable[[str], str] = str if self.case_sensitive else str.lower
        folded = fold(text)
        present = [word for word in all_of if fold(word) in folded] if all_of else []
        any_present = [word for word in any_of if fold(word) in folded] if any_of else []
        forbidden = [word for word in none_of if fold(word) in folded] if none_of else []
        passed = len(present) == len(all_of) and not forbidden and (not any_of or bool(any_present))
        detail = {
            "field": self.field,
            "matched_all_of": present,
            "matched_any_of": any_present,
            "matched_none_of": forbidden,
        }
        if passed:
            return Evaluation(True, 1.0, "", detail)
        missing = [word for word in all_of if word not in present]
        return Evaluation(False, 0.0, _reason(text, missing, () if any_present else any_of, forbidden), detail)

    def _text_elsewhere(self, trace: Trace) -> str:
        return text_at(self.field, trace, absent=self.absent)


def _reason(text: str, missing: Sequence[str], none_matched: Sequence[str], forbidden: Sequence[str]) -> str:
    parts = []
    if missing:
        parts.append(f"missing: {listed(missing)}")
    if none_matched:
        parts.append(f"none matched of: {listed(none_matched)}")
    if forbidden:
        parts.append(f"forbidden: {listed(forbidden)}")
    return "; ".join(parts) + (f"; in {shown(text)}" if text else "; the text is empty")


class Answered(msgspec.Struct, frozen=True):
    """There is a final answer that is not empty.

    Skipped if the recording cannot tell; `extra.answer_unrecorded` of the trace then has the reason.
    """

    uses_case = False

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if trace.output.final_answer:
            return Evaluation(True, 1.0)
        unrecorded = trace.extra.get("answer_unrecorded")
        if isinstance(unrecorded, str):
            return Evaluation(False, None, unrecorded, skipped=True)
        return Evaluation(False, 0.0, "there is no answer")


class ThinkingPresent(msgspec.Struct, frozen=True):
    """Whether the answer comes with thinking; white space counts."""

    uses_case = False

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        thinking = trace.output.thinking
        if thinking:
            return Evaluation(True, 1.0)
        return Evaluation(False, 0.0, "thinking is missing" if thinking is None else "thinking is empty")
