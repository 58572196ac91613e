"""A suite as its author means it; every format reads its files into this.

A format checks the shape of its files with its own models and states here what they mean. This is not checked again, so
that a format without pydantic models loads and runs without pydantic. `cases` is a re-iterable stream, so that a suite
of a million cases is never held in memory.
"""

# No `from __future__ import annotations`: `help(evalwright)` resolves annotations that are strings in the module named
# by the class, which is `evalwright`.

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from evalwright.errors import Problem, counted
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plugin, Price, RunSettings, Variant
from evalwright.model.snapshot import Case

if TYPE_CHECKING:
    from evalwright.model.case import EvalCase
else:
    EvalCase = Any  # or every suite would load pydantic

__all__ = ["Suite"]


class Suite(msgspec.Struct, kw_only=True):
    """Cases, variants and evaluators, ready to run."""

    name: str
    dialect: str
    source: Path
    """The file that the suite was read from."""
    cases: Iterable[EvalCase | Case]
    """Re-iterable; raises InputError with every problem of the dataset at the end of the first pass."""
    variants: list[Variant]
    evaluators: list[EvaluatorSpec]
    pass_criteria: PassCriteria = PassCriteria()
    run: RunSettings = RunSettings()
    out: Path | None = None
    """The folder where runs are kept, if the suite names one and its store keeps runs in a folder."""
    store: Plugin = Plugin("local_files")
    """Where runs are kept: the first entry of `output`."""
    mirrors: list[Plugin] = []
    exports: list[Plugin] = []
    """Formats of other programs in which the stored run is also written."""
    workspace: Plugin | None = None
    evaluators_by_case: bool = False
    """Cases bring their own evaluators; `evaluators` is then empty."""
    empty: Literal["refused", "loaded", "run"] = "refused"
    """What the original does with a dataset without cases: if it loads one, that deserves only a warning."""
    target_chosen: bool = False
    """The format has applied the choice of `--target` itself."""
    gate: dict[str, Any] | None = None
    """The rule by which the whole run passes, if the suite has one."""
    totals: str = ""
    """The format whose totals and gate rule a run has, if it is not `dialect`."""
    prices: dict[str, Price] = {}
    document: dict[str, Any] = {}
    """The whole authored document with defaults, in its format's own shape: written to `config.yaml`, masked."""
    secrets: dict[str, str] = {}
    """Values that must never reach disk or terminal, by the name of the variable or key they came from."""
    environment: dict[str, str] = {}
    """Variables from the suite's `.env` files; those of the process take precedence."""
    files: list[Path] = []
    """Files besides `source` that the suite is read from or runs; `Plan.files` has them, and the files of its code."""
    warnings: list[Problem] = []
    """What is valid but probably a mistake."""
    contents: Callable[[], str] | None = None
    """What it consists of in the words of its format, which `validate` prints below its own counts."""
    unexecuted: list[Problem] = []
    """What users' code would produce, missing if none is executed."""
    dependence: str = ""
    """Which case continues from the answer to another, if one does: such a suite is run in one session and in its
    order."""
    metadata: dict[str, Any] = {}

    def __repr__(self) -> str:
        parts = f"{counted(len(self.variants), 'variant')}, {counted(len(self.evaluators), 'evaluator')}"
        return f"<Suite {self.name!r} of {str(self.source)!r}: {parts}>"  # notebooks show it: no value may be a secret
