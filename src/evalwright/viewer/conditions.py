"""The selection and order of a filter, as SQL over the tables of a run's cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from evalwright.viewer.filters import Filter
from evalwright.viewer.labelled import labelled_condition

__all__ = ["condition_of", "literal_pattern", "marks", "sorting_of", "wanted_outcomes"]

_SORTS = {
    "suite": "number",
    "status": "instr('error fail borderline skip pass', coalesce(status, 'pass'))",
    **{name: name for name in ("latency", "cost", "tokens", "score", "duration")},
}


def sorting_of(chosen: Filter) -> str:
    column, down = _SORTS[chosen.sort], " DESC" if chosen.descending else ""
    if chosen.sort == "suite":
        return f"number{down}"
    # Missing values come last in either direction. The other direction is the same backwards, so that one index gives
    # both without sorting.
    return f"{column} DESC, number DESC" if chosen.descending else f"{column} ASC NULLS LAST, number"


def wanted_outcomes(chosen: Filter) -> tuple[str, ...]:
    """The outcomes for which the evaluator of a filter stands."""
    return ("pass",) if chosen.verdict == "pass" else ("fail", "error")


def condition_of(chosen: Filter, *, one_by_one: bool = False) -> tuple[str, list[Any]]:
    """The condition with its values; empty if all cells are chosen.

    `one_by_one` looks up the evaluator's outcome for each cell, which is faster if most outcomes are the same.
    """
    parts: list[str] = []
    values: list[Any] = []

    def add(sql: str, *given: Any) -> None:
        parts.append(sql)
        values.extend(given)

    listed = {
        "status": chosen.status,
        "variant": chosen.variant,
        "error": chosen.error,
        "trial": chosen.trial,
        "case_key": chosen.case,
    }
    for column, wanted in listed.items():
        if wanted:
            add(f"{column} IN ({marks(wanted)})", *wanted)
    if chosen.reason:
        add(f"number IN (SELECT number FROM reasons WHERE reason IN ({marks(chosen.reason)}))", *chosen.reason)
    if chosen.tag:
        add(f"position IN (SELECT position FROM tags WHERE tag IN ({marks(chosen.tag)}))", *chosen.tag)
    for name in dict.fromkeys(name for name, _ in chosen.metadata):
        among = [value for other, value in chosen.metadata if other == name]
        add(f"position IN (SELECT position FROM metadata WHERE name = ? AND value IN ({marks(among)}))", name, *among)
    if chosen.flaky:
        add("flaky")
    if chosen.label:
        sql, given = labelled_condition(chosen.label, chosen.evaluator)
        add(sql, *given)
    _add_ranges(chosen, add, one_by_one=one_by_one)
    for word in chosen.words:
        in_text = "number IN (SELECT number FROM temp.in_text WHERE word = ?)"
        if chosen.in_messages:
            add(f"({in_text} OR number IN (SELECT number FROM temp.in_messages WHERE word = ?))", word, word)
        else:
            add(in_text, word)
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


def _add_ranges(chosen: Filter, add: Any, *, one_by_one: bool) -> None:
    of_evaluator: list[str] = []
    scores: list[float] = []
    for name, bound in chosen.ranges.items():
        column, _, end = name.rpartition("_")
        sign = ">=" if end == "min" else "<="
        if column == "score" and chosen.evaluator:
            of_evaluator.append(f"score {sign} ?")
            scores.append(bound)
        else:
            # The index of the sorted column is used; a sign before another column keeps that one's from being used.
            sorts = chosen.sort in ("suite", column)
            add(f"{'' if sorts else '+'}{column} {sign} ?", bound)
    if chosen.evaluator:
        if not of_evaluator or chosen.verdict:
            of_evaluator.append(f"outcome IN ({', '.join(map(repr, wanted_outcomes(chosen)))})")
        message = f"FROM outcomes WHERE evaluator = ? AND {' AND '.join(of_evaluator)}"
        condition = f"EXISTS (SELECT 1 {message} AND outcomes.number = cells.number)"
        add(condition if one_by_one else f"number IN (SELECT number {message})", *(chosen.evaluator, *scores))


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def literal_pattern(word: str) -> str:
    """A word as a GLOB pattern that matches it literally."""
    return re.sub(r"[*?\[]", r"[\g<0>]", word)
