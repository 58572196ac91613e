"""The suite that an import writes into its folder: `cases.jsonl` with embedded traces, and `eval.yaml`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from evalwright.errors import InputError, Problem, counted
from evalwright.files.durable import replace_file, replace_lines
from evalwright.files.masker import Masker
from evalwright.model.trace import Metrics, Output, Span, ToolCall, ToolResult, Trace, TraceMessage

__all__ = [
    "ANSWERED",
    "EXPLAINED",
    "IMPORTED_SUITE",
    "REWARDED",
    "check_free",
    "described_suite",
    "first_of",
    "note_of_graded_rewards",
    "note_of_missing_trials",
    "note_of_scores",
    "secrets_here",
    "suite_name",
    "without_secrets",
    "write_cases",
    "write_suite",
]

_CASES, IMPORTED_SUITE = "cases.jsonl", "eval.yaml"
_FEW = 5

ANSWERED: Final[dict[str, Any]] = {"name": "answered", "type": "answered"}
"""The evaluator for recordings without expectations: an answer must exist."""

REWARDED: Final[dict[str, Any]] = {
    "name": "reward",
    "type": "field_check",
    "config": {"field": "metrics.custom.reward", "equals": 1, "absent": "skip"},
}
"""The evaluator for recordings with a reward; those without one get no verdict from it."""

EXPLAINED: Final[dict[str, Any]] = {
    **REWARDED,
    "config": {**REWARDED["config"], "reason_from": "extra.reward_reason"},
}
"""The same where recordings say why their reward is not 1."""


def check_free(out: Path) -> None:
    """Raises InputError if folder `out` has a suite already; `write_cases` does so for cases without a suite."""
    files = [out / _CASES, out / IMPORTED_SUITE]
    if files[-1].exists():
        raise InputError([_name_taken(file) for file in files if file.exists()])


def _name_taken(file: Path) -> Problem:
    return Problem(str(file), "already exists; choose another folder")


def secrets_here() -> Masker:
    """What masks this environment's secrets in imported data, since agents print them. Names of keys stay."""
    made = (Trace, TraceMessage, ToolCall, ToolResult, Output, Metrics, Span)
    keys = (name for record in made for name in record.__struct_fields__)
    return Masker.of({}, os.environ).keeping([*keys, *_WORDS])


_WORDS = (
    "schema_version", "id", "input", "expected", "facts", "metadata", "group", "embedded_trace", "user_message",
    "system", "user", "assistant", "tool", "llm", "agent", "ok", "error", "unset", "recorded", "source", "import",
)  # fmt: skip


def without_secrets(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Lines of JSON without the secrets of this environment."""
    return map(secrets_here().mask_bytes, lines)


def write_cases(out: Path, lines: Iterator[bytes]) -> None:
    """Write `cases.jsonl` into `out`, all lines or no file. Raises InputError, StorageError and what `lines` raises.

    A file with these lines stays as it is: it was written by an import that was killed before it wrote the suite. Any
    other one is never replaced. The lines have no secrets: see `without_secrets`.
    """
    _make_folder(out)
    file = out / _CASES
    if not file.exists():
        replace_lines(file, lines)
    elif not _consists_of(file, lines):
        raise InputError([_name_taken(file)])


def _consists_of(path: Path, lines: Iterator[bytes]) -> bool:
    try:
        with path.open("rb") as file:
            return all(file.read(len(line)) == line for line in lines) and not file.read(1)
    except OSError:
        return False


_RECORDED: Final[dict[str, Any]] = {"name": "recorded", "adapter": "replay", "allow_missing": ["final_answer"]}
"""A recording need not end in words, and is judged nevertheless: by its actions or its reward."""


def described_suite(traces: int, cases: int) -> str:
    """The description in the written suite."""
    if not traces:
        return f"{counted(cases, 'case')} without recordings"
    return f"{counted(traces, 'recording')} of {counted(cases, 'case')}, replayed and judged"


def first_of(names: Collection[str]) -> str:
    """The first five names, with an ellipsis if there are more."""
    return ", ".join([*names][:_FEW]) + (", ..." if len(names) > _FEW else "")


def note_of_missing_trials(cases: Sequence[str], trials: int) -> str:
    few = f"{counted(len(cases), 'case has', 'cases have')} fewer than {counted(trials, 'trial')}"
    return f"{few}; missing ones are errors: {first_of(cases)}"


def note_of_graded_rewards(number: int) -> str:
    """What the user should know of rewards that are neither a pass nor a failure."""
    what = "reward is" if number == 1 else "rewards are"
    return f"{number:,} {what} neither 0 nor 1: only a reward of 1 passes; see {IMPORTED_SUITE}"


def note_of_scores(names: Collection[str]) -> str:
    """What the user should know of recorded scores by which the written suite does not judge."""
    by_one = "to judge by one, add a field_check of metrics.custom.NAME"
    return f"recorded scores do not decide ({first_of(names)}): the suite asks only for an answer; {by_one}"


def suite_name(files: Sequence[Path], out: Path) -> str:
    """The name of the written suite: that of the only file, or of its folder, as one of many files says little."""
    return files[0].stem if len(files) == 1 else out.resolve().name


def write_suite(
    out: Path,
    name: str,
    description: str,
    evaluators: list[dict[str, Any]],
    trials: int = 1,
    systems: list[dict[str, Any]] | None = None,
    *,
    deciding: int = 1,
    by_case: bool = False,
    warnings: Sequence[str] = (),
) -> list[Path]:
    """Write the `eval.yaml` that replays `cases.jsonl`; returns both files. The first `deciding` evaluators decide.

    With `by_case` each case names those that judge it, all of which must pass. Raises StorageError.
    """
    from evalwright.files.yaml import dump, schema_line

    document = {
        "eval": {
            "name": re.sub(r"[^\w.-]+", "-", name).strip("-.") or "recordings",
            "description": description,
            **({"warnings": [*warnings]} if warnings else {}),
        },
        "dataset": {"type": "cases", "path": _CASES, "own_evaluators": True}
        if by_case
        else {"type": "jsonl", "path": _CASES},
        "systems": systems or [_RECORDED],
        "evaluators": evaluators,
        **(
            {}
            if by_case
            else {"pass_criteria": {"all_required": [evaluator["name"] for evaluator in evaluators[:deciding]]}}
        ),
        "run": {"trials": trials},
        "output": [{"type": "local_files", "path": "runs"}],
    }
    replace_file(out / IMPORTED_SUITE, (schema_line("eval") + dump(document)).encode())
    return [out / _CASES, out / IMPORTED_SUITE]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(Problem(str(folder), f"cannot be created: {error.strerror or error}")) from None
