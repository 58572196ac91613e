"""Records of any format as a suite that replays them: what all formats of recorded work share.

A format reads files and yields `Imported` records. Records of one case are its trials; records of several systems
become several systems, each of which replays its own.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.errors import counted
from evalwright.files.masker import Masker
from evalwright.importers.imported_cases import (
    ANSWERED,
    REWARDED,
    ImportResult,
    check_free,
    described_suite,
    secrets_here,
    write_cases,
    write_suite,
)
from evalwright.importers.mapping import MISSING, RecordMapping, compile_mapping
from evalwright.importers.pricing import ListPricing
from evalwright.importers.recordings import described, moment, too_deep
from evalwright.importers.sources import ImportNotes, Mistakes
from evalwright.importers.spool import RecordSpool, SetAside, TraceSpool
from evalwright.model.trace import Trace

__all__ = ["ImportFindings", "Imported", "Read", "TraceImporter", "import_traces"]

_FEW = 5


class Imported(msgspec.Struct, gc=False):
    """One record: a recording of a case, or a case alone where `trace` is None."""

    file: Path
    case_id: str | None
    """None for a format without ids: the file's name."""
    input: dict[str, Any]
    trace: Trace | None = None
    trial: int | None = None
    """Orders the recordings of a case, where the record says which one it is."""
    expected: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    group: str | None = None
    record: Any = None
    """What a mapping of the user's is applied to, in formats of records."""
    line: int | None = None
    key: str = ""
    """The place in a file that is one document."""
    evaluators: list[Any] | None = None
    """What judges the case, where its format says that of each: names of the suite's, those with some keys of their
    configuration, or evaluators of its own. Only of cases without recordings."""
    authored: bool = False
    """Whether somebody wrote it as a case: another one of its name is a recording of the same case, or a mistake."""


class _Row(msgspec.Struct):
    """An `Imported` as it is set aside; its recording is in another file."""

    expected: dict[str, Any]
    metadata: dict[str, Any]
    group: str | None
    input: Any
    trial: int | None
    recording: SetAside | None
    evaluators: list[Any] | None = None


@dataclass(slots=True)
class ImportFindings:
    """What a format is given while it reads, and what it says of the suite."""

    mistakes: Mistakes = field(default_factory=Mistakes)
    notes: ImportNotes = field(default_factory=ImportNotes)
    name: str | None = None
    """Of the suite, where the format has one."""
    evaluators: list[dict[str, Any]] = field(default_factory=list)
    """Of the suite, where the format has some that ours can stand for."""
    warnings: list[str] = field(default_factory=list)
    """Said of the suite whenever it is validated or run."""
    may_start_over: bool = False
    """Whether a format may raise `StartOver` in place of looking through the files before it reads them."""
    variants: dict[str, str] = field(default_factory=dict)
    """Names of systems that are known only when all is read, by those that their recordings have until then."""

    def lose_check(self, kind: str) -> None:
        """Something that judged there and does not here: every run of the suite says so."""
        self.notes.lose(kind)
        warning = f"lost in the import: {kind}"
        if warning not in self.warnings:
            self.warnings.append(warning)


class StartOver(Exception):
    """What was read so far is to be forgotten, and all to be read again without a second chance."""


Read = Callable[[Sequence[Path], ImportFindings], Iterator[Imported]]


class TraceImporter:
    """An import format whose files are read as records."""

    read: ClassVar[Read]
    """The records of the files; what is wrong or lost in them goes to the findings."""

    @classmethod
    def import_files(
        cls,
        sources: Sequence[Path],
        out: Path,
        mapping: Mapping[str, str] | None = None,
        pricing: ListPricing | None = None,
    ) -> ImportResult:
        """Write the suite of the files; see `import_traces`."""
        return import_traces(sources, out, mapping, cls.read, pricing)


def import_traces(
    files: Sequence[Path],
    out: Path,
    mapping: Mapping[str, str] | Path | None,
    read: Read,
    pricing: ListPricing | None = None,
) -> ImportResult:
    """Write the suite of the records in `files` into folder `out`; `pricing` fills in costs that they do not say.

    Raises InputError with all mistakes, and then nothing is written; StorageError if writing fails.
    """
    check_free(out)
    mapped = _Mapped(compile_mapping(mapping)) if mapping else None
    reading = ImportFindings(may_start_over=True)
    try:
        gathered = _import(files, out, mapped, read, pricing, reading)
    except StartOver:
        reading = ImportFindings()
        if pricing:
            pricing.start_over()
        gathered = _import(files, out, mapped, read, pricing, reading)
    cases = gathered.cases
    evaluators, deciding = gathered.evaluators(reading)
    written = write_suite(
        out,
        reading.name or files[0].stem,
        described_suite(gathered.traces, cases),
        evaluators,
        gathered.trials,
        gathered.systems(),
        deciding=deciding,
        by_case=gathered.by_case,
        warnings=reading.warnings,
    )
    if mended := reading.mistakes.mended:
        what = counted(mended, "record with", "records with")
        reading.notes.say(f"{what} halves of characters (unpaired surrogates), which were replaced")
    notes = [*gathered.notes(), *reading.notes.lines(), *(pricing.notes() if pricing else ())]
    return ImportResult(cases, gathered.trials, gathered.traces, written, notes)


def _import(
    files: Sequence[Path],
    out: Path,
    mapped: _Mapped | None,
    read: Read,
    pricing: ListPricing | None,
    reading: ImportFindings,
) -> _Gathered:
    """Write the cases of the files."""
    masker = secrets_here()
    with closing(RecordSpool()) as spool, closing(TraceSpool(masker)) as recordings:
        gathered = _Gathered(spool, recordings, masker, reading)
        for record in read(files, reading):
            if mapped:
                mapped.apply(record, reading.mistakes)
            if pricing and record.trace:
                pricing.fill(record.trace)
            gathered.add(record, reading.mistakes)
            del record  # a session may be large: not to be held while the next is read, or all are written
        if not spool.keys and not len(reading.mistakes):
            for file in files:
                reading.mistakes.add(file, "has no messages to import")
        reading.mistakes.check()
        write_cases(out, gathered.pieces())
    return gathered


class _Mapped:
    """A mapping of the user's over what a format found by itself."""

    def __init__(self, mapping: RecordMapping) -> None:
        self._mapping = mapping

    def apply(self, record: Imported, mistakes: Mistakes) -> None:
        for part in self._mapping.stated:
            value, path = self._mapping.find(record.record, part)
            if record.record is None:
                mistakes.add(record.file, f"--map {part}: this format has no records to find it in", record.line)
            elif value is MISSING or value is None:
                mistakes.add(record.file, f"expected the {part} of the record, found nothing", record.line, path)
            elif not _set(record, part, value):
                mistakes.add(record.file, f"cannot be the {part}: found {described(value)}", record.line, path)


def _set(record: Imported, part: str, value: Any) -> bool:
    """Whether the value could be that part of the record, which it is then."""
    prefix, _, name = part.partition(".")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    trace = record.trace
    if part == "id" and ((isinstance(value, str) and value) or (number and isinstance(value, int))):
        record.case_id = str(value)
    elif part == "trial" and number and isinstance(value, int) and value >= 0:
        record.trial = value
    elif part == "reward" and trace and (number or isinstance(value, bool)):
        trace.metrics.custom["reward"] = float(value)
    elif part in ("started_at", "finished_at") and trace and (time := moment(value)):
        setattr(trace, part, time)
    elif too_deep(value):
        return False
    elif prefix == "metadata" and name:
        record.metadata[name] = value
    elif prefix == "extra" and name and trace:
        trace.extra[name] = value
    else:
        return False
    return True


def _case(case_id: str, first: _Row, *, by_case: bool) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "id": case_id,
        "input": first.input,
        "expected": {"facts": {}, **first.expected},
        "metadata": first.metadata,
        **({} if first.group is None else {"group": first.group}),
        **({"evaluators": first.evaluators} if by_case else {}),
    }


class _Gathered:
    """All records by case, set aside on disk; what the suite needs to know of them is counted."""

    def __init__(self, spool: RecordSpool, recordings: TraceSpool, masker: Masker, reading: ImportFindings) -> None:
        self.traces = 0
        self._called = reading.variants
        self._suite = reading.evaluators
        self._judging: dict[bytes, list[Any]] = {}
        """The different lists of evaluators that cases have."""
        self._spool, self._recordings, self._mask = spool, recordings, masker.mask_bytes
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(_Row).decode
        self._unnamed: Counter[Path] = Counter()
        self._recorded: Counter[tuple[str, str]] = Counter()
        self._rewards = 0
        self._authored: dict[str, tuple[tuple[bytes, bool], str]] = {}
        """What the first case of each name asks and expects, whether it was recorded, and its place."""
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, record: Imported, mistakes: Mistakes) -> None:
        case_id = record.case_id or self._numbered(record.file)
        if record.authored:
            self._check_same(case_id, record, mistakes)
        trace = record.trace
        if trace is None:
            self._counts["case", "without a recording: name your system in eval.yaml before a run"] += 1
        else:
            self.traces += 1
            trace.input = record.input
            self._recorded[case_id, trace.variant_name] += 1
            self._rewards += "reward" in trace.metrics.custom
            self._counts["recording", "of a run that erred, without a verdict"] += trace.error is not None
            self._counts["recording", "with warnings, see extra.warnings"] += "warnings" in trace.extra
        aside = None if trace is None else self._recordings.add(trace)
        if (own := record.evaluators) is not None:
            self._judging.setdefault(hashlib.blake2b(self._encode(own), digest_size=16).digest(), own)
        row = _Row(record.expected, record.metadata, record.group, record.input, record.trial, aside, own)
        self._spool.add(case_id, self._encode(row))

    def _check_same(self, case_id: str, record: Imported, mistakes: Mistakes) -> None:
        """Records of one name are recordings of one case: they have recordings, and ask and expect the same."""
        told = msgspec.json.encode([record.input, record.expected, record.evaluators], order="deterministic")
        stated = hashlib.blake2b(told, digest_size=16).digest(), record.trace is not None
        where = f"{record.file}:{record.line}" if record.line else f"{record.file} {record.key}".rstrip()
        if case_id not in self._authored:
            self._authored[case_id] = stated, where
            return
        first, place = self._authored[case_id]
        if first[0] != stated[0]:
            said = f"the name {case_id!r} is that of another case, which asks or expects something else, in {place}"
            mistakes.add(record.file, said, record.line, record.key)
        elif not (first[1] and stated[1]):
            mistakes.add(record.file, f"duplicate case {case_id!r}, which is in {place}, too", record.line, record.key)

    def _numbered(self, file: Path) -> str:
        from evalwright.importers.sources import stem

        self._unnamed[file] += 1
        number = self._unnamed[file]
        return stem(file) if number == 1 else f"{stem(file)}-{number}"

    def _cells(self) -> Counter[tuple[str, str]]:
        """The recordings of each case by each system."""
        if not self._called:
            return self._recorded
        cells: Counter[tuple[str, str]] = Counter()
        for (case_id, variant), number in self._recorded.items():
            cells[case_id, self._called.get(variant, variant)] += number
        return cells

    @property
    def cases(self) -> int:
        return self._spool.keys

    @property
    def by_case(self) -> bool:
        """Whether cases are judged by other evaluators than all of the suite's."""
        names = [one["name"] for one in self._suite]
        return any(own != names for own in self._judging.values())

    @property
    def trials(self) -> int:
        return max(self._cells().values(), default=1)

    def pieces(self) -> Iterator[bytes]:
        """What the file of cases has, in pieces of a bounded size."""
        encode = msgspec.json.Encoder().encode
        by_case = self.by_case
        for case_id, encoded in self._spool:
            rows = [self._decode(one) for one in encoded]
            rows.sort(key=lambda row: row.trial or 0)
            found = [row.recording for row in rows if row.recording is not None]
            case = self._mask(encode(_case(case_id, rows[0], by_case=by_case)))
            if not found:
                yield case + b"\n"
                continue
            yield case.removesuffix(b"}") + b',"embedded_trace":' + (b"[" if len(found) > 1 else b"")
            numbers: Counter[str] = Counter()
            for position, aside in enumerate(found):
                yield b"," if position else b""
                variant = self._called.get(aside.variant, aside.variant)
                yield from self._recordings.pieces(aside, case_id, variant, numbers[variant])
                numbers[variant] += 1
            yield b"]}\n" if len(found) > 1 else b"}\n"

    def systems(self) -> list[dict[str, Any]]:
        """One for each system that was recorded; answers may be missing, as in what is recorded of one alone."""
        names = [*dict.fromkeys(variant for _, variant in self._cells())] or ["recorded"]
        several = len(names) > 1
        return [
            {
                "name": name,
                "adapter": "replay",
                "allow_missing": ["final_answer"],
                **({"variant": name} if several else {}),
            }
            for name in names
        ]

    def evaluators(self, reading: ImportFindings) -> tuple[list[dict[str, Any]], int]:
        """Those of the suite, and how many of them decide: the recorded reward alone, else all."""
        found = [*([REWARDED] if self._rewards else []), *reading.evaluators] or [ANSWERED]
        return found, 1 if self._rewards else len(found)

    def notes(self) -> list[str]:
        notes = [f"{counted(number, noun)} {what}" for (noun, what), number in self._counts.items() if number]
        cells = self._cells()
        most = max(cells.values(), default=1)
        short = [f"{case}" for (case, _), number in cells.items() if number < most]
        if short:
            named = ", ".join(short[:_FEW]) + (", ..." if len(short) > _FEW else "")
            few = f"{counted(len(short), 'case has', 'cases have')} fewer than {counted(most, 'trial')}"
            notes.append(f"{few}; missing ones are errors: {named}")
        if 0 < self._rewards < self.traces:
            less = self.traces - self._rewards
            notes.append(f"{less:,} of {self.traces:,} recordings have no reward: they are skipped")
        return notes
