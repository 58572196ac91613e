"""Checks on texts of a trace."""

from __future__ import annotations

import msgspec

from evalwright.evaluators.fields import ABSENT, select
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["ContainsText", "ThinkingPresent"]


class ContainsText(msgspec.Struct, frozen=True):
    """Whether a text holds all, some or none of given substrings (specification evalh, c).

    Lists that are not given come from the case: `all_of` from `expected.answer_should_include`, `none_of` from
    `expected.answer_should_not_include`; an empty list given here overrides. Case is folded by lower-casing.
    """

    all_of: list[str] | None = None
    any_of: list[str] | None = None
    none_of: list[str] | None = None
    case_sensitive: bool = False
    field: str = "output.final_answer"

    @property
    def uses_case(self) -> bool:
        return self.all_of is None or self.none_of is None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        text = self._text(trace)
        all_of = case.expected.answer_should_include if self.all_of is None else self.all_of
        none_of = case.expected.answer_should_not_include if self.none_of is None else self.none_of
        any_of = self.any_of or []
        found = self._found_in(text)
        matched_all, matched_any, matched_none = found(all_of), found(any_of), found(none_of)
        reasons = []
        if len(matched_all) < len(all_of):
            reasons.append(f"missing: {_listed([x for x in all_of if x not in matched_all])}")
        if any_of and not matched_any:
            reasons.append(f"none matched of: {_listed(any_of)}")
        if matched_none:
            reasons.append(f"forbidden: {_listed(matched_none)}")
        if reasons:
            shown = text if len(text) <= 120 else text[:117] + "..."
            reasons.append(f"in {shown!r}" if text else "in an empty text")
        return Evaluation(
            not reasons,
            0.0 if reasons else 1.0,
            "; ".join(reasons),
            {
                "field": self.field,
                "matched_all_of": matched_all,
                "matched_any_of": matched_any,
                "matched_none_of": matched_none,
            },
        )

    def _text(self, trace: Trace) -> str:
        value = trace.output.final_answer if self.field == "output.final_answer" else select(self.field)(trace)
        return "" if value is None or value is ABSENT else str(value)

    def _found_in(self, text: str):  # type: ignore[no-untyped-def]
        if self.case_sensitive:
            return lambda words: [word for word in words if word in text]
        lowered = text.lower()
        return lambda words: [word for word in words if word.lower() in lowered]


def _listed(words: list[str]) -> str:
    return ", ".join(repr(word) for word in words)


class ThinkingPresent(msgspec.Struct, frozen=True):
    """Whether the answer comes with thinking; white space counts."""

    uses_case = False

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        thinking = trace.output.thinking
        reason = "" if thinking else "thinking is missing" if thinking is None else "thinking is empty"
        return Evaluation(bool(thinking), 1.0 if thinking else 0.0, reason)
