"""Runs in memory: the same records and the same rules as on disk, gone with the process.

Secrets are masked here, too: reports, notebooks and messages show records. Only cases are kept as they are.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from evalwright.model.protocols import Part
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace
from evalwright.stores.artifacts import write_artifact
from evalwright.stores.local_files.lines import LineDecoder, LineEncoder, reserved_words

__all__ = ["MemoryJudgements", "MemoryRun", "MemoryStore"]

T = TypeVar("T")


class MemoryRun:
    """One run; records are kept as lines, so that readers never get the object that was written."""

    documents: dict[str, bytes]
    location: str
    run_id: str

    def __init__(
        self, run_id: str, plan: Plan, cases: list[bytes], documents: Mapping[str, bytes], masker: Masker
    ) -> None:
        self.run_id, self.location, self.documents = run_id, f"memory:{run_id}", dict(documents)
        self.plan: Plan | None = plan
        self.unresolved: list[str] = []
        self.damage: list[str] = []
        self.writing: bool = False
        self._cases = cases
        self._traces: list[bytes] = []
        self._results: list[bytes] = []
        self._verdicts: list[bytes] = []
        self._summary: RunSummary | None = None
        self._masker = masker.keeping(reserved_words(plan))
        self.encoder: LineEncoder = LineEncoder(self._masker)
        self._artifacts: Path | None = None
        self._recorded = False

    @property
    def artifacts(self) -> Path:
        """A temporary folder, made at first use."""
        if self._artifacts is None:
            folder = TemporaryFolder()
            weakref.finalize(self, folder.close)
            self._artifacts = folder.path
        return self._artifacts

    def cases(self, start: int = 0) -> Iterator[Case]:
        return self._decoded_cases(islice(self._cases, start, None))

    def case(self, index: int) -> Case:
        if not 0 <= index < len(self._cases):
            raise InputError(f"{self.location} has {len(self._cases)} cases, none at position {index}")
        return next(self._decoded_cases([self._cases[index]]))

    def _decoded_cases(self, lines: Iterable[bytes]) -> Iterator[Case]:
        read = map(self._as_recorded, lines) if self._recorded else lines
        return LineDecoder("cases", self.damage).records(Case, read)

    def _as_recorded(self, line: bytes) -> bytes:
        placed = self._masker.placeholders(msgspec.json.decode(line))
        return msgspec.json.encode(expand_as_recorded(placed, self._masker.secrets)) + b"\n"

    def parts(self, count: int) -> list[Part]:
        total = len(self._traces)
        cuts = [total * number // count for number in range(count + 1)]
        return [(start, end) for start, end in pairwise(cuts) if start < end]

    def traces(self, kind: type[T], part: Part | None = None) -> Iterator[T]:
        start, end = part or (0, None)
        return LineDecoder("traces", self.damage).records(kind, islice(self._traces, start, end))

    def results(self, kind: type[T]) -> Iterator[T]:
        return LineDecoder("results", self.damage).records(kind, self._results)

    def verdicts(self, kind: type[T]) -> Iterator[T]:
        return LineDecoder("verdicts", self.damage).records(kind, self._verdicts)

    def document(self, name: str) -> bytes | None:
        return self.documents.get(name)

    def summary(self) -> RunSummary | None:
        return self._summary

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Nothing has to be filled in: the plan and the cases are as they were given."""
        return {}

    def mask_cases(self, masked: bool = True) -> None:
        """See `RunReader`."""
        self._recorded = masked

    def append_trace(self, trace: Trace) -> None:
        self._check_open()
        self._traces.append(self.encoder.line(trace))

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        self._check_open()
        self._results += self.encoder.lines(results).splitlines(keepends=True)

    def append_verdict(self, verdict: CaseVerdict) -> None:
        self._check_open()
        self._verdicts.append(self.encoder.line(verdict))

    def sync(self) -> None:
        self._check_open()

    def save_summary(self, summary: RunSummary) -> None:
        self._check_open()
        masked = self._masker.mask_bytes(msgspec.json.encode(summary))
        self._summary = msgspec.json.decode(masked, type=RunSummary)

    def mask(self, text: str) -> str:
        return self._masker.mask_text(text)

    def save_artifact(self, artifact: FilesystemArtifact) -> None:
        self._check_open()
        write_artifact(self.artifacts, artifact.artifacts_path, self.encoder.line(artifact))

    def save_plan(self, plan: Plan) -> None:
        self._check_open()
        self.plan = plan

    def rewrite_judgements(self) -> MemoryJudgements:
        self._check_open()
        return MemoryJudgements(self)

    def replace_judgements(self, results: list[bytes], verdicts: list[bytes]) -> None:
        self._results, self._verdicts = results, verdicts

    def close(self) -> None:
        self.writing = False
        self._recorded = False  # whoever reads the run next has the same object

    def _check_open(self) -> None:
        if not self.writing:
            raise StorageError(f"{self.location} is closed")


class MemoryJudgements:
    """A replacement for a run's results and verdicts; its shares must stay in this process."""

    def __init__(self, run: MemoryRun) -> None:
        self._run = run
        self._shares: dict[int, _MemoryShare] = {}

    def share(self, number: int) -> _MemoryShare:
        return self._shares.setdefault(number, _MemoryShare(self._run.encoder))

    def commit(self) -> None:
        shares = [share for _, share in sorted(self._shares.items())]
        if not all(share.closed for share in shares):
            raise StorageError(f"a share of the new results was never finished: {self._run.location}")
        self._run.replace_judgements(
            [line for share in shares for line in share.results],
            [line for share in shares for line in share.verdicts],
        )

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
        self._runs: dict[str, MemoryRun] = {}

    def create(self, plan: Plan, cases: Iterable[Case], documents: Mapping[str, bytes]) -> MemoryRun:
        encoder = LineEncoder(None)
        lines = [encoder.case(case) for case in cases]
        run_id, number = plan.run_id, 1
        while plan.run_id in self._runs:
            number += 1
            plan.run_id = f"{run_id}-{number}"
        plan.cases_total, plan.cases_sha256 = len(lines), hashlib.sha256(b"".join(lines)).hexdigest()
        run = MemoryRun(plan.run_id, msgspec.structs.replace(plan), lines, documents, self._masker)
        run.writing = True
        self._runs[plan.run_id] = run
        return run

    def open(self, run_id: str) -> MemoryRun:
        run = self.read(run_id)
        if run.writing:
            raise RunLockedError(f"{run.location} is being written")
        run.writing = True
        return run

    def read(self, run_id: str) -> MemoryRun:
        try:
            return self._runs[run_id]
        except KeyError:
            raise InputError(f"no run {run_id!r} in memory{did_you_mean(run_id, self._runs)}") from None

    def run_ids(self) -> list[str]:
        return list(self._runs)
