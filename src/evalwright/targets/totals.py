"""Sums over the calls and turns of one answer: a number of tokens that no call reports stays None."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from evalwright.model.chat import Usage
from evalwright.model.trace import Doubt, Metrics

__all__ = ["add_metrics", "add_usage", "doubts_of_all", "joined", "sum_of_all"]

N = TypeVar("N", int, float)


def add_usage(total: Metrics, usage: Usage) -> None:
    """Add the tokens of one model call. The part of its input that came from the provider's cache is counted
    separately."""
    total.token_input = _sum(total.token_input, usage.token_input)
    total.token_output = _sum(total.token_output, usage.token_output)
    total.token_thinking = _sum(total.token_thinking, usage.token_thinking)
    cached = {"cache_read_tokens": usage.token_cached, "cache_write_tokens": usage.token_cache_write}
    if any(cached.values()):
        more = {name: total.custom.get(name, 0) + tokens for name, tokens in cached.items() if tokens}
        total.custom = {**total.custom, **more}


def add_metrics(total: Metrics, turn: Metrics) -> None:
    """Add one turn of a system, except for its cost."""
    add_usage(total, Usage(turn.token_input, turn.token_output, turn.token_thinking))
    total.cost_thinking_usd = _sum(total.cost_thinking_usd, turn.cost_thinking_usd)


def sum_of_all(numbers: Sequence[N | None]) -> N | None:
    """The sum; None if any is unknown, as a part of a cost would pass limits that all of it exceeds."""
    known = [number for number in numbers if number is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(numbers) else None


def doubts_of_all(turns: Sequence[Sequence[Doubt]]) -> tuple[Doubt, ...]:
    """One doubt of each kind; what is only worth saying if it is so of all answers must be so of all turns."""
    first_of_kind: dict[tuple[str, bool], Doubt] = {}
    for turn in turns:
        for doubt in turn:
            first_of_kind.setdefault((doubt.what, doubt.if_all), doubt)
    absent = [{doubt.what for doubt in turn if doubt.if_all} for turn in turns]
    return tuple(
        part for part in first_of_kind.values() if not part.if_all or all(part.what in turn for turn in absent)
    )


def joined(texts: Iterable[str | None]) -> str | None:
    """The texts joined by blank lines; None if there are none."""
    return "\n\n".join(filter(None, texts)) or None


def _sum(so_far: N | None, more: N | None) -> N | None:
    if so_far is None or more is None:
        return more if so_far is None else so_far
    return so_far + more
