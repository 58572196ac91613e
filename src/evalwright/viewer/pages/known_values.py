"""Whether runs have the values that a filter names: a misspelt one would leave no cell, as if there were none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evalwright.viewer.filters import METADATA, Filter
from evalwright.viewer.pages import ShownRun
from evalwright.viewer.query import BadQuery, unknown_value
from evalwright.viewer.table import CellTable

__all__ = ["check_values"]


def check_values(runs: Sequence[ShownRun], chosen: Filter) -> None:
    """Raises BadQuery for a value that none of these runs has, nor will have when it goes on.

    A run whose table is still being made may have any.
    """
    tables = [run.table for run in runs]
    known = [table for table in tables if table is not None]
    if len(known) < len(tables):
        return
    for what, name, value in _named_values(chosen):
        planned = list(dict.fromkeys(planned_value for run in runs for planned_value in _planned_values(run, what)))
        if value in planned or any(table.has(what, value) for table in known):
            continue
        if what == "metadata":
            raise BadQuery(f"{name!r}: no case has metadata of this name{_there_are(known)}")
        raise unknown_value(name, value, list(dict.fromkeys([*planned, *_some_values(known, what)])))


def _named_values(chosen: Filter) -> Iterator[tuple[str, str, str]]:
    """What each value of a filter is one of, the key that gives it, and itself."""
    for what, values in (
        ("evaluator", chosen.evaluators),
        ("tag", chosen.tag),
        ("variant", chosen.variant),
        ("error", chosen.error),
        ("reason", chosen.reason),
        ("case", chosen.case),
        ("trial", map(str, chosen.trial)),
    ):
        yield from ((what, what, value) for value in values)
    columns = (name.removeprefix(METADATA) for name in chosen.columns if name.startswith(METADATA))
    for name in (*(name for name, _ in chosen.metadata), *columns):
        yield "metadata", METADATA + name, name


def _planned_values(run: ShownRun, what: str) -> list[str]:
    """The values that cells of a run can have although none has it yet."""
    plan = run.plan
    if what == "evaluator":
        return [spec.name for spec in plan.evaluators]
    if what == "variant":
        return [variant.name for variant in plan.variants]
    if what == "trial":
        return [str(trial) for trial in range(max(1, *map(plan.trials_of, plan.variants)))]
    return []


def _some_values(tables: Iterable[CellTable], what: str) -> Iterator[str]:
    """Values to choose from; those of reasons and cases are too many, and mean nothing to a reader."""
    for table in tables if what in ("tag", "error", "evaluator") else ():
        yield from table.values(what)


def _there_are(tables: Sequence[CellTable]) -> str:
    names = list(dict.fromkeys(name for table in tables for name in table.values("metadata")))
    return f" (there are: {', '.join(names[:20])})" if names else ""
