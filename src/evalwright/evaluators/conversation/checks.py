"""Checks on recorded conversations (specification northstar, 5.1): each asks what its case expects, or is skipped.

What a case expects may be said in the configuration instead, for all cases alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec

from evalwright.evaluators.conversation.messages import conversation_of, expected_of, json_text, latency_of
from evalwright.evaluators.wording import called_with, listed, number, shown
from evalwright.model.conversation import ExpectedArguments, ToolUse
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = [
    "Contains",
    "CostWithin",
    "ForbiddenTools",
    "GroundTruthMatch",
    "LatencyWithin",
    "MaxToolCalls",
    "NotContains",
    "RequiredTools",
    "ToolArgumentsMatch",
    "ToolOutputReferenced",
    "ToolSequence",
]

_decode = msgspec.json.Decoder().decode
_NO_ANSWER = "the conversation has no final response"
_STRIPPED = ".,:;!?()[]{}\"'"
_STOP_WORDS = frozenset(re.findall(r"\w+", "a an and are as at be for from in is it of on or so the to with"))
_MAPPINGS = (dict, Mapping)
"""The first is what nearly all are, and quick to ask."""
_MOST_SHOWN = 20
"""Calls or terms that a reason or a detail lists."""


def _skipped(key: str) -> Evaluation:
    return Evaluation(False, None, f"the case has no {key}", skipped=True)


def _graded(passed: bool, reason: str, detail: dict[str, Any]) -> Evaluation:
    return Evaluation(passed, 1.0 if passed else 0.0, reason, detail)


class MaxToolCalls(msgspec.Struct, frozen=True):
    """At most so many calls of tools; every call counts."""

    limit: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        limit = expected_of(case).max_tool_calls if self.limit is None else self.limit
        if limit is None:
            return _NO_MOST
        actual = len(conversation_of(trace).tool_calls)
        word = "call" if actual == 1 else "calls"
        reason = f"{actual} {word} of tools, at most {limit} expected"
        return _graded(actual <= limit, reason, {"actual": actual, "limit": limit})


class RequiredTools(msgspec.Struct, frozen=True):
    """Every one of these tools was called."""

    names: list[str] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        names = expected_of(case).required_tools if self.names is None else self.names
        if names is None:
            return _NO_REQUIRED
        called = {call.name for call in conversation_of(trace).tool_calls}
        missing = [name for name in names if name not in called]
        reason = f"not called: {listed(missing)}; called: {listed(sorted(called)) or 'no tool'}" if missing else ""
        return _graded(not missing, reason, {"missing_tools": missing, "required_tools": names})


class ForbiddenTools(msgspec.Struct, frozen=True):
    """None of these tools was called."""

    names: list[str] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        names = expected_of(case).forbidden_tools if self.names is None else self.names
        if names is None:
            return _NO_FORBIDDEN
        called = {call.name for call in conversation_of(trace).tool_calls}
        used = [name for name in names if name in called]
        return _graded(not used, f"called: {listed(used)}" if used else "", {"used_forbidden_tools": used})


class ToolArgumentsMatch(msgspec.Struct, frozen=True):
    """For each expected call at least one call of that tool has the arguments, among others it may have.

    Mappings are compared as subsets at every depth, everything else as Python does. JSON text is parsed once.
    """

    expected: list[ExpectedArguments] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        expected = expected_of(case).tool_arguments if self.expected is None else self.expected
        if expected is None:
            return _NO_ARGUMENTS
        calls = conversation_of(trace).tool_calls
        mismatches = [found for entry in expected if (found := _mismatch(entry, calls)) is not None]
        reason = "; ".join(mismatch["reason"] for mismatch in mismatches[:3])
        return _graded(not mismatches, reason, {"mismatches": mismatches})


def _mismatch(entry: ExpectedArguments, calls: Iterable[ToolUse]) -> dict[str, Any] | None:
    tried = []
    for call in calls:
        if call.name == entry.name:
            given = _arguments(call.arguments)
            if _holds(entry.arguments, given):
                return None
            tried.append(given)
    wanted = {"name": entry.name, "expected_arguments": entry.arguments}
    if not tried:
        return {**wanted, "reason": f"{entry.name} was not called"}
    reason = f"no call has {called_with(entry.name, entry.arguments)}; called with {shown(tried[-1], 80)}"
    return {**wanted, "actual_arguments": tried[:_MOST_SHOWN], "reason": reason}


def _arguments(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return _decode(given)
    except (ValueError, RecursionError):
        return _python_json(given)


def _python_json(text: str) -> Any:
    """What Python's own dialect of JSON, which has NaN and infinities, makes of a text; else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _holds(expected: Any, actual: Any) -> bool:
    if expected == actual:
        return True
    return (
        isinstance(expected, _MAPPINGS)
        and isinstance(actual, _MAPPINGS)
        and all(key in actual and _holds(value, actual[key]) for key, value in expected.items())
    )


class ToolSequence(msgspec.Struct, frozen=True):
    """The names of the called tools, in order and with repeats, are exactly these."""

    names: list[str] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        names = expected_of(case).tool_sequence if self.names is None else self.names
        if names is None:
            return _NO_SEQUENCE
        called = [call.name for call in conversation_of(trace).tool_calls]
        reason = "" if called == names else f"called: {listed(called) or 'no tool'}; expected: {listed(names)}"
        return _graded(called == names, reason, {"expected_sequence": names, "actual_sequence": called})


class ToolOutputReferenced(msgspec.Struct, frozen=True):
    """The final response takes up what a tool gave back: enough of the terms of one output occur in it.

    Terms are words of more than two characters that are no stop words, without punctuation and case. With `values`
    the names of fields in JSON outputs do not count, and numbers and short words do.
    """

    required: bool | None = None
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.35
    values: bool = False

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        required = expected_of(case).require_tool_output_reference if self.required is None else self.required
        if not required:
            return _NO_REFERENCE
        conversation = conversation_of(trace)
        outputs = [text for output in conversation.tool_outputs if (text := self._output(output.content))]
        if conversation.final_response is None:
            return _graded(False, _NO_ANSWER, {"threshold": 1.0})
        if not outputs:
            return _graded(False, "no tool gave anything back", {"threshold": 1.0})
        said = self._terms(conversation.final_response)
        measured = [(len(said & terms) / len(terms), text) for text in outputs if (terms := self._terms(text))]
        best, text = max(measured, key=lambda pair: pair[0], default=(0.0, ""))
        terms = self._terms(text)
        reason = f"{len(said & terms)} of {len(terms)} terms of the nearest output are in the response"
        reason += f" ({best:.2f}, {self.threshold:g} needed): found {_words(said & terms)}, not found "
        detail = {"threshold": self.threshold, "evidence": [text] if text else []}
        return Evaluation(best >= self.threshold, best, reason + _words(terms - said), detail)

    def _output(self, content: Any) -> str | None:
        if content is None or isinstance(content, str):
            return content
        return json_text(content)

    def _terms(self, text: str) -> set[str]:
        if self.values:
            return {word for word in _split(" ".join(_values(_arguments(text)))) if word and word not in _STOP_WORDS}
        return {word for word in _split(text) if len(word) > 2 and word not in _STOP_WORDS}


def _split(text: str) -> Iterable[str]:
    return (word.strip(_STRIPPED).lower() for word in text.split())


def _values(value: Any) -> Iterable[str]:
    """The texts and numbers inside plain data, without the names of its fields."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif value is not None:
        yield str(value)


def _words(words: set[str]) -> str:
    return listed(sorted(words)[:_MOST_SHOWN]) or "nothing"


class Contains(msgspec.Struct, frozen=True):
    """Every phrase is in the final response, whatever the case of its letters."""

    phrases: list[str] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        phrases = expected_of(case).contains if self.phrases is None else self.phrases
        if phrases is None:
            return _NO_PHRASES
        response = conversation_of(trace).final_response
        if response is None:
            return _graded(False, _NO_ANSWER, {"missing_phrases": phrases, "phrases": phrases})
        lowered = response.lower()
        missing = [phrase for phrase in phrases if phrase.lower() not in lowered]
        reason = f"missing: {listed(missing)}; in {shown(response)}" if missing else ""
        return _graded(not missing, reason, {"missing_phrases": missing, "phrases": phrases})


class NotContains(msgspec.Struct, frozen=True):
    """No phrase is in the final response, which there must be."""

    phrases: list[str] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        phrases = expected_of(case).not_contains if self.phrases is None else self.phrases
        if phrases is None:
            return _NO_BANNED
        response = conversation_of(trace).final_response
        if response is None:
            return _graded(False, _NO_ANSWER, {"found_phrases": [], "phrases": phrases})
        lowered = response.lower()
        found = [phrase for phrase in phrases if phrase.lower() in lowered]
        reason = f"found: {listed(found)}; in {shown(response)}" if found else ""
        return _graded(not found, reason, {"found_phrases": found, "phrases": phrases})


class GroundTruthMatch(msgspec.Struct, frozen=True):
    """The true answer is a part of the final response, but for case and white space."""

    text: str | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        truth = expected_of(case).ground_truth if self.text is None else self.text
        if truth is None:
            return _NO_TRUTH
        response = conversation_of(trace).final_response
        if response is None:
            return _graded(False, _NO_ANSWER, {"ground_truth": truth})
        found = _plain(truth) in _plain(response)
        return _graded(found, "" if found else f"{shown(truth)} is not in {shown(response)}", {"ground_truth": truth})


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


class LatencyWithin(msgspec.Struct, frozen=True):
    """It took no longer than this, milliseconds; what was not measured fails."""

    max_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        limit = expected_of(case).max_latency_ms if self.max_ms is None else self.max_ms
        if limit is None:
            return _NO_LATENCY
        actual = latency_of(trace)
        return _within(actual, limit, "latency", "ms", {"actual_ms": actual, "limit_ms": limit})


class CostWithin(msgspec.Struct, frozen=True):
    """It cost no more than this, US dollars; what was not measured fails."""

    max_usd: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        limit = expected_of(case).max_cost_usd if self.max_usd is None else self.max_usd
        if limit is None:
            return _NO_COST
        actual = trace.metrics.cost_usd
        return _within(actual, limit, "cost", "USD", {"actual_usd": actual, "limit_usd": limit})


def _within(actual: float | None, limit: float, what: str, unit: str, detail: dict[str, Any]) -> Evaluation:
    if actual is None:
        return _graded(False, f"the {what} was not measured, at most {number(limit)} {unit} expected", detail)
    passed = actual <= limit
    reason = "" if passed else f"the {what} is {number(actual)} {unit}, at most {number(limit)} {unit} expected"
    return _graded(passed, reason, detail)


_NO_MOST = _skipped("max_tool_calls")
_NO_REQUIRED = _skipped("required_tools")
_NO_FORBIDDEN = _skipped("forbidden_tools")
_NO_ARGUMENTS = _skipped("tool_arguments")
_NO_SEQUENCE = _skipped("tool_sequence")
_NO_REFERENCE = _skipped("require_tool_output_reference")
_NO_PHRASES = _skipped("contains")
_NO_BANNED = _skipped("not_contains")
_NO_TRUTH = _skipped("ground_truth")
_NO_LATENCY = _skipped("max_latency_ms")
_NO_COST = _skipped("max_cost_usd")
