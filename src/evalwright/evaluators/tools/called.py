"""Checks of the tools that a system called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from evalwright.errors import EvaluatorError, Problem, shorten
from evalwright.evaluators.fields import ABSENT, select
from evalwright.evaluators.onlooker import Look, Onlooker
from evalwright.evaluators.templates import has_template, renderer
from evalwright.evaluators.tools.arguments import matches_subset
from evalwright.evaluators.tools.pairs import pair_any_order, pair_in_order
from evalwright.evaluators.wording import assigned, called_with, listed, shown
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import ToolCall, ToolResult, Trace

__all__ = ["ExpectedCall", "ToolCalled", "ToolCallsMatch"]

_Count = Annotated[int, msgspec.Meta(ge=0)]

_MOST_CALLS = 50
"""Calls that a result's detail lists."""
_MOST_KEPT = 1_000
"""Evaluations that are kept for further traces with the same mistake."""


class ToolCalled(Onlooker, frozen=True):
    """Whether a tool was called as often as expected, with these arguments, and succeeded (evalh 2.0, `tool_called`).

    Without `tool_name`, every tool in the case's `expected.must_call_tools` must have been called.
    """

    tool_name: str | None = None
    must_appear: bool = True
    min_calls: _Count = 1
    max_calls: _Count | None = None
    must_succeed: bool = True
    args_match: dict[str, Any] | None = None

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        if values.get("tool_name") is not None:
            return []
        idle = {"must_appear": True, "min_calls": 1, "max_calls": None, "args_match": None}
        return [
            Problem("", f"{key!r} says nothing without 'tool_name'", key=key)
            for key, default in idle.items()
            if values.get(key, default) not in (default, msgspec.UNSET)
        ]

    @property
    def reads(self) -> frozenset[str]:
        counts_errors = self.tool_name is not None and self.must_succeed
        return frozenset({"tool_calls", "tool_results"}) if counts_errors else frozenset({"tool_calls"})

    @property
    def uses_case(self) -> bool:
        return self.tool_name is None or has_template(self.args_match)

    @property
    def is_brief(self) -> bool:
        return not self.args_match

    @property
    def expected_keys(self) -> frozenset[str] | None:
        """The keys of `expected` that it reads; None if a template may read anything of the case."""
        return None if self.tool_name is not None else frozenset({"must_call_tools"})

    @property
    def needed_keys(self) -> frozenset[str]:
        """The keys of `expected` without any of which it checks nothing."""
        return self.expected_keys or frozenset()

    def looking(self) -> Look:
        name, plain, must_succeed = self.tool_name, not self.args_match, self.must_succeed
        if name is None:
            return lambda case, trace: _all_called(case.expected.must_call_tools, trace)
        passed = [Evaluation(True, 1.0, "", self._detail(count)) for count in range(_MOST_CALLS)]
        least, most = (self.min_calls, self.max_calls) if self.must_appear else (0, 0)
        most = len(passed) - 1 if most is None else min(most, len(passed) - 1)
        miscounted = lru_cache(_MOST_KEPT)(self._miscounted)

        def look(case: Case, trace: Trace) -> Evaluation:
            if not plain:
                return self._evaluation(case, trace, name)
            names = [call.name for call in trace.tool_calls]
            count = names.count(name)
            if not least <= count <= most:
                return miscounted(count, "" if count else _called_names(names)) or self._evaluation(case, trace, name)
            if must_succeed and count:
                for result in trace.tool_results:
                    if result.name == name and _reports_error(result):
                        return self._evaluation(case, trace, name)
            return passed[count]

        return look

    def _miscounted(self, count: int, called: str) -> Evaluation | None:
        """What is said of each trace with this many calls, whatever else is in it; None if that is no mistake."""
        problem = self._wrong_count(count, None, called)
        return None if problem is None else Evaluation(False, 0.0, problem, self._detail(count))

    def _evaluation(self, case: Case, trace: Trace, name: str) -> Evaluation:
        of_tool = calls = [call for call in trace.tool_calls if call.name == name]
        expected = None
        if self.args_match:
            expected = self._arguments(case)
            calls = [call for call in of_tool if matches_subset(expected, call.arguments)]
        failed: list[ToolResult] = []
        instead = ""
        if not calls:
            last = of_tool[-1] if of_tool else None
            instead = (
                called_with(last.name, last.arguments)
                if last
                else _called_names(call.name for call in trace.tool_calls)
            )
        problem = self._wrong_count(len(calls), expected, instead)
        if problem is None and self.must_succeed and calls and (failed := self._failed_results(calls, trace)):
            problem = f"{name} gave {_times(len(failed), 'error')}: {_error_of(failed[0])}"
        detail = self._detail(len(calls), expected, [result.tool_call_id for result in failed[:_MOST_CALLS]])
        return Evaluation(True, 1.0, "", detail) if problem is None else Evaluation(False, 0.0, problem, detail)

    def _detail(self, count: int, expected: Any = None, failed: list[str | None] | None = None) -> dict[str, Any]:
        return {"tool_name": self.tool_name, "count": count, "args_match": expected, "failed_ids": failed or []}

    @cached_property
    def _arguments(self) -> Callable[[Case], dict[str, Any]]:
        return renderer(self.args_match)

    def _wrong_count(self, count: int, expected: Any, instead: str) -> str | None:
        """What is wrong with a number of calls; `instead` are those that were made if it is none."""
        if not self.must_appear:
            limit = "expected not at all" if count else None
        elif count < self.min_calls:
            limit = f"expected at least {self.min_calls}"
        elif self.max_calls is not None and count > self.max_calls:
            limit = f"expected at most {self.max_calls}"
        else:
            limit = None
        if limit is None:
            return None
        what = called_with(str(self.tool_name), expected) if expected else self.tool_name
        reason = f"{what} was called {_times(count)}, {limit}"
        return reason if count or not self.must_appear else f"{reason}; called: {instead}"

    def _failed_results(self, calls: list[ToolCall], trace: Trace) -> list[ToolResult]:
        """Results of the counted calls that report an error."""
        ids = {call.id for call in calls if call.id is not None}
        return [
            result
            for result in trace.tool_results
            if result.name == self.tool_name and _reports_error(result) and (not ids or result.tool_call_id in ids)
        ]


def _reports_error(result: ToolResult) -> bool:
    content = result.content
    return isinstance(content, dict) and bool(content.get("error") or content.get("is_error"))


def _all_called(names: list[str], trace: Trace) -> Evaluation:
    called = {call.name for call in trace.tool_calls}
    missing = [name for name in names if name not in called]
    if not missing:
        return Evaluation(True, 1.0, "", {"missing": []})
    reason = f"not called: {listed(missing)}; called: {_called_names(call.name for call in trace.tool_calls)}"
    return Evaluation(False, 0.0, reason, {"missing": missing})


def _times(count: int, of: str = "time") -> str:
    return f"1 {of}" if count == 1 else f"{count} {of}s"


def _called_names(names: Iterable[str]) -> str:
    return shorten(", ".join(dict.fromkeys(names))) or "no tool"


def _error_of(result: ToolResult) -> str:
    content = result.content
    return shown(content["error"] if isinstance(content, dict) and content.get("error") else content)


class ExpectedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that should be made. Without arguments, any will do; `kwargs` is another name for them."""

    name: str
    arguments: dict[str, Any] | None = None
    kwargs: dict[str, Any] | None = None

    @property
    def given(self) -> dict[str, Any] | None:
        return self.kwargs if self.arguments is None else self.arguments

    def __str__(self) -> str:
        return self.name if self.given is None else called_with(self.name, self.given)


class _RecordedCall(ExpectedCall, frozen=True, forbid_unknown_fields=False):
    """An expected call among the facts of a case, where it may have further keys."""


class ToolCallsMatch(Onlooker, frozen=True):
    """The tool calls of a trace against expected ones: `[{name, arguments}]` here or among the facts of the case.

    `mode`: `subset` every expected call was made, in any order, among others; `in_order` the same in this order;
    `any_order` exactly these calls, in any order; `exact` exactly these in this order.
    `arguments`: the expected ones must be there (`subset`, as in `tool_called`), be all there is (`exact`), or do
    not matter (`ignore`). The score is the share of expected calls that were made. A case that has no expected
    calls at all, not even an empty list, is skipped.
    """

    expected: list[ExpectedCall] | None = None
    expected_from: str = "actions"
    """JSONPath into the facts of the case."""
    mode: Literal["subset", "in_order", "any_order", "exact"] = "subset"
    arguments: Literal["subset", "exact", "ignore"] = "subset"
    only_tools: list[str] | None = None
    """Only calls of these tools count, on both sides."""
    ignore_tools: list[str] = []  # noqa: RUF012 - msgspec copies it
    """Calls of these tools do not count, on either side: read-only ones for instance."""

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        if config.get("only_tools") == []:
            return [Problem("", "no call counts, and every trace passes: name tools", key="only_tools")]
        expected = config.get("expected")
        if not isinstance(expected, list) or config.get("mode", "subset") not in ("subset", "in_order"):
            return []
        if not expected:
            message = "every trace has these calls, none: name calls, or set mode: exact if there must be none"
            return [Problem("", message, key="expected")]
        names = {str(call.get("name")) for call in expected if isinstance(call, dict)}
        only, ignored = config.get("only_tools"), config.get("ignore_tools")
        names &= {*only} if isinstance(only, list) else names
        names -= {*ignored} if isinstance(ignored, list) else set()
        if names:
            return []
        key = "ignore_tools" if only is None else "only_tools"
        return [Problem("", "no expected call counts, and every trace passes: name tools of expected calls", key=key)]

    reads: ClassVar[frozenset[str]] = frozenset({"tool_calls"})

    @property
    def uses_case(self) -> bool:
        return self.expected is None or any(has_template(call.given) for call in self.expected)

    def look(self, case: Case, trace: Trace) -> Evaluation:
        all_expected = self._rendered_calls(case) if self.expected is not None else self._from_facts(case)
        if all_expected is None:
            return Evaluation(False, None, f"the case has no fact {self.expected_from!r}", skipped=True)
        expected = [call for call in all_expected if self._counts(call.name)]
        calls = [call for call in trace.tool_calls if self._counts(call.name)]
        pair = pair_in_order if self.mode in ("in_order", "exact") else pair_any_order
        pairs = pair(expected, calls, self._is_expected)
        partners = set(pairs.values())
        missing = [call for i, call in enumerate(expected) if i not in pairs]
        others = [call for j, call in enumerate(calls) if j not in partners]
        unexpected = others if self.mode in ("any_order", "exact") else []
        share = len(pairs) / len(expected) if expected else 1.0
        detail = {
            "expected": len(expected),
            "made": len(calls),
            "missing": [str(call) for call in missing[:_MOST_CALLS]],
            "others": [called_with(call.name, call.arguments) for call in others[:_MOST_CALLS]],
        }
        if not missing and not unexpected:
            return Evaluation(True, share, "", detail)
        return Evaluation(False, share, self._reason(missing, others, unexpected), detail)

    def _rendered_calls(self, case: Case) -> Sequence[ExpectedCall]:
        return [ExpectedCall(name, None if render is None else render(case)) for name, render in self._renderers]

    @cached_property
    def _renderers(self) -> list[tuple[str, Callable[[Case], dict[str, Any]] | None]]:
        calls = self.expected or []
        return [(call.name, None if call.given is None else renderer(call.given)) for call in calls]

    def _from_facts(self, case: Case) -> Sequence[ExpectedCall] | None:
        fact = select(self.expected_from)(case.expected.facts)
        if fact is ABSENT or fact is None:
            return None
        try:
            return msgspec.convert(fact, list[_RecordedCall])
        except msgspec.ValidationError as error:
            message = f"the fact {self.expected_from!r} is not a list of calls {{name, arguments}}: {error}"
            raise EvaluatorError(message, "invalid_fact") from error

    def _counts(self, name: str) -> bool:
        return name not in self.ignore_tools and (self.only_tools is None or name in self.only_tools)

    def _is_expected(self, expected: ExpectedCall, call: ToolCall) -> bool:
        if expected.name != call.name:
            return False
        if expected.given is None or self.arguments == "ignore":
            return True
        if self.arguments == "exact":
            return expected.given == call.arguments
        return matches_subset(expected.given, call.arguments)

    def _reason(self, missing: list[ExpectedCall], others: list[ToolCall], unexpected: list[ToolCall]) -> str:
        parts = []
        if missing:
            parts.append(
                "missing: " + ", ".join(self._missing_call(call, others) for call in missing[:3]) + _more(missing)
            )
        if unexpected:
            calls = ", ".join(called_with(call.name, call.arguments) for call in unexpected[:3])
            parts.append(f"unexpected: {calls}{_more(unexpected)}")
        if missing and self.mode in ("in_order", "exact") and len(pair_any_order(missing, others, self._is_expected)):
            parts.append("called, but in another order than expected")
        return "; ".join(parts)

    def _missing_call(self, expected: ExpectedCall, others: list[ToolCall]) -> str:
        """The missing call, and how the most similar attempt differs from it."""
        attempts = [call.arguments for call in others if call.name == expected.name]
        differences = [self._differences(expected.given or {}, arguments) for arguments in attempts]
        nearest = min(filter(None, differences), key=len, default=None)
        return str(expected) if nearest is None else f"{expected} (called with {shorten(', '.join(nearest), 80)})"

    def _differences(self, expected: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
        """What a call has instead of the expected arguments."""
        other = {k: v for k, v in arguments.items() if k in expected and not matches_subset(expected[k], v)}
        more = {k: v for k, v in arguments.items() if k not in expected} if self.arguments == "exact" else {}
        return [*assigned(other), *(f"no {k}" for k in expected if k not in arguments), *assigned(more)]


def _more(calls: Sequence[object]) -> str:
    return f" and {len(calls) - 3} more" if len(calls) > 3 else ""
