"""Records of any format as a suite that replays them: what all formats of recorded work share.

A format reads files and yields `Imported` records. Records of one case are its trials; records of several systems
become several systems, each of which replays its own records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from evalwright.errors import counted
from evalwright.files.numbers import is_number
from evalwright.importers.gathered_cases import GatheredCases
from evalwright.importers.imported_records import Imported, ImportFindings, Read, StartOver
from evalwright.importers.mapping import MISSING, RecordMapping, compile_mapping
from evalwright.importers.pricing import ListPricing
from evalwright.importers.record_values import described, moment, numbers_in_range, too_deep
from evalwright.importers.sources import Mistakes
from evalwright.importers.spool import RecordSpool, TraceSpool
from evalwright.importers.written_suite import (
    check_free,
    described_suite,
    secrets_here,
    suite_name,
    write_cases,
    write_suite,
)
from evalwright.model.import_result import ImportResult

__all__ = ["TraceImporter", "import_traces"]


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
    mapping: Mapping[str, str] | None,
    read: Read,
    pricing: ListPricing | None = None,
) -> ImportResult:
    """Write the suite for the records in `files` into folder `out`; `pricing` fills in costs that they lack.

    Raises InputError with all mistakes, and then nothing is written; StorageError if writing fails.
    """
    check_free(out)
    mapped = _MappedTraces(compile_mapping(mapping)) if mapping else None
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
        reading.name or suite_name(files, out),
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
        reading.notes.add_text(f"{what} half characters (unpaired surrogates), which were replaced")
    if unmeasured := reading.mistakes.unmeasured:
        reading.notes.lose("values NaN or Infinity, which JSON does not have", unmeasured)
    notes = [*gathered.notes(), *reading.notes.lines(), *(pricing.notes() if pricing else ())]
    return ImportResult(cases, gathered.trials, gathered.traces, written, notes)


def _import(
    files: Sequence[Path],
    out: Path,
    mapped: _MappedTraces | None,
    read: Read,
    pricing: ListPricing | None,
    reading: ImportFindings,
) -> GatheredCases:
    """Write the cases of the files."""
    masker = secrets_here()
    with numbers_in_range(files), closing(RecordSpool()) as spool, closing(TraceSpool(masker)) as recordings:
        gathered = GatheredCases(spool, recordings, masker, reading)
        for record in read(files, reading):
            if mapped:
                mapped.apply(record, reading.mistakes)
            if pricing and record.trace:
                pricing.fill(record.trace)
            gathered.add(record, reading.mistakes)
            del record  # a session may be large: it must not be held while the next one is read, or all are written
        if not spool.keys and not len(reading.mistakes):
            for file in files:
                reading.mistakes.add(file, "has no messages to import")
        reading.mistakes.check()
        write_cases(out, gathered.pieces())
    return gathered


class _MappedTraces:
    """A user's mapping, applied on top of what a format found by itself."""

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
    """Set this part of the record, and return True, if the value can be that part."""
    prefix, _, name = part.partition(".")
    number = is_number(value)
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
