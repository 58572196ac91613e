"""What the final answer and the thinking contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from evalwright.errors import Problem
from evalwright.evaluators.fields import part_of_trace, parts_at, text_at
from evalwright.evaluators.onlooker import PASSED, Look, Onlooker
from evalwright.evaluators.wording import listed, shown
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Answered", "ContainsText", "ThinkingPresent"]

_ANSWER = "output.final_answer"
_MOST_KEPT = 1000
"""Evaluations that an evaluator keeps for further cases; about a kilobyte each."""
_Words = list[tuple[str, str]]


class ContainsText(Onlooker, frozen=True):
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

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        if config.get("all_of") == [] == config.get("none_of") and not config.get("any_of"):
            return [Problem("", "with none_of empty, too, every text passes: say what to look for", key="all_of")]
        return []

    @property
    def uses_case(self) -> bool:
        return bool(self.expected_keys)

    @property
    def reads(self) -> frozenset[str]:
        return parts_at(self.field)

    @property
    def is_brief(self) -> bool:
        return self.field == _ANSWER or part_of_trace(self.field) is not None

    @property
    def expected_keys(self) -> frozenset[str]:
        """The keys of `expected` that it reads."""
        fact_lists = {"answer_should_include": self.all_of, "answer_should_not_include": self.none_of}
        return frozenset(key for key, value in fact_lists.items() if value is None)

    @property
    def needed_keys(self) -> frozenset[str]:
        """The keys of `expected` without any of which it checks nothing."""
        return frozenset() if self.all_of or self.any_of or self.none_of else self.expected_keys

    def looking(self) -> Look:
        sensitive, words = self.case_sensitive, self._words
        all_of = None if self.all_of is None else words(self.all_of)
        none_of = None if self.none_of is None else words(self.none_of)
        any_of = words(self.any_of or [])
        elsewhere = None if self.field == _ANSWER else self._text_elsewhere
        passed = Evaluation(True, 1.0, "", self._detail([*(self.all_of or ())], [], []))
        without = Evaluation(True, 1.0, "", self._detail([], [], []))
        evaluations: dict[tuple[str, ...], Evaluation] = {}  # by the words found, as many cases expect the same ones

        def look(case: Case, trace: Trace) -> Evaluation:
            if (wanted := all_of) is None:
                wanted = words(include) if (include := case.expected.answer_should_include) else []
            if (banned := none_of) is None:
                banned = words(exclude) if (exclude := case.expected.answer_should_not_include) else []
            text = trace.output.final_answer or "" if elsewhere is None else elsewhere(trace)
            folded = text if sensitive else text.lower()
            if any_of:
                return self._search(text, folded, wanted, any_of, banned)
            for _, sought in wanted:
                if sought not in folded:
                    return self._search(text, folded, wanted, any_of, banned)
            for _, sought in banned:
                if sought in folded:
                    return self._search(text, folded, wanted, any_of, banned)
            if not wanted:
                return without
            if wanted is all_of:
                return passed
            evaluation = evaluations.get(key := tuple(include))
            if evaluation is None:
                evaluation = Evaluation(True, 1.0, "", self._detail([*key], [], []))
                if len(evaluations) < _MOST_KEPT:
                    evaluations[key] = evaluation
            return evaluation

        return look

    def _words(self, words: Sequence[str]) -> _Words:
        """Words as messages quote them, and as they are searched for."""
        return [(word, word if self.case_sensitive else word.lower()) for word in words]

    def _search(self, text: str, folded: str, all_of: _Words, any_of: _Words, none_of: _Words) -> Evaluation:
        present = [word for word, sought in all_of if sought in folded]
        any_present = [word for word, sought in any_of if sought in folded]
        forbidden = [word for word, sought in none_of if sought in folded]
        detail = self._detail(present, any_present, forbidden)
        if len(present) == len(all_of) and not forbidden and (not any_of or any_present):
            return Evaluation(True, 1.0, "", detail)
        missing = [word for word, _ in all_of if word not in present]
        none_matched = [] if any_present else [word for word, _ in any_of]
        return Evaluation(False, 0.0, _reason(text, missing, none_matched, forbidden), detail)

    def _detail(self, present: list[str], any_present: list[str], forbidden: list[str]) -> dict[str, Any]:
        return {
            "field": self.field,
            "matched_all_of": present,
            "matched_any_of": any_present,
            "matched_none_of": forbidden,
        }

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


class Answered(Onlooker, frozen=True):
    """There is a final answer that is not empty.

    Skipped if the recording cannot tell; `extra.answer_unrecorded` of the trace then has the reason.
    """

    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset({"output", "extra"})

    def look(self, case: Case, trace: Trace) -> Evaluation:
        if trace.output.final_answer:
            return PASSED
        unrecorded = trace.extra.get("answer_unrecorded")
        if isinstance(unrecorded, str):
            return Evaluation(False, None, unrecorded, skipped=True)
        return Evaluation(False, 0.0, "there is no answer")


class ThinkingPresent(Onlooker, frozen=True):
    """Whether the answer comes with thinking; white space counts."""

    uses_case = False
    is_brief = True
    reads: ClassVar[frozenset[str]] = frozenset({"output"})

    def look(self, case: Case, trace: Trace) -> Evaluation:
        thinking = trace.output.thinking
        if thinking:
            return PASSED
        return Evaluation(False, 0.0, "thinking is missing" if thinking is None else "thinking is empty")
