"""Which tools were called, how often and in which order (AgentEvals 1.0, `tool_trajectory`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.tools.calls import TracedCall, calls_of, messages_of
from evalwright.evaluators.values.equality import deeply_equal
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["ToolTrajectory", "TrajectoryCall"]

_Found = list[tuple["TrajectoryCall", TracedCall | None, str]]
"""Each expected call, the call that met it, and, if none did, what is wrong."""
_ABSENT: Any = object()

ArgsMatch = Literal["superset", "subset", "exact", "ignore"] | list[str]
"""Whether a call's arguments contain the expected ones, contain no others, equal them, or agree at certain paths."""


class TrajectoryCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An expected call. `args` names arguments that must be deeply equal; there may be others."""

    tool: str
    args: Any = None
    max_duration_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None
    args_match: ArgsMatch | None = None
    """How the arguments are compared, if not as the evaluator says."""

    def fits(self, call: TracedCall, args_match: ArgsMatch = "superset") -> bool:
        match, args = self.args_match or args_match, call.args
        if not isinstance(self.args, dict) or match == "ignore":
            return True
        if not isinstance(args, dict):
            return False
        if match == "exact":
            return deeply_equal(self.args, args)
        if match == "subset":
            return _holds(args, self.args)
        if match == "superset":
            return _holds(self.args, args)
        pairs = [(_inside(self.args, path), _inside(args, path)) for path in match]
        return all(value is _ABSENT or deeply_equal(value, actual) for value, actual in pairs)


def _holds(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    """Whether the second mapping contains everything in the first."""
    return all(key in actual and deeply_equal(value, actual[key]) for key, value in expected.items())


def _inside(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


class ToolTrajectory(msgspec.Struct, frozen=True):
    """Share of expected calls that were made. `any_order` also counts `minimums`, `exact` allows no other calls.

    `superset` is `any_order` without minimums; `subset` is the share of calls made that were expected.
    """

    mode: Literal["any_order", "in_order", "exact", "superset", "subset"] = "any_order"
    minimums: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}
    expected: list[TrajectoryCall] = []
    args_match: ArgsMatch = "superset"

    uses_case = False

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        if values.get("minimums") and values.get("mode", "any_order") != "any_order":
            return [Problem("", "'minimums' needs the mode any_order", key="minimums")]
        return []

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        allows_others = config.get("mode", "any_order") != "subset"
        minimums = config.get("minimums")
        counted = any(minimums.values()) if isinstance(minimums, dict) else bool(minimums)
        if not allows_others or config.get("expected") or counted:
            return []
        message = "no call is expected, and every trace passes: name calls in expected or minimums"
        return [Problem("", message, key="minimums" if "minimums" in config else "expected")]

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if not messages_of(trace):
            return banded(0.0, misses=["No trace available"])
        calls = calls_of(trace)
        extra: list[str] = []
        if self.mode == "subset":
            return self._only_expected_calls(calls)
        if self.mode in ("any_order", "superset"):
            matched, total = self._in_any_order(calls), len(self.expected)
        elif self.mode == "in_order":
            matched, total = self._in_order(calls), len(self.expected)
        else:
            matched, total, extra = self._exactly(calls)
        hits = [f"{item.tool} was called as expected" for item, call, _ in matched if call is not None]
        misses = [why for _, call, why in matched if call is None] + extra
        enough, few = _minimums_met(self.minimums, calls)
        quick, slow = _time_limits_met(matched)
        if not self.expected and not self.minimums:
            made = f"no call is expected; calls made: {len(calls)}" if calls else ""
            return banded(1.0, ["no call is expected"], reason=made, detail={"calls": [call.name for call in calls]})
        met = len(hits) + len(enough) + len(quick)
        total = total + len(self.minimums) + len(quick) + len(slow)
        detail = {"calls": [call.name for call in calls]}
        missed = misses + few + slow
        reason = "; ".join([*missed, *_calls_without_time(matched)])
        return banded(met / total if total else 1.0, hits + enough + quick, missed, reason, detail=detail)

    def _fits(self, item: TrajectoryCall, call: TracedCall) -> bool:
        return call.name == item.tool and item.fits(call, self.args_match)

    def _only_expected_calls(self, calls: Sequence[TracedCall]) -> Evaluation:
        """Every call that was made is an expected one, however often it was made."""
        strange = [call.name for call in calls if not any(self._fits(item, call) for item in self.expected)]
        share = 1.0 - len(strange) / len(calls) if calls else 1.0
        hits = [] if strange else ["every call is an expected one"]
        detail = {"calls": [call.name for call in calls]}
        return banded(share, hits, [f"unexpected call {name}" for name in strange], detail=detail)

    def _in_any_order(self, calls: Sequence[TracedCall]) -> _Found:
        """Each expected call takes the first matching call that no other has taken."""
        free = list(calls)
        pairs: _Found = []
        for item in self.expected:
            call = next((call for call in free if self._fits(item, call)), None)
            if call is not None:
                free.remove(call)
            pairs.append((item, call, f"{item.tool} was not called as expected"))
        return pairs

    def _in_order(self, calls: Sequence[TracedCall]) -> _Found:
        """One pass through the calls; a call with the right name but other arguments is used up all the same."""
        rest = iter(calls)
        pairs: _Found = []
        for item in self.expected:
            call = next((call for call in rest if call.name == item.tool), None)
            if call is None:
                pairs.append((item, None, f"{item.tool} was not called, or not in this order"))
            else:
                pairs.append(
                    (item, call if self._fits(item, call) else None, f"{item.tool} was called with other arguments")
                )
        return pairs

    def _exactly(self, calls: Sequence[TracedCall]) -> tuple[_Found, int, list[str]]:
        expected = self.expected
        pairs: _Found = []
        for i, item in enumerate(expected):
            call = calls[i] if i < len(calls) else None
            fits = call is not None and self._fits(item, call)
            seen = "nothing more" if call is None else call.name
            pairs.append((item, call if fits else None, f"call {i + 1}: expected {item.tool}, found {seen}"))
        surplus = [f"unexpected call {call.name}" for call in calls[len(expected) :]] if expected else []
        return pairs, max(len(expected), len(calls)) if expected else 0, surplus


def _minimums_met(minimums: dict[str, int], calls: Sequence[TracedCall]) -> tuple[list[str], list[str]]:
    hits: list[str] = []
    misses: list[str] = []
    for tool, least in minimums.items():
        count = sum(call.name == tool for call in calls)
        message = f"{tool} was called {count} times, expected at least {least}"
        (hits if count >= least else misses).append(message)
    return hits, misses


def _calls_without_time(pairs: _Found) -> list[str]:
    return [
        f"the call of {item.tool} has no duration: its limit is not checked"
        for item, call, _ in pairs
        if item.max_duration_ms is not None and call is not None and call.duration_ms is None
    ]


def _time_limits_met(pairs: _Found) -> tuple[list[str], list[str]]:
    """A time limit is one more expectation; it is dropped for a call without a duration."""
    hits: list[str] = []
    misses: list[str] = []
    for item, call, _ in pairs:
        limit = item.max_duration_ms
        if limit is None or (call is not None and call.duration_ms is None):
            continue
        took = None if call is None else call.duration_ms
        within = took is not None and took <= limit
        lasted = "was not made" if took is None else f"took {took:g} ms"
        (hits if within else misses).append(f"the call of {item.tool} {lasted}, the limit is {limit:g} ms")
    return hits, misses
