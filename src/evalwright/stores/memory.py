"""Runs in memory: the same records and the same rules as on disk, gone with the process.

Secrets are masked here, too: reports, notebooks and messages show records. Only cases are kept as they are.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeVar

import msgspec

from evalwright.errors import InputError, RunLockedError, StorageError, did_you_mean
from evalwright.files.masker import Masker
from evalwright.files.placeholders import expand_as_recorded
from evalwright.files.temporary import TemporaryFolder
from evalwright.model.artifact import FilesystemArtifact
from evalwright.model.plan import Plan
from evalwright.model.protocols import Part, RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.stores.artifacts import write_artifact
from evalwright.stores.documents import reserved_words
from evalwright.stores.local_files.lines import LineDecoder, LineEncoder

__all__ = ["MemoryJudgements", "MemoryReader", "MemoryRun", "MemoryStore"]

T = TypeVar("T")


class _Records:
    """What a run consists of, shared by its writer and its readers."""

    def __init__(self, plan: Plan, cases: list[bytes], documents: Mapping[str, bytes], masker: Masker) -> None:
        self.location: str = f"memory:{plan.run_id}"
        self.plan: Plan = plan
        self.cases: list[bytes] = cases
        self.documents: dict[str, bytes] = dict(documents)
        self.masker: Masker = masker.keeping(reserved_words(plan))
        self.traces: list[bytes] = []
        self.results: list[bytes] = []
        self.verdicts: list[bytes] = []
        self.summary: RunSummary | None = None
        self.writing: bool = False

    @cached_property
    def artifacts(self) -> Path:
        """A temporary folder, made at first use."""
        folder = TemporaryFolder()
        weakref.finalize(self, folder.close)
        return folder.path


class MemoryReader:
    """One run, read only; records are kept as lines, so that readers never get the object that was written."""

    def __init__(self, records: _Records) -> None:
        self.location: str = records.location
        self.plan: Plan | None = records.plan
        self.unresolved: list[str] = []
        self.damage: list[str] = []
        self._records = records
        self._recorded = False

    @property
    def artifacts(self) -> Path:
        return self._records.artifacts

    def cases(self, start: int = 0) -> Iterator[Case]:
        return self._decoded_cases(islice(self._records.cases, start, None))

    def case(self, index: int) -> Case:
        cases = self._records.cases
        if not 0 <= index < len(cases):
            raise InputError(f"{self.location} has {len(cases)} cases, none at position {index}")
        return next(self._decoded_cases([cases[index]]))

    def _decoded_cases(self, lines: Iterable[bytes]) -> Iterator[Case]:
        read = map(self._as_recorded, lines) if self._recorded else lines
        return LineDecoder("cases", self.damage).records(Case, read)

    def _as_recorded(self, line: bytes) -> bytes:
        masker = self._records.masker
        placed = masker.placeholders(msgspec.json.decode(line))
        return msgspec.json.encode(expand_as_recorded(placed, masker.secrets)) + b"\n"

    def parts(self, count: int) -> list[Part]:
        total = len(self._records.traces)
        cuts = [total * number // count for number in range(count + 1)]
        return [(start, end) for start, end in pairwise(cuts) if start < end]

    def traces(self, kind: type[T], part: Part | None = None) -> Iterator[T]:
        start, end = part or (0, None)
        return LineDecoder("traces", self.damage).records(kind, islice(self._records.traces, start, end))

    def results(self, kind: type[T]) -> Iterator[T]:
        return LineDecoder("results", self.damage).records(kind, self._records.results)

    def verdicts(self, kind: type[T]) -> Iterator[T]:
        return LineDecoder("verdicts", self.damage).records(kind, self._records.verdicts)

    def document(self, name: str) -> bytes | None:
        return self._records.documents.get(name)

    def summary(self) -> RunSummary | None:
        return self._records.summary

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Nothing has to be filled in: the plan and the cases are as they were given."""
        return {}

    def mask_cases(self, masked: bool = True) -> None:
        """See `RunReader`."""
        self._recorded = masked

    def mask(self, text: str) -> str:
        return self._records.masker.mask_text(text)

    def close(self) -> None:
        """Nothing is open; whoever writes the run goes on."""


class MemoryRun(MemoryReader):
    """One run, with the exclusive right to write."""

    plan: Plan | None

    def __init__(self, records: _Records) -> None:
        if records.writing:
            raise RunLockedError(f"{records.location} is being written")
        super().__init__(records)
        self.encoder: LineEncoder = LineEncoder(records.masker)
        self._open = records.writing = True

    def append_trace(self, trace: Trace) -> None:
        self._writable().traces.append(self.encoder.line(trace))

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        self._writable().results += self.encoder.lines(results).splitlines(keepends=True)

    def append_verdict(self, verdict: CaseVerdict) -> None:
        self._writable().verdicts.append(self.encoder.line(verdict))

    def sync(self) -> None:
        self._writable()

    def save_summary(self, summary: RunSummary) -> None:
        records = self._writable()
        masked = records.masker.mask_bytes(msgspec.json.encode(summary))
        records.summary = msgspec.json.decode(masked, type=RunSummary)

    def save_artifact(self, artifact: FilesystemArtifact) -> None:
        write_artifact(self._writable().artifacts, artifact.artifacts_path, self.encoder.line(artifact))

    def save_plan(self, plan: Plan) -> None:
        self.plan = self._writable().plan = plan

    def rewrite_judgements(self) -> MemoryJudgements:
        return MemoryJudgements(self._writable(), self.encoder)

    def close(self) -> None:
        if self._open:
            self._open = self._records.writing = False

    def _writable(self) -> _Records:
        if not self._open:
            raise StorageError(f"{self.location} is closed")
        return self._records


class MemoryJudgements:
    """A replacement for a run's results and verdicts; its shares must stay in this process."""

    def __init__(self, records: _Records, encoder: LineEncoder) -> None:
        self._records, self._encoder = records, encoder
        self._shares: dict[int, _MemoryShare] = {}

    def share(self, number: int) -> _MemoryShare:
        return self._shares.setdefault(number, _MemoryShare(self._encoder))

    def commit(self) -> None:
        shares = [share for _, share in sorted(self._shares.items())]
        if not all(share.closed for share in shares):
            raise StorageError(f"a share of the new results was never finished: {self._records.location}")
        self._records.results = [line for share in shares for line in share.results]
        self._records.verdicts = [line for share in shares for line in share.verdicts]

    def abandon(self) -> None:
        self._shares.clear()


class _MemoryShare:
    def __init__(self, encoder: LineEncoder) -> None:
        self.results: list[bytes] = []
        self.verdicts: list[bytes] = []
        self.closed: bool = False
        self._encoder = encoder

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        self.results += self._encoder.lines(results).splitlines(keepends=True)

    def append_verdict(self, verdict: CaseVerdict) -> None:
        self.verdicts.append(self._encoder.line(verdict))

    def close(self) -> None:
        self.closed = True


class MemoryStore:
    """Keeps runs in a dictionary."""

    def __init__(self, masker: Masker | None = None) -> None:
        """`masker` masks what is stored; None: nothing is masked."""
        self._masker = masker or Masker({})
        self._runs: dict[str, _Records] = {}

    def create(self, plan: Plan, cases: Iterable[Case], documents: Mapping[str, bytes]) -> MemoryRun:
        encoder = LineEncoder(None)
        lines = [encoder.case(case) for case in cases]
        run_id, number = plan.run_id, 1
        while plan.run_id in self._runs:
            number += 1
            plan.run_id = f"{run_id}-{number}"
        plan.cases_total, plan.cases_sha256 = len(lines), hashlib.sha256(b"".join(lines)).hexdigest()
        records = _Records(msgspec.structs.replace(plan), lines, documents, self._masker)
        self._runs[plan.run_id] = records
        return MemoryRun(records)

    def open(self, run_id: str) -> MemoryRun:
        return MemoryRun(self._records(run_id))

    def read(self, run_id: str) -> RunReader:
        return MemoryReader(self._records(run_id))

    def _records(self, run_id: str) -> _Records:
        try:
            return self._runs[run_id]
        except KeyError:
            raise InputError(f"no run {run_id!r} in memory{did_you_mean(run_id, self._runs)}") from None

    def run_ids(self) -> list[str]:
        return list(self._runs)
