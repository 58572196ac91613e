"""What was odd about the answers of one session, counted for each system, in however many processes it answered.

The shards of a run count for themselves; of the merged run, the numbers are those of all its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import UNSET

from evalwright.errors import counted
from evalwright.model.plan import Plan
from evalwright.model.summary import DoubtCount, Replies, RunSummary
from evalwright.model.trace import Doubt, Trace
from evalwright.run.outcomes import variant_of

__all__ = ["Doubts", "as_of_one_machine", "doubts_about_latency", "texts"]

_SHARE = 0.1
"""Share of a latency from which it matters what lengthened it."""


class Doubts:
    """The doubts about all answers of a session; one of each kind is kept."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, bool], DoubtCount]] = {}

    def add(self, variant: str, doubts: Sequence[Doubt], case_index: int, trial: int) -> None:
        """Count one answer of a variant, which may have several doubts of one kind."""
        counts = self._found.setdefault(variant, {})
        seen: set[tuple[str, bool]] = set()
        for doubt in doubts:
            if (kind := (doubt.what, doubt.if_all)) not in seen:
                seen.add(kind)
                _count(counts, DoubtCount(doubt.what, 1, doubt.example, doubt.if_all, case_index, trial))

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


def _together(parts: Iterable[Mapping[str, Replies]]) -> dict[str, Replies]:
    """The replies of several parts of a run as those of one."""
    totals: dict[str, int] = {}
    counts: dict[str, dict[tuple[str, bool], DoubtCount]] = {}
    for part in parts:
        for variant, replies in part.items():
            totals[variant] = totals.get(variant, 0) + replies.total
            for doubt in replies.doubts:
                _count(counts.setdefault(variant, {}), doubt)
    return {variant: Replies(total, _in_order(counts.get(variant, {}))) for variant, total in totals.items()}


def as_of_one_machine(of_shards: Sequence[RunSummary | None], plan: Plan) -> Sequence[RunSummary | None]:
    """The summaries of shards, or in their place one with the warnings that all cells would have given on one machine.

    Shards whose summaries lack the counts, because an older version wrote them, keep their warnings as they are.
    """
    summaries = [summary for summary in of_shards if summary is not None]
    counts = [summary.to_merge for summary in summaries if summary.to_merge is not UNSET]
    if not summaries or len(counts) < len(summaries):
        return of_shards
    order = {variant.name: place for place, variant in enumerate(plan.variants)}
    replies = _together(count.replies for count in counts)
    counted_texts = {text for count in counts for text in texts(count.replies)}
    closing = [text for summary in summaries for text in summary.call_warnings or () if text not in counted_texts]
    closing.sort(key=lambda text: order.get(variant_of(text, plan) or "", len(order)))
    calls = [*texts({name: replies[name] for name in sorted(replies, key=lambda name: order.get(name, len(order)))})]
    others = [
        text
        for summary, count in zip(summaries, counts, strict=True)
        for text in summary.warnings
        if text not in count.warnings and text not in (summary.call_warnings or ())
    ]
    return [msgspec.structs.replace(summaries[0], warnings=others, call_warnings=[*calls, *closing])]


def texts(replies_of: Mapping[str, Replies]) -> Iterator[str]:
    """The warnings about the replies of each variant."""
    for variant, replies in replies_of.items():
        total = counted(replies.total, "reply", "replies")
        for doubt in replies.doubts:
            if not doubt.if_all:
                example = f": {doubt.example}" if doubt.example else ""
                yield f"{variant}: {doubt.what} in {doubt.times} of {total}{example}"
            elif doubt.times == replies.total:
                yield f"{variant}: {doubt.what} in any of {total}"


def _count(counts: dict[tuple[str, bool], DoubtCount], doubt: DoubtCount) -> None:
    """Add doubts of one kind. Their example is that of the first case: which reply comes first is a matter of chance,
    and of how a run is divided into shards."""
    kind = (doubt.what, doubt.if_all)
    known = counts.get(kind)
    if known is None:
        counts[kind] = doubt
    elif _place(known) <= _place(doubt):
        counts[kind] = msgspec.structs.replace(known, times=known.times + doubt.times)
    else:
        del counts[kind]  # so that kinds of one case stay in the order in which its answer has them
        counts[kind] = msgspec.structs.replace(doubt, times=known.times + doubt.times)


def _in_order(counts: Mapping[tuple[str, bool], DoubtCount]) -> list[DoubtCount]:
    return sorted(counts.values(), key=_place)


def _place(doubt: DoubtCount) -> tuple[int, int]:
    return doubt.case_index, doubt.trial
