"""Failures and errors of two sides by their reasons: what B gets wrong more often than A, or less often."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import closing, suppress

import msgspec

from evalwright.decisions.sides import WORTH_AN_INDEX
from evalwright.model.cell import Attempt, OfCase
from evalwright.model.cell_index import CellSelection, StaleIndex, index_of
from evalwright.model.damage import located_damage
from evalwright.model.decision import Decision, FailureCluster
from evalwright.model.protocols import RunReader
from evalwright.model.result import NOT_PASSED, Status
from evalwright.model.trace import TraceError
from evalwright.scoring.reasons import reasons_of

__all__ = ["explain"]

_LONGEST = 160
_ALIKE = 0.6
"""The share of common words (Jaccard) from which two reasons count as the same."""
_MOST = 300
"""How many signatures are compared with each other, the most frequent first."""
_WORDS = re.compile(r"\w+|…")


class _FailedVerdict(OfCase, gc=False):
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


_Reasons = list[tuple[str, str]]
"""Case and reason, each pair once for every cell."""


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


def explain(a: RunReader, b: RunReader, decisions: Iterable[Decision], *, keep_changed: bool = False) -> None:
    """Add to each decision the reasons of its variants in the cases that both ran, those more frequent in B first.

    Cases that changed are left out, unless these are kept. Verdicts that cannot be read are among the warnings.
    """
    listed = list(decisions)
    before = _reasons(a, {decision.variant_a for decision in listed})
    after = _reasons(b, {decision.variant_b for decision in listed})
    for compared in listed:
        identity = compared.identity
        left_out = frozenset((*identity.a_only, *identity.b_only, *(() if keep_changed else identity.cases_changed)))
        cases, in_cases = before.get(compared.variant_a, []), after.get(compared.variant_b, [])
        if compared.errors.b.not_run:
            cases = _in_cases(cases, _run_cases(b, compared.variant_b))
        if compared.errors.a.not_run:
            in_cases = _in_cases(in_cases, _run_cases(a, compared.variant_a))
        compared.clusters = _clusters(cases, in_cases, left_out, compared.trials)
        compared.warnings = [*dict.fromkeys([*compared.warnings, *located_damage(a, b)])]


def _in_cases(reasons: _Reasons, cases: Collection[str]) -> _Reasons:
    return [(case, text) for case, text in reasons if case in cases]


def _run_cases(reader: RunReader, variant: str) -> set[str]:
    """The cases of an unfinished run that have a trace."""
    return {trace.case_key for trace in reader.traces(_Attempt) if trace.variant_name == variant}


def _clusters(
    before: _Reasons, after: _Reasons, left_out: Collection[str], trials: tuple[int, int]
) -> list[FailureCluster]:
    counts: dict[str, _Count] = {}
    for side, reasons in enumerate((before, after)):
        for case, text in reasons:
            if case not in left_out:
                count = counts.get(text)
                if count is None:
                    count = counts[text] = _Count(text)
                count.cells[side] += 1
                count.cases[side].add(case)
    joined = _joined_signatures(sorted(counts.items(), key=lambda item: (-sum(item[1].cells), item[0])))
    for count in joined.values() if trials[0] != trials[1] else ():
        # Otherwise the side with more trials would seem to have every reason more often.
        count.cells = [cells and max(1, round(cells / (n or 1))) for cells, n in zip(count.cells, trials, strict=True)]
    clusters = [count.part(text) for text, count in joined.items()]
    return sorted(clusters, key=lambda cluster: (cluster.a - cluster.b, -cluster.a - cluster.b, cluster.signature))


def _joined_signatures(counted: Iterable[tuple[str, _Count]]) -> dict[str, _Count]:
    """Signatures of about the same words under the most frequent of them."""
    signatures: list[tuple[str, _Count]] = []
    having: dict[str, list[int]] = {}  # the places of those that have a word
    for text, count in counted:
        words = count.words
        # One that is alike shares at least one of any so many words: the rarest leave the fewest to compare.
        enough = len(words) - int(_ALIKE * len(words)) + 1
        rarest = sorted(words, key=lambda word: len(having.get(word, ())))[:enough]
        near = sorted({place for word in rarest for place in having.get(word, ())})
        alike = next((one for _, one in map(signatures.__getitem__, near) if _close(one.words, words)), None)
        if alike is None:
            if len(signatures) < _MOST:
                for word in words:
                    having.setdefault(word, []).append(len(signatures))
                signatures.append((text, count))
            continue
        alike.cells = [cell + other for cell, other in zip(alike.cells, count.cells, strict=True)]
        for cases, more in zip(alike.cases, count.cases, strict=True):
            cases |= more
    return dict(signatures)


def _close(one: frozenset[str], other: frozenset[str]) -> bool:
    common = len(one & other)
    return common >= _ALIKE * (len(one) + len(other) - common)


def _reasons(reader: RunReader, variants: Collection[str]) -> dict[str, _Reasons]:
    """By variant: of the newest attempt of each cell that did not pass, its case and the shape of each reason."""
    reasons: dict[str, _Reasons] = {variant: [] for variant in variants}
    for row in _failed_verdicts(reader, variants):
        case = row.case_key
        reason = reasons[row.variant_name]
        for shape in {_beginning(shape) for shape in reasons_of(row)}:
            reason.append((case, shape))
    return reasons


def _beginning(shape: str) -> str:
    return shape if len(shape) <= _LONGEST else f"{shape[:_LONGEST]}…"


def _failed_verdicts(reader: RunReader, variants: Collection[str]) -> Iterable[_FailedVerdict]:
    """The verdicts other than pass; only those are read if the run has an index."""
    if (index := index_of(reader, "never", least=WORTH_AN_INDEX)) is not None:
        with closing(index), suppress(StaleIndex):
            only = next(iter(variants)) if len(variants) == 1 else None
            verdicts = index.verdicts(_FailedVerdict, CellSelection(variant=only, statuses=NOT_PASSED))
            return [row for row in verdicts if row.variant_name in variants]
    newest: dict[tuple[str, str, int], _FailedVerdict] = {}
    for row in reader.verdicts(_FailedVerdict):
        if row.variant_name not in variants or (row.attempt == 1 and row.status not in NOT_PASSED):
            continue  # a first attempt that passed replaces nothing
        key = (row.case_key, row.variant_name, row.trial)
        if key not in newest or row.attempt >= newest[key].attempt:
            newest[key] = row
    failed = {key: row for key, row in newest.items() if row.status in NOT_PASSED}
    for trace in reader.traces(_Attempt) if failed else ():
        key = trace.case_key, trace.variant_name, trace.trial
        if key in failed and trace.attempt > failed[key].attempt:
            del failed[key]  # it was run again, and has no verdict yet
    return failed.values()
