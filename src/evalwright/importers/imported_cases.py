"""Imports recorded conversations as a suite that replays them: `cases.jsonl` with embedded traces, and `eval.yaml`.

The files are read twice: the first pass checks all records and remembers only where they are, the second writes the
cases, each with its recordings in the order of their trials.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import AllMistakes, FirstProblems, InputError, Problem, counted
from evalwright.importers.mapping import compile_mapping
from evalwright.importers.recording import ReadConversation, Recording, RecordReader
from evalwright.importers.recordings import RecordingPlace, Recordings, open_recordings
from evalwright.importers.sources import ImportNotes
from evalwright.importers.spool import case_pieces
from evalwright.importers.written_suite import (
    ANSWERED,
    REWARDED,
    check_free,
    described_suite,
    first_of,
    note_of_graded_rewards,
    note_of_missing_trials,
    suite_name,
    without_secrets,
    write_cases,
    write_suite,
)
from evalwright.model.import_result import ImportResult

__all__ = ["import_recordings"]


def import_recordings(
    files: Sequence[Path], out: Path, mapping: Mapping[str, str] | None, read_conversation: ReadConversation
) -> ImportResult:
    """Write the suite of files of recordings into folder `out`.

    Raises InputError with all mistakes, and then nothing is written; StorageError if writing fails.
    """
    check_free(out)
    compiled = compile_mapping(mapping)
    with ExitStack() as stack:
        sources, mistakes = list[_Source](), AllMistakes()
        for file in files:
            with mistakes:
                recordings = stack.enter_context(open_recordings(file, compiled))
                sources.append(_Source(file, RecordReader(file, compiled, read_conversation), recordings))
        mistakes.refuse()
        survey = _survey(sources)
        write_cases(out, without_secrets(_case_pieces(survey)))
    description = described_suite(survey.traces, len(survey.cases))
    written = write_suite(out, suite_name(files, out), description, _evaluators(survey), survey.trials)
    return ImportResult(len(survey.cases), survey.trials, survey.traces, written, survey.notes())


@dataclass(slots=True)
class _Source:
    """One of the files, and its reader."""

    file: Path
    reader: RecordReader
    recordings: Recordings


@dataclass(slots=True)
class _Entry:
    """One checked record: where it is and which cell it belongs to."""

    source: _Source
    place: RecordingPlace
    case_id: str | None
    trial: int | None

    def report(self, message: str) -> None:
        self.source.reader.report(self.place, "", message)

    def label(self, seen_from: _Entry) -> str:
        """Its place, with the file if it is a different one."""
        line = self.place.line
        where = f"line {line}" if line is not None else self.place.key or "the record"
        return where if self.source is seen_from.source else f"{where} of {self.source.file}"


@dataclass(slots=True)
class _Survey:
    """What the first pass finds out about the files."""

    cases: dict[str, list[_Entry]] = field(default_factory=dict)
    """Entries of each case in the order of their trials, cases in the order of the files."""
    expecting: int = 0
    """Records with expected actions."""
    rewarded: int = 0
    """Records with a reward."""
    graded: int = 0
    """Records with a reward other than 0 and 1."""
    reversed: int = 0
    """Records whose end is before their start."""
    unread: list[str] = field(default_factory=list)
    """Keys of records that are not mapped, sorted."""
    lost: ImportNotes = field(default_factory=ImportNotes)

    @property
    def traces(self) -> int:
        return sum(map(len, self.cases.values()))

    @property
    def trials(self) -> int:
        return max(map(len, self.cases.values()))

    def notes(self) -> list[str]:
        notes, trials = [], self.trials
        short = [case for case, entries in self.cases.items() if len(entries) < trials]
        if short:
            notes.append(note_of_missing_trials(short, trials))
        if 0 < self.rewarded < self.traces:
            notes.append(f"{self.traces - self.rewarded:,} of {self.traces:,} records have no reward: they are skipped")
        if self.graded:
            notes.append(note_of_graded_rewards(self.graded))
        if self.reversed:
            ending = counted(self.reversed, "recording ends before it starts", "recordings end before they start")
            notes.append(f"{ending}: the latency is unknown")
        if self.unread:
            left = counted(len(self.unread), "key of records is", "keys of records are")
            notes.append(
                f"{left} left out: {first_of(self.unread)}; --map metadata.NAME=PATH or extra.NAME=PATH keeps a value"
            )
        return [*notes, *self.lost.lines()]


def _survey(sources: list[_Source]) -> _Survey:
    """Check all records. Raises InputError with all problems of the files."""
    survey = _Survey()
    entries: list[_Entry] = []
    expected: dict[str | None, tuple[bytes, _Entry]] = {}
    for source in sources:
        known = len(entries)
        for place, text in source.recordings:
            recording = source.reader.read(place, text)
            if recording is None:
                continue
            entry = _Entry(source, place, recording.case_id, recording.trial)
            entries.append(entry)
            survey.rewarded += recording.reward is not None
            survey.graded += recording.reward not in (None, 0, 1)
            survey.reversed += recording.finished_at < recording.started_at
            survey.lost.add(recording.conversation.lost)
            survey.expecting += recording.actions is not None
            if recording.case_id is not None:
                _check_same_actions(entry, recording, expected)
        if len(entries) == known and not source.reader.problems:
            source.reader.problems.append(Problem(str(source.file), "contains no records"))
    _name(entries, any(source.reader.names_cases for source in sources))
    survey.unread = sorted(set[str]().union(*(source.reader.unread for source in sources)))
    survey.cases = _by_case(entries, any(source.reader.counts_trials for source in sources))
    if problems := [problem for source in sources for problem in source.reader.problems]:
        raise InputError(_first_of(problems))
    return survey


def _check_same_actions(entry: _Entry, recording: Recording, expected: dict[str | None, tuple[bytes, _Entry]]) -> None:
    """Check that all trials of a case expect the same: they are attempts at one task."""
    encoded = msgspec.json.encode(recording.actions, order="deterministic")
    digest = hashlib.blake2b(encoded, digest_size=16).digest()
    first, other = expected.setdefault(entry.case_id, (digest, entry))
    if first != digest:
        entry.report(f"expects different actions than the same case {entry.case_id!r} in {other.label(entry)}")


def _name(entries: list[_Entry], names_cases: bool) -> None:
    """Number the records of files without case ids; if some records have one, all must."""
    for number, entry in enumerate(entries, start=1):
        if entry.case_id is None and not names_cases:
            entry.case_id = f"record-{number}"
        elif entry.case_id is None:
            entry.report("expected a case id as in other records, found nothing")


def _by_case(entries: list[_Entry], counts_trials: bool) -> dict[str, list[_Entry]]:
    """Entries grouped by case, in the order of their trials; records without a trial number keep their order."""
    cases: dict[str, list[_Entry]] = {}
    for entry in entries:
        if entry.case_id is not None:
            cases.setdefault(entry.case_id, []).append(entry)
        if counts_trials and entry.trial is None:
            entry.report("expected a trial as in other records, found nothing")
    for case_id, group in cases.items():
        seen: dict[int | None, _Entry] = {}
        for entry in group:
            other = seen.setdefault(entry.trial, entry)
            if counts_trials and other is not entry:
                entry.report(f"trial {entry.trial} of case {case_id!r} is already in {other.label(entry)}")
        group.sort(key=lambda entry: entry.trial or 0)
    return cases


def _first_of(problems: list[Problem]) -> FirstProblems:
    """The first problems, and how many more there are."""
    in_order = sorted(problems, key=lambda problem: (problem.file, problem.line or 0))
    first = FirstProblems(in_order[-1].file)
    first.add(*in_order)
    return first


def _case_pieces(survey: _Survey) -> Iterator[bytes]:
    for case_id, entries in survey.cases.items():
        read_entries = [
            entry.source.reader.read(entry.place, entry.source.recordings.text(entry.place)) for entry in entries
        ]
        whole = [recording for recording in read_entries if recording is not None]
        if len(whole) < len(entries):
            problems = [problem for entry in entries for problem in entry.source.reader.problems]
            raise InputError(problems, "the file changed while it was read")
        traces = [recording.trace(case_id, trial) for trial, recording in enumerate(whole)]
        yield from case_pieces(_case(case_id, whole[0], traces[0].input), traces)


def _case(case_id: str, first: Recording, question: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "id": case_id,
        "input": question,
        "expected": {"facts": {} if first.actions is None else {"actions": first.actions}},
        "metadata": first.metadata,
    }


def _evaluators(survey: _Survey) -> list[dict[str, Any]]:
    """The evaluators that the recordings allow, the deciding one first: the recorded reward, else expected actions.

    Without either, the evaluator that requires an answer.
    """
    checks: list[dict[str, Any]] = []
    if survey.rewarded:
        checks.append(REWARDED)
    if survey.expecting:
        checks.append({"name": "actions", "type": "tool_calls_match", "config": {"expected_from": "actions"}})
    return checks or [ANSWERED]
