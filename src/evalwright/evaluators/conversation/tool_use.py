"""Which tools a conversation used, how often, in which order and with which arguments (NorthStar's graders).

The expectation is in the case, or in the configuration for all cases; a case that expects nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.conversation.messages import conversation_of, expected_of, parsed_json
from evalwright.evaluators.conversation.outcomes import KEPT, MOST_SHOWN, graded, skipped
from evalwright.evaluators.onlooker import Onlooker
from evalwright.evaluators.wording import called_with, listed, shown
from evalwright.model.conversation import ExpectedArguments, ToolUse
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["ForbiddenTools", "MaxToolCalls", "RequiredTools", "ToolArgumentsMatch", "ToolSequence"]

_MAPPINGS = (dict, Mapping)
"""`dict` first: nearly all are one, and checking an abstract class is slow."""
# Made once: in files of a million conversations, most checks are skipped.
_NO_MOST = skipped("max_tool_calls")
_NO_REQUIRED = skipped("required_tools")
_NO_FORBIDDEN = skipped("forbidden_tools")
_NO_ARGUMENTS = skipped("tool_arguments")
_NO_SEQUENCE = skipped("tool_sequence")
_ALL_MATCH = graded(True, "", {"mismatches": []})


class MaxToolCalls(Onlooker, frozen=True):
    """There are at most `limit` tool calls; repeated ones count."""

    limit: Annotated[int, msgspec.Meta(ge=0)] | None = None
    is_brief = True

    def look(self, case: Case, trace: Trace) -> Evaluation:
        limit = expected_of(case).max_tool_calls if self.limit is None else self.limit
        if limit is None:
            return _NO_MOST
        return _within_limit(len(conversation_of(trace).tool_calls), limit)


@lru_cache(KEPT)
def _within_limit(actual: int, limit: int) -> Evaluation:
    word = "call" if actual == 1 else "calls"
    reason = f"{actual} {word} of tools, at most {limit} expected"
    return graded(actual <= limit, reason, {"actual": actual, "limit": limit})


class RequiredTools(Onlooker, frozen=True):
    """Each of these tools was called."""

    names: list[str] | None = None
    is_brief = True

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        return _if_empty("names", config)

    def look(self, case: Case, trace: Trace) -> Evaluation:
        names = expected_of(case).required_tools if self.names is None else self.names
        if names is None:
            return _NO_REQUIRED
        called = {call.name for call in conversation_of(trace).tool_calls}
        if called.issuperset(names):
            return _all_called(tuple(names))
        missing = [name for name in names if name not in called]
        reason = f"not called: {listed(missing)}; called: {listed(sorted(called)) or 'no tool'}"
        return graded(False, reason, {"missing_tools": missing, "required_tools": names})


def _if_empty(key: str, config: Mapping[str, Any]) -> list[Problem]:
    listed_ones = config.get(key)
    if listed_ones in ([], [""]):
        return [Problem("", "no tool is named, and every trace passes: name tools", key=key)]
    return []


@lru_cache(KEPT)
def _all_called(names: tuple[str, ...]) -> Evaluation:
    return graded(True, "", {"missing_tools": [], "required_tools": [*names]})


class ForbiddenTools(Onlooker, frozen=True):
    """None of these tools was called."""

    names: list[str] | None = None
    is_brief = True

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        return _if_empty("names", config)

    def look(self, case: Case, trace: Trace) -> Evaluation:
        names = expected_of(case).forbidden_tools if self.names is None else self.names
        if names is None:
            return _NO_FORBIDDEN
        called = {call.name for call in conversation_of(trace).tool_calls}
        if called.isdisjoint(names):
            return _none_called(tuple(names))
        used = [name for name in names if name in called]
        return graded(False, f"called: {listed(used)}", {"forbidden_tools": names, "used_forbidden_tools": used})


@lru_cache(KEPT)
def _none_called(names: tuple[str, ...]) -> Evaluation:
    return graded(True, "", {"forbidden_tools": [*names], "used_forbidden_tools": []})


class ToolArgumentsMatch(Onlooker, frozen=True):
    """For each expected call, some call of that tool has these arguments; it may have others as well.

    Mappings are compared as subsets at every depth, everything else as Python does. JSON text is parsed once.
    """

    expected: list[ExpectedArguments] | None = None

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        return _if_empty("expected", config)

    def look(self, case: Case, trace: Trace) -> Evaluation:
        expected = expected_of(case).tool_arguments if self.expected is None else self.expected
        if expected is None:
            return _NO_ARGUMENTS
        calls = conversation_of(trace).tool_calls
        mismatches = [wrong_call for entry in expected if (wrong_call := _mismatch(entry, calls)) is not None]
        if not mismatches:
            return _ALL_MATCH
        reason = "; ".join(mismatch["reason"] for mismatch in mismatches[:3])
        return graded(False, reason, {"mismatches": mismatches})


def _mismatch(entry: ExpectedArguments, calls: Iterable[ToolUse]) -> dict[str, Any] | None:
    tried = []
    for call in calls:
        if call.name == entry.name:
            arguments = parsed_json(call.arguments)
            if _holds(entry.arguments, arguments):
                return None
            tried.append(arguments)
    expectation = {"name": entry.name, "expected_arguments": entry.arguments}
    if not tried:
        return {**expectation, "reason": f"{entry.name} was not called"}
    reason = f"no call has {called_with(entry.name, entry.arguments)}; called with {shown(tried[-1], 80)}"
    return {**expectation, "actual_arguments": tried[:MOST_SHOWN], "reason": reason}


def _holds(expected: Any, actual: Any) -> bool:
    if expected == actual:
        return True
    return (
        isinstance(expected, _MAPPINGS)
        and isinstance(actual, _MAPPINGS)
        and all(key in actual and _holds(value, actual[key]) for key, value in expected.items())
    )


class ToolSequence(Onlooker, frozen=True):
    """The names of the called tools, in order and with repeats, are exactly these."""

    names: list[str] | None = None

    def look(self, case: Case, trace: Trace) -> Evaluation:
        names = expected_of(case).tool_sequence if self.names is None else self.names
        if names is None:
            return _NO_SEQUENCE
        called = [call.name for call in conversation_of(trace).tool_calls]
        reason = "" if called == names else f"called: {listed(called) or 'no tool'}; expected: {listed(names)}"
        return graded(called == names, reason, {"expected_sequence": names, "actual_sequence": called})
