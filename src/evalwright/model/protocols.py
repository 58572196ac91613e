"""The interfaces of formats, targets, evaluators, stores and reports. Signatures and prose only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from evalwright.model.artifact import Changes, FilesystemArtifact
from evalwright.model.facts import RejudgedCell
from evalwright.model.import_result import ImportResult
from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Answer, Doubt, Trace

__all__ = [
    "Enricher",
    "Evaluator",
    "Export",
    "Extractor",
    "Importer",
    "JudgedBlocks",
    "JudgementShare",
    "JudgementWriter",
    "Mirror",
    "Part",
    "Prepared",
    "Report",
    "RunReader",
    "RunWriter",
    "Store",
    "Target",
    "Workspace",
]

T = TypeVar("T")

Part = tuple[int, int]
"""A slice of a run's traces: opaque, made by `RunReader.parts`, and understood only by the same kind of reader."""


@runtime_checkable
class Target(Protocol):
    """A way to call the system under test. Registered as a callable `(variant) -> Target`.

    Constructing it checks the configuration (raises InputError before anything runs). The optional methods
    `async open()` and `async close()` are called once around a run; `close()` also if `open()` failed. `asks(case)`
    is the same as for evaluators. In a run with workspaces, `evalwright.plugins.workspace_path()` is the folder of
    the cell for which `run` is called.
    """

    def run(self, case: Case, trial: int) -> Awaitable[Answer]:
        """Answer one case; `trial` counts its repeats from 0. Any exception becomes the trace's error.

        TargetError names the type of the error. The runner limits the time, and cancels the call when it is up.
        """


@runtime_checkable
class Evaluator(Protocol):
    """Judges traces; registered as a class. A pure function of its arguments: no state, no clock, no environment.

    A `msgspec.Struct` class declares its configuration as fields; any other class gets its configuration as keyword
    arguments and rejects a bad one with ValueError or TypeError. All else that it declares is optional: class
    attributes, properties or methods named like the fields of `model.traits.Traits`.
    """

    def evaluate(self, case: Case, trace: Trace) -> Evaluation | Awaitable[Evaluation]:
        """Evaluate one trace. Raise EvaluatorError (or any exception) if no verdict is possible.

        A third argument is the artifact or the results, if the evaluator declares that it uses them.
        """


class Enricher(Protocol):
    """Completes traces with data from elsewhere. Registered as a callable `(config) -> Enricher` (raises
    InputError)."""

    async def enrich(self, trace: Trace) -> Sequence[Doubt] | None:
        """Change a trace before it is stored; the end of the run names the doubts about it.

        An exception is noted in the trace, and the run goes on.
        """


class Mirror(Protocol):
    """A further output of a run. Registered as a callable `(config) -> Mirror` (raises InputError).

    All methods are optional and may block: each mirror is called in a thread of its own, one call after the other,
    except `start`, `catch_up`, `prepare` and `cell`, for which the run waits. Exceptions are listed in `sink_errors` of
    the summary.
    """

    def start(self, plan: Plan) -> None:
        """A run, or a further session of it, begins."""

    def catch_up(self, run: RunReader) -> None:
        """A run is resumed: its records may include cells of earlier sessions that never reached this mirror.

        Called after `start`, before the first cell.
        """

    def prepare(self, trace: Trace) -> None:
        """Add ids of this mirror to a trace that is about to be stored."""

    def trace(self, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        """A cell is stored."""

    def cell(self, case: Case, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        """A cell is stored: in place of `trace`, for a mirror that takes part in cells. The cell waits for it, and it
        is called in several threads at once."""

    def summary(self, summary: RunSummary) -> None:
        """The run, or this session of it, is over."""

    def close(self) -> None: ...


class Export(Protocol):
    """Writes a stored run in the format of another program. Registered as a callable `(config) -> Export`.

    If it has a method `check`, that is called before the first cell; it raises InputError if `write` could not
    write. `evalwright export` needs a class with the class method `of_stored(plan, folder) -> Export`, which writes its
    files into a new folder and raises InputError for a run that the format cannot express; a method
    `losses(plan, summary) -> Iterable[str]` says what of a run the files leave out.
    """

    def write(self, run: RunReader, plan: Plan, summary: RunSummary, mask: Callable[[str], str]) -> None:
        """Write the run, replacing what an earlier session wrote; `mask` removes secrets from a text. Raises
        StorageError."""


class Workspace(Protocol):
    """Makes a folder for each cell. Registered as a callable `(config, suite_folder) -> Workspace` (raises InputError).

    All methods block and are called in threads, `prepare` and the methods of `Prepared` in several at once.
    """

    kind: str
    """Its name in the records of artifacts."""

    def open(self) -> None:
        """Called once before all cells. Raises InputError."""

    def prepare(self, case: Case, trial: int) -> Prepared:
        """A fresh folder for one attempt at a cell. Any exception becomes the error of the cell."""

    def close(self) -> None:
        """Called once at the end: remove whatever is left of the folders."""


class Prepared(Protocol):
    """The folder of one attempt at a cell."""

    path: Path

    def collect(self, into: Path, mask: Callable[[str], str] | None) -> Changes:
        """What happened to the files. Copies go to the new folders `before` and `after` of `into`, and to `diff.txt`.

        `mask` removes secrets from names and texts that are copied.
        """

    def remove(self) -> None: ...


class Extractor(Protocol):
    """Picks the text to be judged out of a conversation; registered and configured like an evaluator."""

    def extract(self, turns: list[list[dict[str, Any]]], blocks: dict[str, str] | None) -> str:
        """One text, "" if there is none. For `turns` and `blocks` see `evaluators.turns`."""


class RunReader(Protocol):
    """One stored run, read only. Records come in the order in which they were written, superseded ones included.

    One with a method `mask_cases(masked=True)` reads cases from then on with a mask in place of each secret, as traces
    have one, and with False as they are.

    `kind` may be any msgspec struct with some of the record's fields; decoding fewer is faster.
    Lines that cannot be read are left out and appended to `damage`.
    """

    plan: Plan | None
    """None in a folder that another program wrote."""
    unresolved: list[str]
    """Names of the plan's secrets that are not available: the run can be read, but its systems cannot be called."""
    location: str
    damage: list[str]

    @property
    def artifacts(self) -> Path:
        """The folder of the run's artifacts, which may not exist."""

    def cases(self, start: int = 0) -> Iterator[Case]:
        """The cases as they were run, from position `start`."""

    def case(self, index: int) -> Case:
        """The case at a position of the dataset. Raises InputError if there is none."""

    def parts(self, count: int) -> list[Part]:
        """Split the traces into at most `count` parts of about equal size."""

    def traces(self, kind: type[T], part: Part | None = None) -> Iterator[T]: ...

    def results(self, kind: type[T]) -> Iterator[T]: ...

    def verdicts(self, kind: type[T]) -> Iterator[T]: ...

    def summary(self) -> RunSummary | None:
        """The stored summary, if there is one."""

    def document(self, name: str) -> bytes | None:
        """A document that the run was created with, such as `config.yaml`; None if there is none."""

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Replace `${NAME}`, which is stored for secrets, by their values in the plan and the cases, to call systems
        and judges.

        A run that is only looked at keeps its placeholders. Returns the variables that the plan names; they are masked
        from now on in everything that is written.
        """

    def mask(self, text: str) -> str:
        """The text without secrets: for what is compared with records, and for files that are written beside them."""

    def close(self) -> None: ...


class RunWriter(RunReader, Protocol):
    """One stored run, with the exclusive right to write. Raises StorageError when a write fails.

    An append has reached the operating system when the call returns (a database may hold it back until `sync`),
    and the disk after `sync`. Order matters: trace, then results, then verdict, so that a crash leaves at most a
    cell without its verdict. A writer with a method `hold(later)` may keep appends until `later` calls the function it
    gets, or the caller calls the one that `hold` returned; after `hold(None)` appends are written at once again.
    One with a method `hurry()` may wait for something that does not answer; from that call on, which may come from any
    thread and from a signal handler, it does so for a few seconds at most.
    """

    def append_trace(self, trace: Trace) -> int | None:
        """Append a trace. Returns about how many bytes its record has, None if that is not known."""

    def append_results(self, results: Sequence[EvaluationResult]) -> None:
        """Append the rows of one cell in one write."""

    def append_verdict(self, verdict: CaseVerdict) -> None: ...

    def sync(self) -> None:
        """Make everything appended so far durable. Thread-safe; a failure is final and never retried."""

    def save_summary(self, summary: RunSummary) -> None:
        """Replace the summary atomically."""

    def save_artifact(self, artifact: FilesystemArtifact) -> None:
        """Write `artifact.json` into the cell's folder of artifacts, replacing an earlier attempt's."""

    def save_plan(self, plan: Plan) -> None:
        """Replace the plan atomically: re-evaluating with other evaluators changes it."""

    def rewrite_judgements(self) -> JudgementWriter:
        """Start a complete new set of results and verdicts, which replaces the old set when committed."""


class JudgementWriter(Protocol):
    """A replacement of all results and verdicts of a run; readers see the old set until `commit`.

    Several processes may each write the share of one part: `share(part)` gives a picklable handle to open there.
    """

    def share(self, number: int) -> JudgementShare: ...

    def commit(self) -> None: ...

    def abandon(self) -> None: ...


class JudgementShare(Protocol):
    """One process's share of new results and verdicts; shares are joined in the order of their numbers."""

    def append_results(self, results: Sequence[EvaluationResult]) -> None: ...

    def append_verdict(self, verdict: CaseVerdict) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class JudgedBlocks(Protocol):
    """Takes results and verdicts as lines, the form in which they are stored."""

    def append_lines(self, results: bytes, verdicts: bytes) -> None:
        """Append results and verdicts of some cells as lines of JSON, not masked yet."""

    def noting(self) -> Callable[[Sequence[RejudgedCell], datetime], None] | None:
        """A function to be called before verdicts are appended, with the cells that the next results and verdicts
        belong to, in order, and the time at which the last of these was finished; None if it is not needed."""


class Store(Protocol):
    """A place where runs are kept. Registered as a callable `(config, masker, runs) -> Store` (raises InputError).

    Creating one connects to nothing yet. `masker` masks what is written (None: the secrets of the environment). In the
    folder `runs`, a store without a folder of its own keeps artifacts, and its caller a note of where each run is.
    If it has a method `is_written(run_id)`, that says whether a process is writing the run, without taking a lock.
    """

    def create(self, plan: Plan, cases: Iterable[Case], documents: Mapping[str, bytes]) -> RunWriter:
        """A new run with its cases and documents (file name to content), complete or not there at all.

        `plan` is changed: `run_id` gets a suffix `-2`, `-3`, ... if it is taken, `cases_total` is set from `cases`.
        An exception from `cases` is passed on and leaves nothing behind.
        """

    def open(self, run_id: str) -> RunWriter:
        """Open a run for writing: lock it, cut torn tails. Raises InputError, RunLockedError, StorageError."""

    def read(self, run_id: str) -> RunReader:
        """Open a run for reading. Raises InputError if there is none."""

    def run_ids(self) -> list[str]:
        """Ids of the stored runs, oldest first."""


class Report(Protocol):
    """One output format for people or machines. Registered as a callable `() -> Report`."""

    def render(self, reader: RunReader, summary: RunSummary) -> str: ...


class Importer(Protocol):
    """Makes suites of what other programs recorded. Registered as an object that has this method, such as a class in
    which it is static."""

    def import_files(self, files: Sequence[Path], out: Path, mapping: Mapping[str, str]) -> ImportResult:
        """Write one suite for all files into the folder `out`, which need not exist.

        `mapping` says where in a record its parts are (`--map`, `--mapping`). Raises InputError with every mistake, or
        if `out` has such files already, and then nothing is written; StorageError if a write fails.
        """
