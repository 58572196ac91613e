"""Finds model calls that several instrumentations recorded: a framework's span, and that of the library it calls.

Most are below each other. An instrumentation that does not make its spans current, as that of LangChain, leaves them
beside each other; then they are recognised by the id of the response, or by their times and by what they tell of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

__all__ = ["RecordedCall", "same_calls"]

_UNCOUNTED = (0, 0)


class RecordedCall(msgspec.Struct, gc=False):
    """One span of a model call; start and end are of any type that can be compared."""

    id: str
    start: Any
    end: Any
    recorder: str
    """The instrumentation, or what tells it: one instrumentation does not record a call twice."""
    tokens: tuple[int, int]
    """Input and output; 0 for what is not known."""
    reply: str = ""
    """The reply in a form that can be compared; empty if it is not known."""
    response: str | None = None


def same_calls(calls: Iterable[RecordedCall], parents: Mapping[str, str | None]) -> dict[str, str]:
    """For each call that another span recorded, too, the id of that span, which began first and may be its parent.

    Calls that are already below each other are left out.
    """
    parents_of_calls: dict[str, str] = {}
    pairs: set[tuple[str, str]] = set()
    begun: list[RecordedCall] = []
    up = dict(parents)
    ordered = sorted(calls, key=lambda call: call.end, reverse=True)
    for inner in sorted(ordered, key=lambda call: call.start):
        begun = [call for call in begun if call.end >= inner.start]
        for outer in reversed(begun):
            if (
                (outer.id, inner.recorder) not in pairs
                and _is_same(outer, inner)
                and not _is_ancestor(outer, inner, up)
            ):
                parents_of_calls[inner.id] = up[inner.id] = outer.id
                pairs.add((outer.id, inner.recorder))
                break
        begun.append(inner)
    return parents_of_calls


def _is_same(outer: RecordedCall, inner: RecordedCall) -> bool:
    if outer.recorder == inner.recorder:
        return False
    if outer.response is not None and outer.response == inner.response:
        return True
    tokens, texts = {outer.tokens, inner.tokens}, {outer.reply, inner.reply}
    differ = len(tokens - {_UNCOUNTED}) == 2 or len(texts - {""}) == 2
    agree = (len(tokens) == 1 and _UNCOUNTED not in tokens) or (len(texts) == 1 and "" not in texts)
    return inner.end <= outer.end and agree and not differ


def _is_ancestor(call: RecordedCall, other: RecordedCall, parents: Mapping[str, str | None]) -> bool:
    return call.id in _above(other.id, parents) or other.id in _above(call.id, parents)


def _above(id: str, parents: Mapping[str, str | None]) -> set[str]:
    above: set[str] = set()
    at = parents.get(id)
    while at is not None and at not in above:
        above.add(at)
        at = parents.get(at)
    return above
