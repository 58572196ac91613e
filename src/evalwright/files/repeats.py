"""Which values come more than once in a stream of any length, at eight bytes a value."""

from __future__ import annotations

from array import array
from collections.abc import Hashable

__all__ = ["Repeats"]

_BUCKETS = 64
"""Hashes are looked through in so many shares, so that only one of them is ever in a set."""


class Repeats:
    """Remembers the hashes of values; a hash that came twice names a value to look at again."""

    def __init__(self) -> None:
        self._buckets = [array("q") for _ in range(_BUCKETS)]

    def add(self, value: Hashable) -> None:
        number = hash(value)
        self._buckets[number % _BUCKETS].append(number)

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def hashes(self) -> set[int]:
        """Hashes that came more than once, in this process."""
        found: set[int] = set()
        for bucket in self._buckets:
            once: set[int] = set()
            for number in bucket if len(set(bucket)) < len(bucket) else ():
                if number in once:
                    found.add(number)
                once.add(number)
        return found
