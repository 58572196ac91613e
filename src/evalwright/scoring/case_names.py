"""Cases of two runs that are the same under different names, in formats whose ids are only positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from evalwright.errors import InputError
from evalwright.files.placeholders import as_recorded
from evalwright.model.cell import OfCase
from evalwright.model.format import Format
from evalwright.model.plan import Plan
from evalwright.model.protocols import Part, RunReader
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.registry import format_of_run, resolve

__all__ = ["RenamedCases", "recorded_name", "under_names_of"]

T = TypeVar("T")
_Key = Callable[[Case], str]


def under_names_of(cases_b: Callable[[], Iterable[Case]], plan_b: Plan, reader_a: RunReader, plan_a: Plan) -> RunReader:
    """Run A with its cases under their names in run B; A itself if its ids are enough."""
    known_by = _known_by(plan_a, plan_b)
    if known_by is None or reader_a.plan is None:
        return reader_a
    names = _names(reader_a.cases(), cases_b(), known_by)
    if not names:
        return reader_a
    # A run of another format judges differently: its cases are the same if they ask the same.
    alike = _format_of(plan_a) is _format_of(plan_b)
    digests = {} if alike else {case.key: case.digest for case in cases_b()}
    return RenamedCases(reader_a, names, digests)


def recorded_name(case: Case, known: Container[str]) -> str:
    """The name of a case in the records of its run, of which `known` has some: a secret in it is masked there."""
    return case.key if case.key in known else as_recorded(case.key)


def _known_by(*plans: Plan) -> _Key | None:
    for plan in plans:
        suite_format = _format_of(plan)
        if suite_format is not None and suite_format.known_by is not None:
            key: _Key = resolve(suite_format.known_by)
            return key
    return None


def _format_of(plan: Plan) -> Format | None:
    """The format by whose rules a run is judged; None if its plug-in is not installed here."""
    try:
        return format_of_run(plan)
    except InputError:
        return None


def _names(cases_a: Iterable[Case], cases_b: Iterable[Case], known_by: _Key) -> dict[str, str]:
    """The new names of all cases of A; empty if no name differs.

    Cases that are alike are paired in their order if both runs have as many of them; all others by id.
    """
    alike_a, alike_b = _cases_by_content(cases_a, known_by), _cases_by_content(cases_b, known_by)
    names: dict[str, str] = {}
    for content, keys in alike_a.items():
        others = alike_b.get(content, [])
        if len(keys) == len(others):
            names.update(zip(keys, others, strict=True))
    names_taken = set(names.values())
    for key in (key for keys in alike_a.values() for key in keys if key not in names):
        names[key] = f"{key} of A" if key in names_taken else key
    return names if any(key != name for key, name in names.items()) else {}


def _cases_by_content(cases: Iterable[Case], known_by: _Key) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        ids[known_by(case)].append(case.key)
    return ids


class RenamedCases:
    """A stored run whose cases have other names."""

    def __init__(
        self, reader: RunReader, names: Mapping[str, str], digests: Mapping[str, str | msgspec.UnsetType]
    ) -> None:
        self._reader, self._digests = reader, digests
        self.names: Mapping[str, str] = names
        self.plan: Plan | None = reader.plan
        self.unresolved: list[str] = reader.unresolved
        self.location: str = reader.location
        self.damage: list[str] = reader.damage

    @property
    def artifacts(self) -> Path:
        return self._reader.artifacts

    def cases(self, start: int = 0) -> Iterator[Case]:
        return map(self._case, self._reader.cases(start))

    def case(self, index: int) -> Case:
        return self._case(self._reader.case(index))

    def parts(self, count: int) -> list[Part]:
        return self._reader.parts(count)

    def traces(self, kind: type[T], part: Part | None = None) -> Iterator[T]:
        return map(self._record, self._reader.traces(kind, part))

    def results(self, kind: type[T]) -> Iterator[T]:
        return map(self._record, self._reader.results(kind))

    def verdicts(self, kind: type[T]) -> Iterator[T]:
        return map(self._record, self._reader.verdicts(kind))

    def document(self, name: str) -> bytes | None:
        return self._reader.document(name)

    def summary(self) -> RunSummary | None:
        return self._reader.summary()

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        return self._reader.reveal(variables)

    def mask(self, text: str) -> str:
        return self._reader.mask(text)

    def close(self) -> None:
        self._reader.close()

    def _case(self, case: Case) -> Case:
        name = self.names.get(case.key, case.key)
        digest = self._digests.get(name, case.digest)
        return msgspec.structs.replace(case, id=name, occurrence=msgspec.UNSET, digest=digest)

    def _record(self, record: T) -> T:
        if isinstance(record, OfCase):
            record.case_id, record.occurrence = self.names.get(record.case_key, record.case_key), msgspec.UNSET
        return record
