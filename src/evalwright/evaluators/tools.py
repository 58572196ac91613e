"""Checks on the tools that a system called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.evaluators.arguments import matches_subset
from evalwright.evaluators.fields import ABSENT, select
from evalwright.evaluators.templates import has_template, renderer
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import ToolCall, Trace

__all__ = ["ToolCalled", "ToolCallsMatch"]

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ToolCalled(msgspec.Struct, frozen=True):
    """How often a tool was called, with which arguments, and whether it succeeded (specification evalh, c.1).

    Without `tool_name`, every tool in the case's `expected.must_call_tools` must have been called.
    """

    tool_name: str | None = None
    must_appear: bool = True
    min_calls: _Count = 1
    max_calls: _Count | None = None
    must_succeed: bool = True
    args_match: dict[str, Any] | None = None

    @property
    def uses_case(self) -> bool:
        return self.tool_name is None or has_template(self.args_match)

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if self.tool_name is None:
            return _all_called(case.expected.must_call_tools, trace)
        calls = [call for call in trace.tool_calls if call.name == self.tool_name]
        expected = None
        if self.args_match:
            expected = renderer(self.args_match)(case)
            calls = [call for call in calls if matches_subset(expected, call.arguments)]
        detail: dict[str, Any] = {"tool_name": self.tool_name, "count": len(calls), "args_match": expected}
        problem = self._wrong_count(len(calls), trace)
        if problem is None and self.must_succeed and calls:
            failed = self._failed(calls, trace)
            detail["failed_ids"] = failed
            problem = f"{self.tool_name} gave an error" if failed else None
        return Evaluation(problem is None, 1.0 if problem is None else 0.0, problem or "", detail)

    def _wrong_count(self, count: int, trace: Trace) -> str | None:
        what = f"{self.tool_name} with the expected arguments" if self.args_match else str(self.tool_name)
        if not self.must_appear:
            return f"{what} was called {_times(count)}, expected not at all" if count else None
        if count < self.min_calls:
            others = ", ".join(dict.fromkeys(call.name for call in trace.tool_calls)) or "no tool"
            return f"{what} was called {_times(count)}, expected at least {self.min_calls} (called: {others[:120]})"
        if self.max_calls is not None and count > self.max_calls:
            return f"{what} was called {_times(count)}, expected at most {self.max_calls}"
        return None

    def _failed(self, calls: list[ToolCall], trace: Trace) -> list[str | None]:
        """Ids of results that report an error and belong to the counted calls."""
        ids = {call.id for call in calls if call.id is not None}
        return [
            result.tool_call_id
            for result in trace.tool_results
            if result.name == self.tool_name
            and isinstance(result.content, dict)
            and (result.content.get("error") or result.content.get("is_error"))
            and (not ids or result.tool_call_id in ids)
        ]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _all_called(names: list[str], trace: Trace) -> Evaluation:
    called = {call.name for call in trace.tool_calls}
    missing = [name for name in names if name not in called]
    reason = f"not called: {', '.join(missing)}" if missing else ""
    return Evaluation(not missing, 0.0 if missing else 1.0, reason, {"missing": missing})


class _Expected(msgspec.Struct):
    name: str
    arguments: dict[str, Any] = {}
    kwargs: dict[str, Any] = {}

    @property
    def given(self) -> dict[str, Any]:
        return self.arguments or self.kwargs


class ToolCallsMatch(msgspec.Struct, frozen=True):
    """The tool calls of a trace against expected ones: `[{name, arguments}]` here or among the facts of the case.

    `mode`: `subset` every expected call was made, in any order, others may be there too; `in_order` the same, in
    this order; `any_order` exactly these calls; `exact` exactly these in this order. The score is the share of
    expected calls that were made. Argument values that are expected must be there (`arguments: subset`), be all there
    is (`exact`), or do not matter (`ignore`). Modes as in LangChain's agentevals trajectory match.
    """

    expected: list[dict[str, Any]] | None = None
    expected_from: str = "actions"
    mode: Literal["subset", "in_order", "any_order", "exact"] = "subset"
    arguments: Literal["subset", "exact", "ignore"] = "subset"
    ignore_tools: list[str] = []
    """Calls of these tools do not count on either side."""

    def __post_init__(self) -> None:
        if self.expected is not None:
            try:
                msgspec.convert(self.expected, list[_Expected])
            except msgspec.ValidationError as error:
                raise InputError(Problem("", f"'expected' must be a list of calls: {error}", key="expected")) from error

    @property
    def uses_case(self) -> bool:
        return self.expected is None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        given = self.expected if self.expected is not None else select(self.expected_from)(case.expected.facts)
        if given is ABSENT or given is None:
            return Evaluation(False, None, f"the case has no fact {self.expected_from!r}", skipped=True)
        expected = [e for e in msgspec.convert(given, list[_Expected]) if e.name not in self.ignore_tools]
        made = [call for call in trace.tool_calls if call.name not in self.ignore_tools]
        missing, unexpected = self._paired(expected, made)
        wrong = bool(missing) or (bool(unexpected) and self.mode in ("any_order", "exact"))
        share = 1.0 if not expected else (len(expected) - len(missing)) / len(expected)
        detail = {"missing": [_call(e.name, e.given) for e in missing], "unexpected": [c.name for c in unexpected]}
        return Evaluation(not wrong, share, self._reason(missing, unexpected) if wrong else "", detail)

    def _paired(self, expected: list[_Expected], made: list[ToolCall]) -> tuple[list[_Expected], list[ToolCall]]:
        """Expected calls without a partner, and calls without one."""
        if self.mode == "exact":
            same = [self._same(e, c) for e, c in zip(expected, made, strict=False)]
            missing = [e for i, e in enumerate(expected) if i >= len(same) or not same[i]]
            return missing, [c for i, c in enumerate(made) if i >= len(same) or not same[i]]
        if self.mode == "in_order":
            return _in_order(expected, made, self._same)
        return _any_order(expected, made, self._same)

    def _same(self, expected: _Expected, call: ToolCall) -> bool:
        if expected.name != call.name:
            return False
        if self.arguments == "ignore":
            return True
        if self.arguments == "exact":
            return expected.given == call.arguments
        return matches_subset(expected.given, call.arguments)

    def _reason(self, missing: list[_Expected], unexpected: list[ToolCall]) -> str:
        parts = []
        if missing:
            parts.append("missing: " + ", ".join(_call(e.name, e.given) for e in missing[:3]))
        if unexpected and self.mode in ("any_order", "exact"):
            parts.append("unexpected: " + ", ".join(_call(c.name, c.arguments) for c in unexpected[:3]))
        return "; ".join(parts)


_Same = Callable[[_Expected, ToolCall], bool]


def _in_order(expected: list[_Expected], made: list[ToolCall], same: _Same) -> tuple[list[_Expected], list[ToolCall]]:
    """A longest common subsequence of both, so that one call too many does not hide all later ones."""
    rows = [[0] * (len(made) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        for j in reversed(range(len(made))):
            both = rows[i + 1][j + 1] + 1 if same(expected[i], made[j]) else 0
            rows[i][j] = max(both, rows[i + 1][j], rows[i][j + 1])
    missing, unexpected, i, j = [], [], 0, 0
    while i < len(expected) and j < len(made):
        if same(expected[i], made[j]) and rows[i][j] == rows[i + 1][j + 1] + 1:
            i, j = i + 1, j + 1
        elif rows[i + 1][j] >= rows[i][j + 1]:
            missing.append(expected[i])
            i += 1
        else:
            unexpected.append(made[j])
            j += 1
    return missing + expected[i:], unexpected + made[j:]


def _any_order(expected: list[_Expected], made: list[ToolCall], same: _Same) -> tuple[list[_Expected], list[ToolCall]]:
    """A maximum matching by augmenting paths: a greedy one could spend the only partner of a stricter expectation."""
    partner: dict[int, int] = {}

    def find(i: int, tried: set[int]) -> bool:
        for j, call in enumerate(made):
            if j not in tried and same(expected[i], call):
                tried.add(j)
                if j not in partner or find(partner[j], tried):
                    partner[j] = i
                    return True
        return False

    missing = [e for i, e in enumerate(expected) if not find(i, set())]
    return missing, [call for j, call in enumerate(made) if j not in partner]


def _call(name: str, arguments: dict[str, Any]) -> str:
    inside = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({inside if len(inside) <= 80 else inside[:77] + '...'})"
