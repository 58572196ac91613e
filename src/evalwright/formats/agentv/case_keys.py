"""The keys of a case of an AgentEvals file, and which of them have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.conversations import TURN_KEYS
from evalwright.formats.agentv.detection import OUTCOMES
from evalwright.formats.agentv.notes import Notes

__all__ = [
    "ASSERTIONS",
    "CASE_KEYS",
    "EXECUTION_KEYS",
    "evaluator_lists",
    "first_given",
    "lists_of_file",
    "of_assertions",
    "strange_texts",
    "warn_of_unused",
]

CASE_KEYS = {
    "id", *OUTCOMES, "input", "input_messages", "expected_output", "expected_messages", "rubrics", "execution",
    "evaluators", "conversation_id", "description", "note", "metadata", "assert", "assertions", "tags", "input_files",
    "vars", "workspace", *TURN_KEYS,
}  # fmt: skip
EXECUTION_KEYS = {"target", "targets", "timeout_seconds", "evaluators", "skip_defaults", "threshold"}
ASSERTIONS = ("assertions", "assert")
"""The newer and the older key for assertions; the first of them that has a value is used."""
_SAME = (OUTCOMES, ("input_messages", "input"), ("expected_messages", "expected_output"))
"""Keys that say the same: the first of each that has a value is used."""
_TEXT = (str, "a text")
_MAPPING = (dict, "a mapping")
_DESCRIBING: dict[str, tuple[type, str]] = {
    "conversation_id": _TEXT, "description": _TEXT, "note": _TEXT, "metadata": _MAPPING, "vars": _MAPPING,
    "tags": (list, "a list of texts"),
}  # fmt: skip
"""Keys that a case can do without, with their types."""


def first_given(raw: Mapping[Any, Any], keys: tuple[str, ...]) -> str | None:
    """The first of the keys that has a value; None if none has."""
    return next((key for key in keys if raw.get(key) is not None), None)


def evaluator_lists(raw: Mapping[Any, Any], execution: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """The lists of evaluators of a case, each with its key; only the first is used, as in AgentV 4."""
    written = {
        **{key: raw.get(key) for key in ASSERTIONS},
        "execution.evaluators": execution.get("evaluators"),
        "evaluators": raw.get("evaluators"),
    }
    return [(key, listed) for key, listed in written.items() if listed is not None]


def lists_of_file(head: Mapping[Any, Any], execution: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """The same of a file, which may have its assertions below `execution` as well."""
    written = {
        **{key: head.get(key) for key in ASSERTIONS},
        **{f"execution.{key}": execution.get(key) for key in (*ASSERTIONS, "evaluators")},
    }
    return [(key, listed) for key, listed in written.items() if listed is not None]


def of_assertions(key: str) -> bool:
    """Whether a list of evaluators with this key has assertions."""
    return key.rpartition(".")[2] in ASSERTIONS


def warn_of_unused(raw: Mapping[Any, Any], execution: Mapping[Any, Any], report: Notes) -> None:
    """Warn of values of another type than expected, and of keys beside others that say the same."""
    for key, (kind, wanted) in _DESCRIBING.items():
        if raw.get(key) is not None and not isinstance(raw[key], kind):
            report.warn(key, f"{key} is not used: expected {wanted}, found {as_written(raw[key])}")
    for place, message in strange_texts("tags", raw.get("tags")):
        report.warn(place, message)
    for keys in _SAME:
        used = first_given(raw, keys)
        for key in keys:
            if key != used and raw.get(key) is not None:
                report.warn(key, f"{key} is not used: there is {used}, too")
    lists = [key for key, _ in evaluator_lists(raw, execution)]
    for key in lists[1:]:
        report.warn(key, f"{key} is not used: there is {lists[0]}, too")


def strange_texts(place: str, listed: Any) -> list[tuple[str, str]]:
    """The entries of a list of texts that are none, each with its place."""
    return [
        (f"{place}[{i}]", f"{item!r} is not used: expected a text")
        for i, item in enumerate(listed if isinstance(listed, list) else ())
        if not isinstance(item, str)
    ]
