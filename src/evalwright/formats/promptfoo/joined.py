"""Several configurations as one: prompts, providers, tests and other lists are joined, of all else the last counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import Place
from evalwright.files.yaml import Document
from evalwright.formats.promptfoo.file import mapping_of, resolved
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.sources import Sources
from evalwright.formats.shared.findings import Findings

__all__ = ["joined_configuration"]

_SETS: tuple[Place, ...] = (("prompts",), ("providers",))
_LISTS: tuple[Place, ...] = (
    *_SETS, ("tests",), ("scenarios",), ("extensions",), ("derivedMetrics",), ("defaultTest", "assert"),
)  # fmt: skip
_MAPPINGS: tuple[Place, ...] = (
    *((key,) for key in ("defaultTest", "env", "evaluateOptions", "commandLineOptions", "nunjucksFilters")),
    *(("defaultTest", key) for key in ("vars", "options", "metadata")),
)


def joined_configuration(path: Path, others: Sequence[Path], sources: Sources) -> tuple[dict[str, Any], Findings]:
    """The configuration in a file, joined with those in others, and where to report what is wrong in them.

    Raises InputError for a file that cannot be read, and for one in another folder, to which its paths would be
    relative.
    """
    folder = path.resolve().parent
    document, raw = mapping_of(path, folder)
    if not others:
        return raw, Findings(path, document)
    if strange := [other for other in others if other.resolve().parent != folder]:
        raise InputError([Problem(str(stray), f"expected a file in the folder of {path}") for stray in strange])
    whole = _Joined(path, document, sources)
    whole.include(raw, Findings(path, document))
    for other in others:
        document, raw = mapping_of(other, folder)
        whole.include(raw, Findings(other, document))
    return whole.raw, whole


class _Joined(Findings):
    """What is wrong in several files, reported where each part of the whole was written."""

    def __init__(self, path: Path, document: Document, sources: Sources) -> None:
        super().__init__(path, document)
        self._sources = sources
        self.raw: dict[str, Any] = {}
        self._parts: dict[Place, tuple[Findings, Place]] = {}
        """Where the values at some places of the whole were written."""

    def include(self, raw: dict[str, Any], part: Findings) -> None:
        """Join one more file, in which references are to its own keys."""
        part.join(self)
        for key, value in resolved(raw, raw, self._sources, Origin(part)).items():
            name = "providers" if key == "targets" and "providers" not in raw else key
            self._join(self.raw, (name,), value, part, (key,))

    def _join(self, owner: dict[str, Any], place: Place, value: Any, part: Findings, written: Place) -> None:
        key, known = place[-1], owner.get(str(place[-1]))
        if place in _LISTS:
            joined = owner.setdefault(str(key), [])
            for item, where in _items(value, written):
                if place not in _SETS or item not in joined:
                    self._parts[*place, len(joined)] = part, where
                    joined.append(item)
        elif place in _MAPPINGS and isinstance(value, dict) and isinstance(known, dict | None):
            inner = owner.setdefault(str(key), {})
            for name, member in value.items():
                self._join(inner, (*place, name), member, part, (*written, name))
        else:
            owner[str(key)] = value
            self._parts[place] = part, written

    def lends(self, key: str) -> bool:
        part, written = self._parts.get((key,), (None, (key,)))
        return super().lends(key) or (part is not None and part.lends(str(written[0])))

    def problem(self, place: Place, message: str, absent: bool = False, *, unread: bool = False) -> Problem:
        for end in range(len(place), 0, -1):
            if place[:end] in self._parts:
                part, written = self._parts[place[:end]]
                return part.problem((*written, *place[end:]), message, absent, unread=unread)
        return super().problem(place, message, absent, unread=unread)


def _items(value: Any, written: Place) -> Iterator[tuple[Any, Place]]:
    """The items of a list, or the one item that is written without a list, each with its place."""
    if isinstance(value, list):
        yield from ((one, (*written, i)) for i, one in enumerate(value))
    elif value is not None:
        yield value, written
