"""What was odd about the answers of one session, counted for each system, in however many processes it answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from evalwright.errors import counted
from evalwright.model.summary import DoubtCount, Replies
from evalwright.model.trace import Doubt, Trace

__all__ = ["Doubts", "doubts_about_latency", "texts", "together"]

_SHARE = 0.1
"""Share of a latency from which it matters what lengthened it."""


class Doubts:
    """The doubts about all answers of a session; one of each kind is kept."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, bool], DoubtCount]] = {}

    def add(self, variant: str, doubts: Sequence[Doubt], case_index: int, trial: int) -> None:
        """Count one answer of a variant, which may have several doubts of one kind."""
        found = self._found.setdefault(variant, {})
        seen: set[tuple[str, bool]] = set()
        for one in doubts:
            if (kind := (one.what, one.if_all)) not in seen:
                seen.add(kind)
                _count(found, DoubtCount(one.what, 1, one.example, one.if_all, case_index, trial))

    def replies(self, answers: Mapping[str, int]) -> dict[str, Replies]:
        """Those of each variant that gave so many `answers`."""
        return {name: Replies(total, _in_order(self._found.get(name, {}))) for name, total in answers.items()}


def doubts_about_latency(trace: Trace, judged: float, busy: Mapping[str, int]) -> Iterator[Doubt]:
    """That it may be too long, if evaluators kept the process from receiving the answer for so many seconds.

    `busy` are the milliseconds of each evaluator so far.
    """
    took = (trace.latency_ms or 0) / 1000
    if judged > _SHARE * took and trace.extra.get("source") != "replay":
        slowest = max(busy, key=lambda name: busy[name], default="")
        most = f", most of it by {slowest!r}; it can be added afterwards, with re-evaluate" if slowest else ""
        what = "the latency may include time in which evaluators kept this process busy"
        yield Doubt(what, f"up to {min(judged, took):.1f} of {took:.1f} s{most}")


def together(parts: Iterable[Mapping[str, Replies]]) -> dict[str, Replies]:
    """The replies of several parts of a run as those of one."""
    totals: dict[str, int] = {}
    found: dict[str, dict[tuple[str, bool], DoubtCount]] = {}
    for part in parts:
        for variant, replies in part.items():
            totals[variant] = totals.get(variant, 0) + replies.total
            for doubt in replies.doubts:
                _count(found.setdefault(variant, {}), doubt)
    return {variant: Replies(total, _in_order(found.get(variant, {}))) for variant, total in totals.items()}


def texts(found: Mapping[str, Replies]) -> Iterator[str]:
    """What is to be said of the replies of each variant."""
    for variant, replies in found.items():
        total = counted(replies.total, "reply", "replies")
        for doubt in replies.doubts:
            if not doubt.if_all:
                example = f": {doubt.example}" if doubt.example else ""
                yield f"{variant}: {doubt.what} in {doubt.times} of {total}{example}"
            elif doubt.times == replies.total:
                yield f"{variant}: {doubt.what} in any of {total}"


def _count(found: dict[tuple[str, bool], DoubtCount], doubt: DoubtCount) -> None:
    """Add doubts of one kind. Their example is that of the first case: which reply comes first is a matter of chance,
    and of how a run is divided into shards."""
    kind = (doubt.what, doubt.if_all)
    known = found.get(kind)
    if known is None:
        found[kind] = doubt
    elif _place(known) <= _place(doubt):
        found[kind] = msgspec.structs.replace(known, times=known.times + doubt.times)
    else:
        del found[kind]  # so that kinds of one case stay in the order in which its answer has them
        found[kind] = msgspec.structs.replace(doubt, times=known.times + doubt.times)


def _in_order(found: Mapping[tuple[str, bool], DoubtCount]) -> list[DoubtCount]:
    return sorted(found.values(), key=_place)


def _place(doubt: DoubtCount) -> tuple[int, int]:
    return doubt.case_index, doubt.trial
