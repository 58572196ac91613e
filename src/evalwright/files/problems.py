"""Problems by kind: a mistake that every case of a large dataset has would hide all others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from evalwright.errors import Problem

__all__ = ["ProblemKinds"]

_MOST_KINDS, _MOST_ALIKE = 1000, 3
"""Kinds of problems that are held, as each case may have one of its own, and the problems of a kind that are listed."""
_POSITION = re.compile(r"\[\d+\]")
"""The position of a case in a key."""
_CASE = re.compile(r" \(case (['\"]).*\1\)$", re.DOTALL)
"""The case at the end of a message, for files whose lines are not known."""


@dataclass(slots=True)
class _Kind:
    listed: list[Problem]
    more: int


class ProblemKinds:
    """Problems that differ only in place and case are of one kind: the first three are held, the others counted."""

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        self._kinds: dict[tuple[str, str, str], _Kind] = {}
        self._others = 0
        for problem in problems:
            self.add(problem)

    def add(self, problem: Problem) -> None:
        name = (problem.file, _POSITION.sub("", problem.key), _CASE.sub("", problem.message))
        kind = self._kinds.get(name)
        if kind is None and len(self._kinds) == _MOST_KINDS:
            self._others += 1
            return
        if kind is None:
            kind = self._kinds[name] = _Kind([], 0)
        if len(kind.listed) < _MOST_ALIKE:
            kind.listed.append(replace(problem, more=0))
            kind.more += problem.more
        else:
            kind.more += 1 + problem.more

    def __iter__(self) -> Iterator[Problem]:
        """The first problems of each kind, the last of them with the number of further places."""
        for kind in self._kinds.values():
            *listed, last = kind.listed
            yield from listed
            yield replace(last, more=kind.more)
        if self._others:
            yield Problem("", "a problem of yet another kind", more=self._others - 1)
