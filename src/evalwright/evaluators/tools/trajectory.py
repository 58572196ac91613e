"""Which tools were called, how often and in which order (AgentEvals 1.0, `tool_trajectory`)."""

from __future__ import annotations

from collections.abc import Sequence
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
"""Each expected call, the call that met it, and in words what is wrong if none did."""


class TrajectoryCall(msgspec.Struct, frozen=True):
    """A call that is expected. `args` names arguments that must be deeply equal; others may be there too."""

    tool: str
    args: Any = None
    max_duration_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def fits(self, call: TracedCall) -> bool:
        if not isinstance(self.args, dict):
            return True
        given = call.args
        return isinstance(given, dict) and all(
            key in given and deeply_equal(value, given[key]) for key, value in self.args.items()
        )


class ToolTrajectory(msgspec.Struct, frozen=True):
    """Share of expected calls that were made. `any_order` also counts `minimums`, `exact` allows no other calls."""

    mode: Literal["any_order", "in_order", "exact"] = "any_order"
    minimums: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}
    expected: list[TrajectoryCall] = []

    uses_case = False

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        if values.get("minimums") and values.get("mode", "any_order") != "any_order":
            return [Problem("", "'minimums' needs the mode any_order", key="minimums")]
        return []

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if not messages_of(trace):
            return banded(0.0, misses=["No trace available"])
        calls = calls_of(trace)
        extra: list[str] = []
        if self.mode == "any_order":
            found, asked = _in_any_order(self.expected, calls), len(self.expected)
        elif self.mode == "in_order":
            found, asked = _in_order(self.expected, calls), len(self.expected)
        else:
            found, asked, extra = _exactly(self.expected, calls)
        hits = [f"{item.tool} was called as expected" for item, call, _ in found if call is not None]
        misses = [why for _, call, why in found if call is None] + extra
        enough, few = _counted(self.minimums, calls)
        quick, slow = _timed(found)
        if not self.expected and not self.minimums:
            hits = ["no call is expected"]
            return banded(1.0, hits, extra, detail={"calls": [call.name for call in calls]})
        met = len(hits) + len(enough) + len(quick)
        total = asked + len(self.minimums) + len(quick) + len(slow)
        detail = {"calls": [call.name for call in calls]}
        return banded(met / total if total else 1.0, hits + enough + quick, misses + few + slow, detail=detail)


def _in_any_order(expected: Sequence[TrajectoryCall], calls: Sequence[TracedCall]) -> _Found:
    """Each expected call takes the first fitting call that no other has taken."""
    free = list(calls)
    found: _Found = []
    for item in expected:
        call = next((call for call in free if call.name == item.tool and item.fits(call)), None)
        if call is not None:
            free.remove(call)
        found.append((item, call, f"{item.tool} was not called as expected"))
    return found


def _in_order(expected: Sequence[TrajectoryCall], calls: Sequence[TracedCall]) -> _Found:
    """One walk through the calls; a call of the right name with other arguments is used up all the same."""
    rest = iter(calls)
    found: _Found = []
    for item in expected:
        call = next((call for call in rest if call.name == item.tool), None)
        if call is None:
            found.append((item, None, f"{item.tool} was not called, or not in this order"))
        else:
            fitting = call if item.fits(call) else None
            found.append((item, fitting, f"{item.tool} was called with other arguments"))
    return found


def _exactly(expected: Sequence[TrajectoryCall], calls: Sequence[TracedCall]) -> tuple[_Found, int, list[str]]:
    found: _Found = []
    for i, item in enumerate(expected):
        call = calls[i] if i < len(calls) else None
        fits = call is not None and call.name == item.tool and item.fits(call)
        seen = "nothing more" if call is None else call.name
        found.append((item, call if fits else None, f"call {i + 1}: expected {item.tool}, found {seen}"))
    surplus = [f"unexpected call {call.name}" for call in calls[len(expected) :]] if expected else []
    return found, max(len(expected), len(calls)) if expected else 0, surplus


def _counted(minimums: dict[str, int], calls: Sequence[TracedCall]) -> tuple[list[str], list[str]]:
    hits: list[str] = []
    misses: list[str] = []
    for tool, least in minimums.items():
        count = sum(call.name == tool for call in calls)
        said = f"{tool} was called {count} times, expected at least {least}"
        (hits if count >= least else misses).append(said)
    return hits, misses


def _timed(found: _Found) -> tuple[list[str], list[str]]:
    """A time limit is one more expectation; for a call without a duration it is dropped."""
    hits: list[str] = []
    misses: list[str] = []
    for item, call, _ in found:
        limit = item.max_duration_ms
        if limit is None or (call is not None and call.duration_ms is None):
            continue
        took = None if call is None else call.duration_ms
        within = took is not None and took <= limit
        lasted = "was not made" if took is None else f"took {took:g} ms"
        (hits if within else misses).append(f"the call of {item.tool} {lasted}, the limit is {limit:g} ms")
    return hits, misses
