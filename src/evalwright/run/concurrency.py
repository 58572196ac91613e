"""How many cells run at once: as many as the suite says, and no more than there can be open files for."""

from __future__ import annotations

from collections.abc import Iterable

from evalwright.model.plan import Plan, Variant
from evalwright.run.cells import groups_of
from evalwright.session import owns_process
from evalwright.session.open_files import limit_of_files, room_for

__all__ = ["Group", "fitted", "most_at_once"]

Group = tuple[list[Variant], int]
"""Variants with one queue of cells, and the number of workers on it."""

_FILES = 8
"""Files that a cell may have open while a command starts: its pipes, both ends of each, and a handle of the process."""


def fitted(groups: Iterable[Group], total: int, most: int | None = None) -> list[Group]:
    """The groups for `total` cells, of which at most `most` run at once."""
    groups = [(variants, min(width, total)) for variants, width in groups]
    wanted = sum(width for _, width in groups)
    if most is None or most >= wanted:
        return groups
    return [(variants, max(1, width * most // wanted)) for variants, width in groups]


def most_at_once(plan: Plan, total: int) -> tuple[int | None, str]:
    """The most cells at once that there can be open files for, and a warning if that is fewer than asked for.

    Where the process is ours, its limit is raised as far as the system allows; elsewhere it is the caller's.
    """
    if not owns_process() or all(variant.adapter == "replay" for variant in plan.variants):
        return None, ""
    wanted = sum(width for _, width in fitted(groups_of(plan), total))
    most = room_for(wanted, _FILES)
    if most >= wanted:
        return None, ""
    limit = limit_of_files()
    return most, f"{most} cells run at once, not {wanted}: only {limit} files may be open (ulimit -n)"
