"""Failures and errors of two sides by their reasons: what B gets wrong more often than A, or less often."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress

import msgspec

from evalwright.decisions.sides import WORTH_AN_INDEX
from evalwright.model.cell import Attempt, OfCase
from evalwright.model.cell_index import CellSelection, StaleIndex, index_of
from evalwright.model.decision import Decision, FailureCluster
from evalwright.model.protocols import RunReader
from evalwright.model.result import NOT_PASSED, Status
from evalwright.model.trace import TraceError
from evalwright.scoring.reasons import reasons_of

__all__ = ["clusters_of", "explain"]

_LONGEST = 160
_ALIKE = 0.6
"""The share of common words (Jaccard) from which two reasons count as the same."""
_MOST = 300
"""How many signatures are compared with each other, the most frequent first."""
_WORDS = re.compile(r"\w+|…")


class _Why(OfCase, gc=False):
    variant_name: str
    status: Status
    trial: int = 0
    attempt: Attempt = 1
    reasons: list[str] = msgspec.field(default_factory=list)
    error: TraceError | None = None


class _Attempt(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: Attempt = 1


class _Count:
    """Cells of one signature on both sides."""

    __slots__ = ("cases", "cells", "words")

    def __init__(self, text: str) -> None:
        self.words = frozenset(_WORDS.findall(text.lower()) or [""])
        self.cells = [0, 0]
        self.cases: tuple[set[str], set[str]] = (set(), set())

    def part(self, signature: str) -> FailureCluster:
        a, b = self.cases
        return FailureCluster(signature, self.cells[0], self.cells[1], sorted(a | b), sorted(b - a), sorted(a - b))


def clusters_of(
    a: RunReader, b: RunReader, before: str, after: str, left_out: Collection[str] = ()
) -> list[FailureCluster]:
    """The reasons of variant `before` of A and `after` of B, those that are more frequent in B first."""
    counts: dict[str, _Count] = {}
    for side, (reader, variant) in enumerate(((a, before), (b, after))):
        for case, text in _reasons(reader, variant):
            if case not in left_out:
                found = counts.get(text)
                if found is None:
                    found = counts[text] = _Count(text)
                found.cells[side] += 1
                found.cases[side].add(case)
    joined = _joined(sorted(counts.items(), key=lambda item: (-sum(item[1].cells), item[0])))
    clusters = [found.part(text) for text, found in joined.items()]
    return sorted(clusters, key=lambda one: (one.a - one.b, -one.a - one.b, one.signature))


def explain(a: RunReader, b: RunReader, decisions: Iterable[Decision], *, keep_changed: bool = False) -> None:
    """Add to each decision the reasons of its variants in the cases of both runs.

    Cases that changed are left out, unless these are kept.
    """
    for one in decisions:
        known = one.identity
        left_out = frozenset((*known.a_only, *known.b_only, *(() if keep_changed else known.cases_changed)))
        one.clusters = clusters_of(a, b, one.variant_a, one.variant_b, left_out)


def _joined(found: Iterable[tuple[str, _Count]]) -> dict[str, _Count]:
    """Signatures of about the same words under the most frequent of them."""
    kept: list[tuple[str, _Count]] = []
    having: dict[str, list[int]] = {}  # the places of those that have a word
    for text, count in found:
        words = count.words
        # One that is alike shares at least one of any so many words: the rarest leave the fewest to compare.
        enough = len(words) - int(_ALIKE * len(words)) + 1
        rarest = sorted(words, key=lambda word: len(having.get(word, ())))[:enough]
        near = sorted({place for word in rarest for place in having.get(word, ())})
        alike = next((one for _, one in map(kept.__getitem__, near) if _close(one.words, words)), None)
        if alike is None:
            if len(kept) < _MOST:
                for word in words:
                    having.setdefault(word, []).append(len(kept))
                kept.append((text, count))
            continue
        alike.cells = [one + other for one, other in zip(alike.cells, count.cells, strict=True)]
        for cases, more in zip(alike.cases, count.cases, strict=True):
            cases |= more
    return dict(kept)


def _close(one: frozenset[str], other: frozenset[str]) -> bool:
    common = len(one & other)
    return common >= _ALIKE * (len(one) + len(other) - common)


def _reasons(reader: RunReader, variant: str) -> Iterator[tuple[str, str]]:
    """Case and shape of each reason of the newest attempt of each cell that did not pass."""
    for row in _failed(reader, variant):
        case = row.case_key
        for shape in {reason.shape[:_LONGEST]: None for reason in reasons_of(row)}:
            yield case, shape


def _failed(reader: RunReader, variant: str) -> Iterable[_Why]:
    """The verdicts other than pass; only those are read if the run has an index."""
    if (index := index_of(reader, least=WORTH_AN_INDEX, make=False)) is not None:
        with closing(index), suppress(StaleIndex):
            return list(index.verdicts(_Why, CellSelection(variant=variant, statuses=NOT_PASSED)))
    newest: dict[tuple[str, int], _Why] = {}
    for row in reader.verdicts(_Why):
        if row.variant_name != variant or (row.attempt == 1 and row.status not in NOT_PASSED):
            continue  # a first attempt that passed replaces nothing
        key = (row.case_key, row.trial)
        if key not in newest or row.attempt >= newest[key].attempt:
            newest[key] = row
    found = {key: row for key, row in newest.items() if row.status in NOT_PASSED}
    for trace in reader.traces(_Attempt) if found else ():
        key = trace.case_key, trace.trial
        if trace.variant_name == variant and key in found and trace.attempt > found[key].attempt:
            del found[key]  # it was run again, and has no verdict yet
    return found.values()
