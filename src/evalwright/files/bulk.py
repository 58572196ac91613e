"""For very many values: finding repeated ones, and pausing or easing the garbage collector."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

__all__ = ["Repeats", "collector_eased", "collector_paused"]

_BUCKETS = 64
"""Hashes are kept in this many groups and searched group by group, so that only one group at a time is in a set."""
_YOUNG = 2_000
"""New objects after which the collector looks at them, as Python does from 3.14 on; 700 before."""
_OF_CALL = 20
"""Objects for each call in flight: about half of those that it holds."""


class Repeats:
    """Remembers the hashes of values. A hash that occurs twice marks values to compare: two values may share one."""

    def __init__(self) -> None:
        self._buckets = [array("q") for _ in range(_BUCKETS)]

    def add(self, value: Hashable) -> None:
        number = hash(value)
        self._buckets[number % _BUCKETS].append(number)

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def hashes(self) -> set[int]:
        """Hashes that occurred more than once; valid in this process only, as Python seeds the hashes of strings."""
        hashes: set[int] = set()
        for bucket in self._buckets:
            once: set[int] = set()
            for number in bucket if len(set(bucket)) < len(bucket) else ():
                if number in once:
                    hashes.add(number)
                once.add(number)
        return hashes


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector: while very many objects are built, each of its rounds would visit all of them in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def collector_eased(calls: int = 0) -> Iterator[None]:
    """Make the garbage collector ignore existing objects, and look less often at new ones.

    Each of so many calls in flight holds objects that are no garbage, and it would visit all of them many times.
    """
    young, *older = gc.get_threshold()
    if not (frozen := gc.get_freeze_count()):
        gc.freeze()
    if young:  # else whoever set it wants no collector
        gc.set_threshold(max(young, _YOUNG, _OF_CALL * calls), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
        if not frozen:
            gc.unfreeze()
