"""What a suite format is: one object of constants and references, from which everything else is found.

References are strings, so that reading a format's object does not import the format's code. The tables of evaluators
are made of such references, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "ALLOW_OUTSIDE", "MAX_CONCURRENCY", "EvaluatorEntry", "Format", "Judging", "Option", "Ref", "Repository", "entry",
    "references",
]  # fmt: skip

Ref = str | Callable[..., Any]
"""`"module:attribute"`, resolved by `registry.resolve` on first use; or the thing itself."""


class Option(NamedTuple):
    """A command-line option of one format, and the keyword argument of its `load`."""

    flags: tuple[str, ...]
    """The first one gives the keyword: `--max-error-rate` is `max_error_rate`."""
    type: Literal["text", "int", "float", "path", "flag", "choice"] = "text"
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    metavar: str = ""
    help: str = ""
    """Without the format's name, which the command line shows as a heading."""
    writes: bool = False
    """It names a file or folder to be written, so several suites cannot share it."""
    only_runs: bool = False
    """Nothing but a run reads it: other commands accept it, so that the options of `run` fit them, and do not list
    it."""
    multiple: bool = False
    """It may be repeated; the argument is a tuple of all values."""

    @property
    def keyword(self) -> str:
        return self.flags[0].lstrip("-").replace("-", "_")

    @property
    def is_of_runs(self) -> bool:
        return self.writes or self.only_runs


ALLOW_OUTSIDE = Option(
    ("--allow-outside",),
    "path",
    metavar="DIR",
    help="Allow files below DIR, outside of the suite's repository (repeatable).",
    multiple=True,
)
"""For formats whose suites or cases name files, which must lie within the suite's `files.boundary`."""
MAX_CONCURRENCY = Option(
    ("--max-concurrency", "-j"), "int", minimum=1, metavar="N", help="Cells at the same time, instead of the suite's."
)
"""For formats whose suites have a setting of this name, which the original's option replaces."""


class Judging(NamedTuple):
    """How the evaluators of one cell are called."""

    concurrent: bool = True
    """Whether asynchronous evaluators are awaited together rather than one after the other."""
    on_errored_trace: Literal["skip", "evaluate"] = "skip"
    """Whether evaluators are called on a trace whose system raised an error and which therefore has no answer. Formats
    whose evaluators report such errors themselves set this; a suite can ask for it with
    `pass_criteria.errored_cases`."""


_TOGETHER = Judging()


class Repository(Protocol):
    """A folder with its own rules for which of its files are suites."""

    root: Path

    def select(self, folder: Path, found: Sequence[Path]) -> list[Path]:
        """The suites: those among the format's files that were found below `folder`, and any other files that are
        suites."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Format:
    """A kind of suite file: how it is found, read, run, judged and written.

    Only the first four fields and `load` are required.
    """

    name: str
    """The name for users: `--format NAME`."""
    title: str
    """The name in lists and messages: "Letta Evals"."""
    summary: str
    """One sentence for lists."""
    suffixes: tuple[str, ...]
    """Files with other suffixes are never looked at. Empty: all files are."""
    names: tuple[str, ...] = ()
    """Names that only its suites have. If a folder is searched, the first one in each folder is the suite, whichever
    others are there, as in the original program."""
    keys: tuple[frozenset[str], ...] = ()
    """A file whose top-level mapping has all keys of one of these sets has this format."""
    excluded_by: frozenset[str] = frozenset()
    """A file whose top-level mapping has one of these keys has another format, whatever else it contains."""
    detects: Ref | None = None
    """`(path, head) -> bool`: detection where keys are not enough; `head` is the top-level mapping, empty if there is
    none. Standard library only: it is called for files of every format."""
    load: Ref
    """`(path, variables, *, to_run, **options) -> Suite`; `variables` take precedence over those of the environment.
    Without `to_run` no system is built, no user code is imported, and the dataset may be missing. Raises InputError
    with every problem."""
    docs: str = ""
    """Where the format is documented."""

    schemas: Mapping[str, tuple[Ref, str]] = field(default_factory=dict)
    """By the name that `evalwright schema` takes: `() -> JSON Schema` (draft 7) of a file that people write, and which
    file that is. A schema accepts every file that the format does."""
    options: tuple[Option, ...] = ()
    """Its own options of `run`, `validate` and `convert`; keyword arguments of `load`."""
    suite_flags: tuple[str, ...] = ()
    """Flags with which the original's command names a suite. If their value is a suite of this format, `run`,
    `validate` and the like take it as their argument, whatever else such a flag means for other values."""
    joining_flag: str = ""
    """The option for further files of the same suite, if the original joins those that its flags name."""
    original: str = ""
    """The name of the original program, if the format differs from it: a suite that is read under this name is judged
    by the original's rules. `load` then gets `original=True`."""
    suite_in: Ref | None = None
    """`(folder) -> Path | None`: the suite that a folder stands for. Standard library only."""
    reads_folders: bool = False
    """Whether `load` takes a folder of files as one suite."""
    sidecar_of: Ref | None = None
    """`(path) -> Path | None`: the suite that this file merely completes."""
    repository: Ref | None = None
    """`(folder) -> Repository | None`: the rules by which a folder is searched, if it has any."""

    names_in: Ref | None = None
    """`(path, options) -> Iterable[str]`: the references to variables in a suite's files, as written. By default those
    in a YAML file."""
    normalize: Ref | None = None
    """`(data) -> data` for a variant (with a key `adapter`) or an evaluator (`type`) as plain data, of any format:
    makes those equal that mean the same."""
    unread: Ref | None = None
    """`(document) -> Iterable[str]`: paths of keys that have no effect."""

    write: Ref | None = None
    """`(suite, folder, output) -> Written`. None: `convert` cannot write this format."""
    other_form: Ref | None = None
    """`(source, target, output, lost) -> Path | None`: writes a file of this format in its other form (JSON Lines or
    YAML); `target` is None if the user names none. Returns the written file; None if the file has no other form."""

    expands: Ref | None = None
    """`(document) -> bool`: whether the cases are written in a form that `convert` to the same format replaces."""

    targets: Mapping[str, Ref] = field(default_factory=dict)
    evaluators: Mapping[str, EvaluatorEntry | Ref] = field(default_factory=dict)
    """An entry has the sentence for lists of evaluators; a bare reference takes it from the docstring."""
    extractors: Mapping[str, Ref] = field(default_factory=dict)
    exports: Mapping[str, Ref] = field(default_factory=dict)
    """The original program's result files: while a run works, by name, and after it by `evalwright export`, which
    takes the first one."""
    reports: Mapping[str, Ref] = field(default_factory=dict)
    mirrors: Mapping[str, Ref] = field(default_factory=dict)
    totals: Ref | None = None
    """`(plan) -> Totals | None`: the numbers and the gate that the original program would give."""
    gates: Mapping[str, Ref] = field(default_factory=dict)
    """The gates that its `totals` decide, by kind, each as the msgspec.Struct whose shape a stored one must have. All
    others are conditions on evaluators' scores, which are decided beside the totals."""
    judging: Judging = _TOGETHER
    verdicts: Ref | None = None
    """`(criteria, case, trace, results) -> CaseVerdict`: when a cell passes, if the format has a rule of its own."""
    known_by: Ref | None = None
    """`(case) -> str`: how two runs recognise a case, if its id only tells its place in the suite."""
    read_results: Ref | None = None
    """`(path) -> (scores by case, number of lines)`: a result file that `compare` accepts."""
    adopt_run: Ref | None = None
    """`(folder) -> Suite | None`: the suite of a run folder that the original program wrote."""

    adopts: Mapping[str, tuple[str, Ref]] = field(default_factory=dict)
    """By kind (`evaluators`, `targets`, ...) the original's group of entry points, and `(load) -> thing`: our
    equivalent of the original's thing, which `load` imports."""

    command: Ref | None = None
    """A click command of its own: `evalwright NAME`."""
    stands_for: str = ""
    """The original's command with the same command line; `evalwright install-commands` can create it."""
    shims: Mapping[str, str | Mapping[str, Ref]] = field(default_factory=dict)
    """Modules that users' code imports: for each, the module of ours that replaces it, or the names in it."""
    replaces: tuple[str, ...] = ()
    """Modules of `shims` that are replaced even if the package is installed."""


class EvaluatorEntry(NamedTuple):
    """One evaluator: where it is, and what the reader of a list needs to choose it. Imports nothing."""

    ref: str | Callable[..., Any]
    """`"module:attribute"` of the class, or the class itself."""
    sentence: str
    """When it passes, or what its score means."""
    format: str = ""
    """The title of the format to whose vocabulary it belongs; "" for `eval.yaml`."""
    see: Mapping[str, str] = {}
    """Similar evaluators and how they differ, such as `{"cost": "≤ the limit"}`."""
    example: Mapping[str, Any] = {}
    """A configuration that is valid as it stands."""


def entry(
    ref: str | Callable[..., Any],
    sentence: str,
    *,
    format: str = "",
    see: Mapping[str, str] | None = None,
    example: Mapping[str, Any] | None = None,
) -> EvaluatorEntry:
    """The entry of an evaluator in a register: where it is, one sentence about it, and the rest of `EvaluatorEntry`."""
    return EvaluatorEntry(ref, sentence, format, see or {}, example or {})


def references(module: str, *names: str) -> dict[str, str]:
    """The references of all names of a module, by name."""
    return {name: f"{module}:{name}" for name in names}
