"""The records of an import by case, set aside on disk, and what the suite needs to know of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import counted, shorten
from evalwright.files.masker import Masker
from evalwright.importers.imported_records import Imported, ImportFindings
from evalwright.importers.sources import Mistakes, stem
from evalwright.importers.spool import RecordSpool, SpooledTrace, TraceSpool
from evalwright.importers.written_suite import (
    ANSWERED,
    EXPLAINED,
    REWARDED,
    first_of,
    note_of_graded_rewards,
    note_of_missing_trials,
    note_of_scores,
)

__all__ = ["GatheredCases"]

_LONGEST = 100
"""Names that are listed, and characters of the reason of a recorded score."""


class _Row(msgspec.Struct):
    """An `Imported` as it is set aside; its recording is in another file."""

    expected: dict[str, Any]
    metadata: dict[str, Any]
    group: str | None
    input: Any
    trial: int | None
    recording: SpooledTrace | None
    evaluators: list[Any] | None = None


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


def _failed(scores: Iterable[Mapping[str, Any]]) -> str:
    """The first recorded scores that did not pass, with their reasons: in quotes, as these differ from case to case."""
    failed = [score for score in scores if score.get("passed") is False]
    return first_of([f"{score['name']} failed{_in_brackets(score.get('reason'))}" for score in failed])


def _in_brackets(reason: Any) -> str:
    text = " ".join(str(reason or "").split())
    return f" ({shorten(text, _LONGEST)!r})" if text else ""


class GatheredCases:
    """All records by case, set aside on disk; what the suite needs to know of them is counted."""

    def __init__(self, spool: RecordSpool, recordings: TraceSpool, masker: Masker, reading: ImportFindings) -> None:
        self.traces: int = 0
        self._called = reading.variants
        self._suite = reading.evaluators
        self._judging: dict[bytes, list[Any]] = {}
        """The different lists of evaluators that cases have."""
        self._spool, self._recordings, self._mask = spool, recordings, masker.mask_bytes
        self._encode = msgspec.json.Encoder().encode  # not MessagePack, which lacks integers of more than 64 bits
        self._decode = msgspec.json.Decoder(_Row).decode
        self._unnamed: Counter[Path] = Counter()
        self._recorded: Counter[tuple[str, str]] = Counter()
        self._rewards = self._graded = 0
        self._reward = REWARDED
        self._scores: dict[str, None] = {}
        self._authored: dict[str, tuple[tuple[bytes, bool], str]] = {}
        """Input and expectations of the first case of each name, whether it was recorded, and its place."""
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, record: Imported, mistakes: Mistakes) -> None:
        case_id = record.case_id or self._numbered_id(record.file)
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
            self._graded += trace.metrics.custom.get("reward") not in (None, 0, 1)
            scores = trace.extra.get("recorded_scores", ())
            names = (score["name"] for score in scores)
            self._scores.update((name, None) for name in names if name in trace.metrics.custom)
            if trace.metrics.custom.get("reward") not in (None, 1) and (failed := _failed(scores)):
                trace.extra["reward_reason"] = failed
                self._reward = EXPLAINED
            self._counts["recording", "of a run that erred, without a verdict"] += trace.error is not None
            self._counts["recording", "with warnings, see extra.warnings"] += "warnings" in trace.extra
        aside = None if trace is None else self._recordings.add(trace)
        if (own := record.evaluators) is not None:
            self._judging.setdefault(hashlib.blake2b(self._encode(own), digest_size=16).digest(), own)
        row = _Row(record.expected, record.metadata, record.group, record.input, record.trial, aside, own)
        self._spool.add(case_id, self._encode(row))

    def _check_same(self, case_id: str, record: Imported, mistakes: Mistakes) -> None:
        """Records of one name are recordings of one case: all have recordings, and the same input and expectations."""
        statement = msgspec.json.encode([record.input, record.expected, record.evaluators], order="deterministic")
        stated = hashlib.blake2b(statement, digest_size=16).digest(), record.trace is not None
        where = f"{record.file}:{record.line}" if record.line else f"{record.file} {record.key}".rstrip()
        if case_id not in self._authored:
            self._authored[case_id] = stated, where
            return
        first, place = self._authored[case_id]
        if first[0] != stated[0]:
            message = f"the name {case_id!r} belongs to another case, which asks or expects something else, in {place}"
            mistakes.add(record.file, message, record.line, record.key)
        elif not (first[1] and stated[1]):
            mistakes.add(record.file, f"duplicate case {case_id!r}, also in {place}", record.line, record.key)

    def _numbered_id(self, file: Path) -> str:
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
        names = [evaluator["name"] for evaluator in self._suite]
        return any(own != names for own in self._judging.values())

    @property
    def trials(self) -> int:
        return max(self._cells().values(), default=1)

    def pieces(self) -> Iterator[bytes]:
        """The content of the file of cases, in pieces of bounded size."""
        encode = msgspec.json.Encoder().encode
        by_case = self.by_case
        for case_id, encoded in self._spool:
            rows = [self._decode(text) for text in encoded]
            rows.sort(key=lambda row: row.trial or 0)
            recordings = [row.recording for row in rows if row.recording is not None]
            case = self._mask(encode(_case(case_id, rows[0], by_case=by_case)))
            if not recordings:
                yield case + b"\n"
                continue
            yield case.removesuffix(b"}") + b',"embedded_trace":' + (b"[" if len(recordings) > 1 else b"")
            numbers: Counter[str] = Counter()
            for position, aside in enumerate(recordings):
                yield b"," if position else b""
                variant = self._called.get(aside.variant, aside.variant)
                yield from self._recordings.pieces(aside, case_id, variant, numbers[variant])
                numbers[variant] += 1
            yield b"]}\n" if len(recordings) > 1 else b"}\n"

    def systems(self) -> list[dict[str, Any]]:
        """One for each recorded system; answers may be missing, as for cases recorded of only one system."""
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
        """The suite's evaluators, and how many of them decide: the recorded reward alone, else all."""
        evaluators = [*([self._reward] if self._rewards else []), *reading.evaluators] or [ANSWERED]
        return evaluators, 1 if self._rewards else len(evaluators)

    def notes(self) -> list[str]:
        notes = [f"{counted(number, noun)} {what}" for (noun, what), number in self._counts.items() if number]
        cells = self._cells()
        most = max(cells.values(), default=1)
        short = [f"{case}" for (case, _), number in cells.items() if number < most]
        if short:
            notes.append(note_of_missing_trials(short, most))
        if 0 < self._rewards < self.traces:
            less = self.traces - self._rewards
            notes.append(f"{less:,} of {self.traces:,} recordings have no reward: they are skipped")
        if self._graded:
            notes.append(note_of_graded_rewards(self._graded))
        if self._scores and not self._rewards and not self._suite:
            notes.append(note_of_scores(self._scores))
        return notes
