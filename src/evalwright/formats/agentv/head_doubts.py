"""What is most likely not meant in an AgentEvals file besides its cases."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evalwright.errors import Problem, did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.case_keys import strange_texts
from evalwright.formats.agentv.file import CASE_LISTS, EXECUTION, HEAD, MOST_WORKERS, TRIALS, EvalFile
from evalwright.formats.agentv.vocabulary import ALIASES
from evalwright.formats.shared.findings import REACHED_BY_ALL

__all__ = ["head_doubts"]

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}[a-z0-9]")
_LONGEST = 2048
_TYPES: dict[str, tuple[type, str]] = {
    "dataset": (str, "a text"), "description": (str, "a text"), "target": (str, "the name of a target"),
    "metadata": (dict, "a mapping"), "metadata.tags": (list, "a list of texts"), "tags": (list, "a list of texts"),
}  # fmt: skip
_SAME = (
    ("name", "dataset"), ("metadata.tags", "tags"), ("execution.targets", "execution.target", "target"),
    ("assertions", "assert", "execution.assertions", "execution.assert", "execution.evaluators"),
)  # fmt: skip
"""Keys that say the same: the first of each that has a value is used."""


def head_doubts(file: EvalFile) -> list[Problem]:
    """Keys at the top of the file that nothing reads, and values that have no effect or violate the standard."""
    trials = file.execution.get("trials")
    doubts = [
        *_doubts_about_values(file),
        *_doubts_about_repeats(file),
        *_doubts_about_name(file),
        *_doubts_about_execution(file),
    ]
    return [
        *_unread(file, "", file.head, HEAD),
        *_unread(file, "execution.", file.execution, EXECUTION),
        *_unread(file, "execution.trials.", trials if isinstance(trials, dict) else {}, TRIALS),
        *(Problem(str(file.head_path), message, file.head_line(key), key) for key, message in doubts),
    ]


def _unread(file: EvalFile, place: str, raw: Mapping[str, Any], known: Collection[str]) -> Iterator[Problem]:
    for key in raw:
        if key not in known:
            second = " beside the other cases" if key in CASE_LISTS else did_you_mean(str(key), known)
            message = f"nothing reads the key {key!r}{second}"
            at = f"{place}{key}"
            yield Problem(str(file.head_path), message, file.head_line(at), at, unread=True)


def _value(file: EvalFile, key: str) -> Any:
    """The value of a key of the head, or of one in a mapping there."""
    first, _, second = key.partition(".")
    value = file.head.get(first)
    if not second:
        return value
    return value.get(second) if isinstance(value, dict) else None


def _doubts_about_values(file: EvalFile) -> Iterator[tuple[str, str]]:
    for key, (kind, expected) in _TYPES.items():
        value = _value(file, key)
        if value is not None and not isinstance(value, kind):
            yield key, f"{key} is not used: expected {expected}, found {as_written(value)}"
        if kind is list:
            yield from strange_texts(key, value)
    implicit = file.head.get("evaluator")
    written = str(implicit).replace("-", "_")
    if implicit is not None and ALIASES.get(written, written) != "llm_judge":
        yield (
            "evaluator",
            f"evaluator is not used: cases without evaluators have an llm_judge, found {as_written(implicit)}",
        )


def _doubts_about_repeats(file: EvalFile) -> Iterator[tuple[str, str]]:
    for keys in _SAME:
        used, *others = [key for key in keys if _value(file, key) is not None] or [""]
        for other in others:
            yield other, f"{other} is not used: there is {used}, too"


def _doubts_about_name(file: EvalFile) -> Iterator[tuple[str, str]]:
    name = file.head.get("name")
    if name is None and file.head.get("dataset") is None and file.is_of_standard:
        yield "name", f"name: the standard wants one; without it, the suite is called {file.name}, like its file"
    elif name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        yield "name", "name: the standard wants 2 to 64 of a-z, 0-9 and '-'"
    if len(str(file.head.get("description", ""))) > _LONGEST:
        yield "description", f"description: the standard wants at most {_LONGEST} characters"


def _doubts_about_execution(file: EvalFile) -> Iterator[tuple[str, str]]:
    execution = file.execution
    if file.threshold == 0:
        yield "execution.threshold", f"threshold: {REACHED_BY_ALL}"
    listed = execution.get("targets")
    if isinstance(listed, list) and len(listed) > 1:
        chosen = f"here {file.default_target!r}; --target chooses another"
        yield "execution.targets", f"targets: one target is evaluated at a time, {chosen}"
    values = {
        "target": (file.default_target, "the name of a target"),
        "workers": (file.workers, f"a whole number from 1 to {MOST_WORKERS}"),
    }
    for key, (used, expected) in values.items():
        if execution.get(key) is not None and used is None:
            yield f"execution.{key}", f"{key} is not used: expected {expected}, found {as_written(execution[key])}"
    trials = execution.get("trials")
    if isinstance(trials, dict) and trials.get("strategy") is not None:
        message = "strategy is not used: each trial has a verdict of its own, and the summary has pass@k and pass^k"
        yield "execution.trials.strategy", message
