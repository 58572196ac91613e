"""The changes between two texts, by words; by lines if they are long; and between two lists of calls.

The work is bounded for any texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from evalwright.viewer.texts import words_of

__all__ = ["Change", "abridged", "changed_calls", "changes", "sides"]

_BY_WORDS = 1_000_000
"""Bytes of a text up to which changed lines are compared word by word."""
_PAIRS = 400_000
"""Pairs of words that one comparison may examine: `difflib` is quadratic."""
_LINES = 1_000_000
_SAME, _CHANGED = 600, 4_000
"""Characters of an unchanged and of a changed stretch, where not everything can be shown."""


class Change(NamedTuple):
    """A stretch of text: `kind` is `same`, `added` or `removed`; or `left out`, and then the text says how much."""

    kind: str
    text: str


def changes(before: str, after: str) -> list[Change]:
    """From one text to the other."""
    return list(_joined_changes(_changes(before, after)))


def changed_calls(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """From some calls to others, each `name(...)` and a line: a call is only compared with one of the same name."""
    return list(_joined_changes(_changes_of_calls([*before], [*after])))


def sides(found: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    """The same for two columns: what was, with what was removed; what is, with what was added."""
    was = [change for change in found if change.kind != "added"]
    return was, [change for change in found if change.kind != "removed"]


def abridged(found: Sequence[Change], room: int) -> list[Change]:
    """The changes in about `room` characters: of long stretches the two ends, and at last only the first changes."""
    if sum(len(change.text) for change in found) <= room:
        return [*found]
    kept: list[Change] = []
    for number, part in enumerate(found):
        if room <= 0:
            rest = sum(len(each.text) for each in found[number:])
            return [*kept, Change("left out", f"{rest:,} characters")]
        kept += _ends(part, min(room, _SAME if part.kind == "same" else _CHANGED))
        room -= min(len(part.text), _SAME if part.kind == "same" else _CHANGED)
    return kept


def _ends(change: Change, most: int) -> list[Change]:
    hidden = len(change.text) - most
    if hidden <= 0:
        return [change]
    first, last = change.text[: most // 2], change.text[most // 2 + hidden :]
    return [Change(change.kind, first), Change("left out", f"{hidden:,} characters"), Change(change.kind, last)]


def _changes(before: str, after: str) -> Iterator[Change]:
    a, b = list(words_of(before)), list(words_of(after))
    if len(a) * len(b) <= _PAIRS:
        yield from _changes_of_tokens(a, b)
        return
    fine = max(len(before), len(after)) <= _BY_WORDS
    budget = _PAIRS if fine else 0
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for kind, i1, i2, j1, j2 in _opcodes(old, new, _LINES):
        gone, came = "".join(old[i1:i2]), "".join(new[j1:j2])
        if kind == "equal":
            yield Change("same", gone)
            continue
        words, others = list(words_of(gone)), list(words_of(came))
        if kind == "replace" and 0 < len(words) * len(others) <= budget:
            budget -= len(words) * len(others)
            yield from _changes_of_tokens(words, others)
        else:
            yield Change("removed", gone)
            yield Change("added", came)


def _changes_of_calls(a: list[str], b: list[str]) -> Iterator[Change]:
    budget = _PAIRS
    for kind, i1, i2, j1, j2 in _opcodes(a, b, _PAIRS):
        gone, came = a[i1:i2], b[j1:j2]
        if kind == "equal":
            yield Change("same", "".join(gone))
            continue
        names, others = ([call.partition("(")[0] for call in calls] for calls in (gone, came))
        for same, m1, m2, n1, n2 in _opcodes(names, others, _PAIRS):
            pairs = zip(gone[m1:m2], came[n1:n2], strict=True) if same == "equal" else ()
            for old, new in pairs:
                words, later = list(words_of(old)), list(words_of(new))
                budget -= len(words) * len(later)
                yield from (
                    _changes_of_tokens(words, later) if budget > 0 else (Change("removed", old), Change("added", new))
                )
            if same != "equal":
                yield Change("removed", "".join(gone[m1:m2]))
                yield Change("added", "".join(came[n1:n2]))


def _changes_of_tokens(a: list[str], b: list[str]) -> Iterator[Change]:
    for kind, i1, i2, j1, j2 in _opcodes(a, b, _PAIRS):
        if kind == "equal":
            yield Change("same", "".join(a[i1:i2]))
        else:
            yield Change("removed", "".join(a[i1:i2]))
            yield Change("added", "".join(b[j1:j2]))


def _opcodes(a: list[str], b: list[str], most: int) -> Iterator[tuple[str, int, int, int, int]]:
    """Like `SequenceMatcher.get_opcodes`, without the common beginning and end; in one piece if that is too much."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    if start:
        yield "equal", 0, start, 0, start
    if len(inner_a) * len(inner_b) > most:
        yield "replace", start, len(a) - end, start, len(b) - end
    elif inner_a or inner_b:
        for kind, i1, i2, j1, j2 in SequenceMatcher(None, inner_a, inner_b, autojunk=False).get_opcodes():
            yield kind, start + i1, start + i2, start + j1, start + j2
    if end:
        yield "equal", len(a) - end, len(a), len(b) - end, len(b)


def _joined_changes(found: Iterator[Change]) -> Iterator[Change]:
    """Removed and added words with only spaces between them are one change, removals first."""
    gone, came, space = "", "", ""
    for change in found:
        if change.kind != "same":
            gone, came = gone + space, came + space
            space = ""
            gone, came = (gone + change.text, came) if change.kind == "removed" else (gone, came + change.text)
        elif gone and came and not space and change.text.strip(" ") == "":
            space = change.text
        else:
            yield from _change(gone, came)
            yield Change("same", space + change.text)
            gone, came, space = "", "", ""
    yield from _change(gone, came)
    if space:
        yield Change("same", space)


def _change(gone: str, came: str) -> Iterator[Change]:
    if gone:
        yield Change("removed", gone)
    if came:
        yield Change("added", came)
