"""What a suite format is: one object of constants and references, from which everything else is found.

References are strings, so that reading one format's object loads nothing of what the format can do. The registers of
evaluators are made of such references too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ALLOW_OUTSIDE", "EvaluatorEntry", "Format", "Judging", "Option", "Ref", "Repository", "entry", "references"]

Ref = str | Callable[..., Any]
"""`"module:attribute"`, resolved by `registry.resolve` when it is first used; or the thing itself."""


class Option(NamedTuple):
    """A command-line option of one format, and the keyword argument of its `load`."""

    flags: tuple[str, ...]
    """The first one names the keyword: `--max-error-rate` is `max_error_rate`."""
    type: Literal["text", "int", "float", "path", "flag", "choice"] = "text"
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    metavar: str = ""
    help: str = ""
    """Without the format's name: the command line puts it under a heading."""
    writes: bool = False
    """It names a file or folder that is written, so that several suites cannot share it."""
    multiple: bool = False
    """It may be repeated; the argument is a tuple of all values."""

    @property
    def keyword(self) -> str:
        return self.flags[0].lstrip("-").replace("-", "_")


ALLOW_OUTSIDE = Option(
    ("--allow-outside",),
    "path",
    metavar="DIR",
    help="Allow files below DIR, outside of the suite's repository (repeatable).",
    multiple=True,
)
"""For formats whose suites or cases name files; what they name must lie within the suite's `files.boundary`."""


class Judging(NamedTuple):
    """How the evaluators of one cell are called."""

    concurrent: bool = True
    """Whether asynchronous evaluators are awaited together, or one after the other."""
    on_errored_trace: Literal["skip", "evaluate"] = "skip"
    """Whether evaluators are called on a trace whose system raised an error: there is no answer that they could judge.
    A suite's `pass_criteria.errored_cases` can ask for it, a format whose evaluators report that themselves says so."""


_TOGETHER = Judging()


class Repository(Protocol):
    """A folder with its own rules for which of its files are suites."""

    root: Path

    def select(self, folder: Path, found: Sequence[Path]) -> list[Path]:
        """Of the format's files that were found below `folder` those that are suites, and others that are, too."""


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
    """A file with another suffix is never looked at. Empty: every file is."""
    keys: tuple[frozenset[str], ...] = ()
    """A file whose top-level mapping has all keys of one of these sets is of this format."""
    excluded_by: frozenset[str] = frozenset()
    """A file whose top-level mapping has one of these keys is of another format, whatever else it has."""
    detects: Ref | None = None
    """`(path, head) -> bool`: the same where keys do not tell; `head` is the top-level mapping, empty if there is none.
    Standard library only: it is called for files of every format."""
    load: Ref
    """`(path, variables, *, to_run, **options) -> Suite`, with `variables` before those of the environment.
    Without `to_run` no system is built, no user code imported, and the dataset may be missing.
    Raises InputError with every problem."""
    docs: str = ""
    """Where the format is documented."""

    schemas: Mapping[str, tuple[Ref, str]] = field(default_factory=dict)
    """By the name that `evalwright schema` takes, `() -> JSON Schema` (draft 7) of a file that people write, and which
    file that is. A schema accepts every file that the format does."""
    options: tuple[Option, ...] = ()
    """Its own options of `run`, `validate` and `convert`; keyword arguments of `load`."""
    suite_flags: tuple[str, ...] = ()
    """Flags by which the original's command names a suite. Where their value is a suite of this format, `run`,
    `validate` and the like take it as their argument, whatever else such a flag means for other values."""
    original: str = ""
    """The name of the original program, where the format differs from it: a suite that is read under this name is
    judged by its rules. `load` then gets `original=True`."""
    suite_in: Ref | None = None
    """`(folder) -> Path | None`: the suite that a folder itself stands for. Standard library only."""
    reads_folders: bool = False
    """Whether `load` takes a folder of files as one suite."""
    sidecar_of: Ref | None = None
    """`(path) -> Path | None`: the suite that this file only completes."""
    repository: Ref | None = None
    """`(folder) -> Repository | None`: the rules by which a folder is searched, if it has some."""

    names_in: Ref | None = None
    """`(path, options) -> Iterable[str]`: the references to variables in a suite's files as they are written.
    By default those in a YAML file."""
    normalize: Ref | None = None
    """`(data) -> data` for a variant (it has a key `adapter`) or an evaluator (`type`) as plain data, of any format:
    two that mean the same become equal."""
    unread: Ref | None = None
    """`(document) -> Iterable[str]`: paths of keys that have no effect."""

    write: Ref | None = None
    """`(suite, folder, output) -> Written`. None: `convert` cannot write this format."""
    other_form: Ref | None = None
    """`(source, target, output, lost) -> Path | None`: writes a file of this format in its other form (JSON Lines or
    YAML); `target` is None if the user names none. Gives what was written, None if the file has no other form."""

    expands: Ref | None = None
    """`(document) -> bool`: whether the cases have a form that `convert` to the same format replaces."""

    targets: Mapping[str, Ref] = field(default_factory=dict)
    evaluators: Mapping[str, EvaluatorEntry | Ref] = field(default_factory=dict)
    """An entry says in lists what the evaluator does; a bare reference leaves that to its documentation."""
    extractors: Mapping[str, Ref] = field(default_factory=dict)
    exports: Mapping[str, Ref] = field(default_factory=dict)
    """The original program's own result files."""
    reports: Mapping[str, Ref] = field(default_factory=dict)
    mirrors: Mapping[str, Ref] = field(default_factory=dict)
    totals: Ref | None = None
    """`(plan) -> Totals | None`: the numbers and the gate that the original program would give."""
    gates: Mapping[str, Ref] = field(default_factory=dict)
    """By kind, the gates that its `totals` decide, each as the msgspec.Struct that a stored one must have the shape of.
    Others are conditions on the scores of evaluators, which are decided beside the totals."""
    judging: Judging = _TOGETHER
    verdicts: Ref | None = None
    """`(criteria, case, trace, results) -> CaseVerdict`: the rule by which a cell passes, if it is the format's own."""
    known_by: Ref | None = None
    """`(case) -> str`: what two runs know a case by, where its id only says where it stands in the suite."""
    read_results: Ref | None = None
    """`(path) -> (scores by case, number of lines)`: a result file that `compare` accepts."""
    adopt_run: Ref | None = None
    """`(folder) -> Suite | None`: the suite of a run folder that the original program wrote."""

    adopts: Mapping[str, tuple[str, Ref]] = field(default_factory=dict)
    """By kind (`evaluators`, `targets`, ...) the group of entry points of the original, and `(load) -> thing`: the
    thing of ours that does what the original's does, which `load` imports."""

    command: Ref | None = None
    """A click command of its own: `evalwright NAME`."""
    stands_for: str = ""
    """The original's command that has the same command line; `evalwright install-commands` can make it."""
    shims: Mapping[str, str | Mapping[str, Ref]] = field(default_factory=dict)
    """Modules that users' code imports: the module of ours that stands in for each, or its names."""
    replaces: tuple[str, ...] = ()
    """Modules of `shims` that are served even where the package is installed."""


class EvaluatorEntry(NamedTuple):
    """One evaluator: where it is, and what a reader of the list needs to choose it. Loads nothing."""

    ref: str | Callable[..., Any]
    """`"module:attribute"` of the class, or the class itself."""
    sentence: str
    """When it passes, or what its score is."""
    format: str = ""
    """The title of the format whose vocabulary it is; "" for that of `eval.yaml`."""
    see: Mapping[str, str] = {}
    """Similar evaluators and where they differ, such as `{"cost": "≤ the limit"}`."""
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
    return EvaluatorEntry(ref, sentence, format, see or {}, example or {})


def references(module: str, *names: str) -> dict[str, str]:
    """The reference of each name that a module has, by the name."""
    return {name: f"{module}:{name}" for name in names}
