"""Finds texts that are nearly the same: candidates by MinHash over word triples, confirmed by their true share."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from zlib import crc32

__all__ = ["Likeness", "spoken_words"]

ALIKE = 0.8
"""Share of word triples (Jaccard) from which two texts are nearly the same."""
_BINS, _ROWS = 64, 4
"""Two texts that share 0.8 of their triples meet in one of the 16 groups of 4 bins with a chance of 0.9998."""
_MOST_KNOWN = 50
"""Texts that a group remembers, new ones in place of old ones: those made from one template are all in the same groups,
and comparing each with each would take hours."""
_WORD = re.compile(r"\w+")
_EMPTY = 1 << 32


def spoken_words(text: str) -> list[str]:
    """The words of a text, ignoring case."""
    return _WORD.findall(text.casefold())


class Likeness:
    """Remembers texts, and finds among them the one that is most like a new one; among many, one of the likest.

    One permutation hashing (Li, Owen and Zhang 2012): a triple's hash gives its bin and its rank there, and an empty
    bin takes the next one's (Shrivastava and Li 2014). CRC-32 and not `hash`, which differs from process to process.
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[int, bytes], list[int]] = {}
        self._triples: list[array[int]] = []

    def nearest(self, text: str) -> tuple[int, float] | None:
        """The position and share of the most similar text so far, if any is nearly the same; remembers `text`."""
        triples = _triples(spoken_words(text))
        number, best = len(self._triples), None
        candidates: set[int] = set()
        for group in _groups(triples):
            known = self._groups.setdefault(group, [])
            candidates.update(known)
            if len(known) < _MOST_KNOWN:
                known.append(number)
            else:
                known[number % _MOST_KNOWN] = number
        for candidate in sorted(candidates):
            others = set(self._triples[candidate])
            share = len(triples & others) / len(triples | others)
            if share >= ALIKE and (best is None or share > best[1]):
                best = candidate, share
        self._triples.append(array("L", sorted(triples)))
        return best


def _triples(words: list[str]) -> set[int]:
    if len(words) < 3:
        return {crc32(" ".join(words).encode())} if words else set()
    return {crc32(" ".join(words[i : i + 3]).encode()) for i in range(len(words) - 2)}


def _groups(triples: set[int]) -> Iterator[tuple[int, bytes]]:
    if not triples:
        return
    bins = [_EMPTY] * _BINS
    for triple in triples:
        place, rank = triple % _BINS, triple // _BINS
        bins[place] = min(bins[place], rank)
    for place in reversed(range(2 * _BINS)):
        if bins[place % _BINS] == _EMPTY:
            bins[place % _BINS] = bins[(place + 1) % _BINS]
    for first in range(0, _BINS, _ROWS):
        yield first, array("Q", bins[first : first + _ROWS]).tobytes()
