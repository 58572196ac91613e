"""Groups and slices of the cases of runs, by their metadata and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from evalwright.decisions.pairing import CaseGroups
from evalwright.decisions.terms import Terms
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.model.cell import case_key
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case, metadata_text

__all__ = ["labelled"]

_METADATA = "metadata."
_EVERY = "*"
_MOST_VALUES = 50
"""The most values of a metadata key that slices cases if every key does: with more it is an id or a text."""


def labelled(reader: RunReader, terms: Terms, earlier: RunReader | None = None) -> CaseGroups:
    """Groups and slices of the cases of a run; an `earlier` one may have others, and they count in its own rate.

    Raises InputError for a key that no case has, and a case that cannot be read.
    """
    groups, slices, seen = _found_labels(reader, terms)
    if groups and earlier is not None:
        groups = _found_labels(earlier, terms).groups | groups
    there = ", ".join(sorted(seen)) or "neither tags nor metadata"
    unknown = [
        Problem("--slices", f"no slices by {key!r}{did_you_mean(key, seen)} (there are: {there})")
        for key in terms.slices
        if key not in seen and key != _EVERY
    ]
    if terms.group not in (None, "none") and not groups:
        unknown.append(Problem("--group", f"no case has {terms.group!r} in its metadata, by which to group"))
    if unknown:
        raise InputError(unknown)
    if _EVERY in terms.slices:
        values = Counter(key for key, _ in slices)
        slices = {key: cases for key, cases in slices.items() if values[key[0]] <= _MOST_VALUES or key[0] == "tag"}
    return CaseGroups(groups, slices)


class _CaseLabels(msgspec.Struct, gc=False):
    """The labels of a case stored by this version; decoding nothing else takes a fraction of the time."""

    id: str
    metadata: dict[str, Any] = {}
    tags: list[str] = []
    occurrence: int | msgspec.UnsetType = msgspec.UNSET
    schema_version: Literal["1.0"] = "1.0"

    @property
    def key(self) -> str:
        return case_key(self.id, self.occurrence)


class _FoundLabels(NamedTuple):
    groups: dict[str, str]
    slices: dict[tuple[str, str], list[str]]
    seen: set[str]
    """Keys that could define slices."""


def _found_labels(reader: RunReader, terms: Terms) -> _FoundLabels:
    """Groups and slices, and what there is. Raises InputError for a case that cannot be read."""
    lines: Callable[[], Iterable[bytes]] | None = getattr(reader, "case_lines", None)
    if lines is not None:
        # Cases of an earlier version, and damaged ones, are left to the reader.
        with suppress(msgspec.MsgspecError, RecursionError):
            return _labels_of(map(msgspec.json.Decoder(_CaseLabels).decode, lines()), terms)
    return _labels_of(reader.cases(), terms)


def _labels_of(cases: Iterable[_CaseLabels | Case], terms: Terms) -> _FoundLabels:
    labels = _FoundLabels({}, {}, set())
    names: set[str] = set()
    tagged, every = False, _EVERY in terms.slices
    for case in cases:
        key = case.key
        names.update(case.metadata)
        tagged = tagged or bool(case.tags)
        if terms.group is not None and terms.group in case.metadata:
            labels.groups[key] = metadata_text(case.metadata[terms.group])
        slices = [*(f"{_METADATA}{name}" for name in case.metadata), "tag"] if every else terms.slices
        for wanted_slice in slices:
            for value in _values(wanted_slice, case.tags, case.metadata):
                labels.slices.setdefault((wanted_slice.removeprefix(_METADATA), value), []).append(key)
    labels.seen.update([*(f"{_METADATA}{name}" for name in names), *["tag"] * tagged])
    return labels


def _values(key: str, tags: Sequence[str], metadata: Mapping[str, Any]) -> Iterable[str]:
    if key == "tag":
        return dict.fromkeys(tags)
    name = key.removeprefix(_METADATA)
    return [metadata_text(metadata[name])] if name in metadata else []
