"""What the results in a stream of Claude Code add up to: it prints one at the end of each request of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evalwright.files.plain import mapping_or_empty
from evalwright.importers.claude_lines import SessionLine
from evalwright.importers.record_values import dictionaries
from evalwright.importers.sources import ImportNotes
from evalwright.importers.token_counts import Tokens, anthropic_tokens, recorded_dollars, recorded_milliseconds

__all__ = ["SessionTotals", "session_totals"]


class SessionTotals(NamedTuple):
    """The totals of a session; None for what its results do not say."""

    tokens: Tokens | None
    cost_usd: float | None
    latency_ms: int | None
    num_turns: int | None


def session_totals(results: Sequence[SessionLine], notes: ImportNotes) -> SessionTotals:
    """The totals of the results of one session.

    Tokens, time and turns are those of the request that a result ends. The cost, and the tokens of each model, are
    those of the program so far, which may have answered several requests.
    """
    usages = [result.usage for result in results if isinstance(result.usage, dict)]
    times = [ms for result in results if (ms := recorded_milliseconds(result.duration_ms, notes)) is not None]
    turns = [result.num_turns for result in results if type(result.num_turns) is int]
    costs: list[float] = []
    before: SessionLine | None = None
    for result in results:
        cost = recorded_dollars(result.total_cost_usd, notes)
        if cost is not None:
            if costs and before is not None and _goes_on(before, result, costs[-1], cost):
                costs.pop()
            costs.append(cost)
            before = result
    return SessionTotals(
        anthropic_tokens(notes, *usages) if results and len(usages) == len(results) else None,
        sum(costs) if costs else None,
        sum(times) if times else None,
        sum(turns) if turns else None,
    )


def _goes_on(before: SessionLine, result: SessionLine, cost_before: float, cost: float) -> bool:
    """Whether a result is of the same program as the one before, so that its cost includes that one's."""
    totals = _written_by_models(before), _written_by_models(result)
    written = mapping_or_empty(result.usage).get("output_tokens")
    if totals[0] is None or totals[1] is None or type(written) is not int:
        return cost >= cost_before
    return totals[1] >= totals[0] + written


def _written_by_models(result: SessionLine) -> int | None:
    counts: list[Any] = [
        model.get("outputTokens") for model in dictionaries([*mapping_or_empty(result.modelUsage).values()])
    ]
    return sum(counts) if counts and all(type(count) is int for count in counts) else None
