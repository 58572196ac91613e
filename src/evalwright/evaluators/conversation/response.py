"""What the final response of a conversation contains (NorthStar's graders).

The expectation is in the case, or in the configuration for all cases; a case that expects nothing is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.conversation.messages import conversation_of, expected_of, parsed_json
from evalwright.evaluators.conversation.outcomes import KEPT, MOST_SHOWN, NO_ANSWER, graded, skipped
from evalwright.evaluators.onlooker import Onlooker
from evalwright.evaluators.wording import listed, shown
from evalwright.model.recordings import json_text
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["Contains", "GroundTruthMatch", "NotContains", "ToolOutputReferenced"]

_STRIPPED = ".,:;!?()[]{}\"'"
_STOP_WORDS = frozenset(re.findall(r"\w+", "a an and are as at be for from in is it of on or so the to with"))
# Made once: in files of a million conversations, most checks are skipped.
_NO_REFERENCE = skipped("require_tool_output_reference")
_NO_PHRASES = skipped("contains")
_NO_BANNED = skipped("not_contains")
_NO_TRUTH = skipped("ground_truth")


class Contains(Onlooker, frozen=True):
    """The final response contains every phrase, ignoring case."""

    phrases: list[str] | None = None
    is_brief = True

    def look(self, case: Case, trace: Trace) -> Evaluation:
        phrases = expected_of(case).contains if self.phrases is None else self.phrases
        if phrases is None:
            return _NO_PHRASES
        response = conversation_of(trace).final_response
        if response is None:
            return graded(False, NO_ANSWER, {"missing_phrases": phrases, "phrases": phrases})
        lowered = response.lower()
        missing = [phrase for phrase in phrases if phrase.lower() not in lowered]
        if not missing:
            return _all_found(tuple(phrases))
        reason = f"missing: {listed(missing)}; in {shown(response)}"
        return graded(False, reason, {"missing_phrases": missing, "phrases": phrases})


@lru_cache(KEPT)
def _all_found(phrases: tuple[str, ...]) -> Evaluation:
    return graded(True, "", {"missing_phrases": [], "phrases": [*phrases]})


class NotContains(Onlooker, frozen=True):
    """There is a final response, and it contains none of the phrases, ignoring case."""

    phrases: list[str] | None = None
    is_brief = True

    def look(self, case: Case, trace: Trace) -> Evaluation:
        phrases = expected_of(case).not_contains if self.phrases is None else self.phrases
        if phrases is None:
            return _NO_BANNED
        response = conversation_of(trace).final_response
        if response is None:
            return graded(False, NO_ANSWER, {"found_phrases": [], "phrases": phrases})
        lowered = response.lower()
        present = [phrase for phrase in phrases if phrase.lower() in lowered]
        if not present:
            return _none_found(tuple(phrases))
        reason = f"found: {listed(present)}; in {shown(response)}"
        return graded(False, reason, {"found_phrases": present, "phrases": phrases})


@lru_cache(KEPT)
def _none_found(phrases: tuple[str, ...]) -> Evaluation:
    return graded(True, "", {"found_phrases": [], "phrases": [*phrases]})


class GroundTruthMatch(Onlooker, frozen=True):
    """The final response contains the ground truth, ignoring case and white space."""

    text: str | None = None

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        text = config.get("text")
        if isinstance(text, str) and not text.strip():
            return [Problem("", "every response contains the empty text: say what to look for", key="text")]
        return []

    def look(self, case: Case, trace: Trace) -> Evaluation:
        truth = expected_of(case).ground_truth if self.text is None else self.text
        if truth is None:
            return _NO_TRUTH
        response = conversation_of(trace).final_response
        if response is None:
            return graded(False, NO_ANSWER, {"ground_truth": truth})
        is_in = _folded_text(truth) in _folded_text(response)
        return graded(is_in, "" if is_in else f"{shown(truth)} is not in {shown(response)}", {"ground_truth": truth})


def _folded_text(text: str) -> str:
    return " ".join(text.lower().split())


class ToolOutputReferenced(Onlooker, frozen=True):
    """The final response refers to a tool's output: it contains enough of the terms of one output.

    Terms are words of more than two characters, without stop words, punctuation and case. With `values`,
    the names of fields in JSON outputs do not count, while numbers and short words do.
    """

    required: bool | None = None
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.35
    values: bool = False

    passes_from: ClassVar[str] = "threshold"

    def look(self, case: Case, trace: Trace) -> Evaluation:
        required = expected_of(case).require_tool_output_reference if self.required is None else self.required
        if not required:
            return _NO_REFERENCE
        conversation = conversation_of(trace)
        outputs = [text for output in conversation.tool_outputs if (text := self._output(output.content))]
        if conversation.final_response is None:
            return graded(False, NO_ANSWER, {"threshold": 1.0})
        if not outputs:
            return graded(False, "no tool returned anything", {"threshold": 1.0})
        terms_said = self._terms(conversation.final_response)
        measured = [(len(terms_said & terms) / len(terms), text) for text in outputs if (terms := self._terms(text))]
        best, text = max(measured, key=lambda pair: pair[0], default=(0.0, ""))
        terms = self._terms(text)
        reason = f"{len(terms_said & terms)} of {len(terms)} terms of the nearest output are in the response"
        reason += f" ({best:.2f}, {self.threshold:g} needed): found {_quoted_words(terms_said & terms)}, not found "
        detail = {"overlap": round(best, 4), "threshold": self.threshold, "evidence": [text] if best else []}
        return Evaluation(best >= self.threshold, best, reason + _quoted_words(terms - terms_said), detail)

    def _output(self, content: Any) -> str | None:
        if content is None or isinstance(content, str):
            return content
        return json_text(content)

    def _terms(self, text: str) -> set[str]:
        if self.values:
            return {word for word in _split(" ".join(_values(parsed_json(text)))) if word and word not in _STOP_WORDS}
        return {word for word in _split(text) if len(word) > 2 and word not in _STOP_WORDS}


def _split(text: str) -> Iterable[str]:
    return (word.strip(_STRIPPED).lower() for word in text.split())


def _values(value: Any) -> Iterable[str]:
    """The strings and numbers inside plain data, without the names of its fields."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif value is not None:
        yield str(value)


def _quoted_words(words: set[str]) -> str:
    return listed(sorted(words)[:MOST_SHOWN]) or "nothing"
