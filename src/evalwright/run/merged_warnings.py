"""Warnings of shards as those of the run: their numbers are counted for the whole run, not shard by shard."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from evalwright.model.plan import Plan
from evalwright.model.summary import RunSummary
from evalwright.run.doubts import texts, together
from evalwright.run.outcomes import variant_of

__all__ = ["as_of_one_machine"]


def as_of_one_machine(found: Sequence[RunSummary | None], plan: Plan) -> Sequence[RunSummary | None]:
    """The summaries of shards, or in their place one with the warnings that all cells would have given on one machine.

    Shards whose summaries lack the counts, because an older version wrote them, keep their warnings as they are.
    """
    summaries = [one for one in found if one is not None]
    counts = [one.to_merge for one in summaries if one.to_merge is not UNSET]
    if not summaries or len(counts) < len(summaries):
        return found
    order = {variant.name: place for place, variant in enumerate(plan.variants)}
    replies = together(one.replies for one in counts)
    counted_texts = {text for one in counts for text in texts(one.replies)}
    closing = [text for one in summaries for text in one.call_warnings or () if text not in counted_texts]
    closing.sort(key=lambda text: order.get(variant_of(text, plan) or "", len(order)))
    calls = [*texts({name: replies[name] for name in sorted(replies, key=lambda name: order.get(name, len(order)))})]
    others = [
        text
        for one, its in zip(summaries, counts, strict=True)
        for text in one.warnings
        if text not in its.warnings and text not in (one.call_warnings or ())
    ]
    return [msgspec.structs.replace(summaries[0], warnings=others, call_warnings=[*calls, *closing])]
