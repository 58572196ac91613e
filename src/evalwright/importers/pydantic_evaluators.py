"""Evaluators of pydantic_evals 2.62 (`pydantic_evals.evaluators.common`) as ours, if one of ours means the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any

from evalwright.files.numbers import is_number
from evalwright.importers.record_values import described

__all__ = ["EvaluatorReading", "expected_field"]

_ANSWER = "output.final_answer"
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "EqualsExpected": ("evaluation_name",),
    "Equals": ("value", "evaluation_name"),
    "Contains": ("value", "case_sensitive", "as_strings", "evaluation_name"),
    "IsInstance": ("type_name", "evaluation_name"),
    "MaxDuration": ("seconds",),
    "LLMJudge": (
        "rubric", "model", "include_input", "include_expected_output", "model_settings", "score", "assertion",
    ),
}  # fmt: skip
"""Evaluators that may be converted to ours, with their arguments; the one that may be written alone comes first."""
_DEFAULT_MODEL = "openai/gpt-5.2"
_SETTINGS = ("temperature", "max_tokens")


def expected_field(expected: Any) -> str:
    """The part of an answer that can equal a value: targets put values that are neither text nor mapping into
    `value`."""
    if isinstance(expected, str):
        return _ANSWER
    return "output.structured" if isinstance(expected, dict) else "output.structured.value"


@dataclass(frozen=True, slots=True)
class EvaluatorReading:
    """The evaluators that are converted to ours, and notes about the others."""

    lose: Callable[[str], None]
    """Called with each kind that has no equivalent, in the plural."""
    add_text: Callable[[str], None]

    def read(self, listed: Iterable[Any], report: Callable[[int, str], None]) -> Iterator[dict[str, Any]]:
        """The evaluators in a list, in short or long form, under the names that results have in pydantic_evals.

        `report` is called with mistakes by position.
        """
        for position, entry in enumerate(listed):
            name, arguments = _name_and_arguments(entry)
            if name is None:
                report(position, f"expected the name of an evaluator or {{NAME: ARGUMENTS}}, found {described(entry)}")
            elif name not in _ARGUMENTS:
                self.lose(f"evaluators {name!r}")
            elif mistake := _mistake(name, arguments):
                report(position, mistake)
            elif made := self._ours(name, arguments):
                yield {"name": _result_name(name, arguments), **made}

    def _ours(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        match name:
            case "EqualsExpected":
                fact = {"expected_from": "expected_output", "without_fact": "skip"}
                return {"type": "exact_match", "config": {"field": _ANSWER, **fact}}
            case "Equals":
                value = arguments["value"]
                return {"type": "exact_match", "config": {"field": expected_field(value), "expected": value}}
            case "Contains":
                return self._contains(arguments)
            case "MaxDuration":
                # Both limits are inclusive; ours is in milliseconds, and 2.3 seconds are not quite 2300 for Python.
                limit = math.floor(round(arguments["seconds"] * 1000, 6))
                return {"type": "latency_within", "config": {"max_ms": limit}}
            case "LLMJudge":
                return self._judge(arguments)
        if arguments["type_name"] == "str":
            return {"type": "answered"}
        self.lose("evaluators 'IsInstance' of another type than str")
        return None

    def _contains(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        value = arguments["value"]
        if arguments.get("as_strings") and is_number(value):
            value = str(value)
        if not isinstance(value, str):
            self.lose("evaluators 'Contains' of a value that is not text")
            return None
        sensitive = arguments.get("case_sensitive", True)
        # Empty lists, so that those of the case are not used as well.
        config = {"all_of": [value], "none_of": [], "case_sensitive": sensitive}
        return {"type": "contains_text", "config": config}

    def _judge(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        if arguments.get("assertion") is False:
            self.lose("evaluators 'LLMJudge' that only give a score")
            return None
        if arguments.get("score"):
            self.lose("scores of evaluators 'LLMJudge'")
        settings = arguments.get("model_settings") or {}
        for key in settings.keys() - {*_SETTINGS}:
            self.lose(f"settings {key!r} of evaluators 'LLMJudge'")
        model = arguments.get("model")
        if model is None:
            model = _DEFAULT_MODEL
            self.add_text(f"an 'LLMJudge' without a model calls {model}, the default of pydantic_evals")
        if not arguments.get("include_expected_output"):
            self.add_text("an 'LLMJudge' is also shown what a case expects, if it expects something")
        shown = ["input", _ANSWER] if arguments.get("include_input") else [_ANSWER]
        config = {"model": model.replace(":", "/", 1), "nl_assertions": [arguments["rubric"]]}
        config |= {"include_in_prompt": shown}
        return {"type": "llm_judge", "config": config | {key: settings[key] for key in _SETTINGS if key in settings}}


def _result_name(name: str, arguments: dict[str, Any]) -> str:
    config = arguments.get("assertion", arguments)
    own = config.get("evaluation_name") if isinstance(config, dict) else None
    return own if isinstance(own, str) and own else name


def _name_and_arguments(entry: Any) -> tuple[str | None, dict[str, Any]]:
    """The name and the arguments of an evaluator; a bare argument is the first. No name if it is not an evaluator."""
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, dict):
        return None, {}
    if entry.keys() == {"name", "arguments"} and isinstance(entry["name"], str):
        name, arguments = entry["name"], entry["arguments"]
    elif len(entry) == 1 and isinstance(next(iter(entry)), str):
        name, arguments = next(iter(entry.items()))
    else:
        return None, {}
    if isinstance(arguments, list) and "arguments" in entry and len(arguments) == 1:
        arguments = arguments[0]
    elif arguments is None and "arguments" in entry:
        return name, {}
    elif isinstance(arguments, dict):
        return name, arguments
    return name, {_ARGUMENTS.get(name, ("value",))[0]: arguments}


_KINDS: dict[str, tuple[type | UnionType, str]] = {
    "case_sensitive": (bool, "true or false"),
    "as_strings": (bool, "true or false"),
    "include_input": (bool, "true or false"),
    "include_expected_output": (bool, "true or false"),
    "rubric": (str, "text"),
    "type_name": (str, "text"),
    "model": (str | None, "text"),
    "model_settings": (dict | None, "a mapping"),
    "seconds": (int | float, "a number of seconds"),
}


def _mistake(name: str, arguments: dict[str, Any]) -> str | None:
    """The problem with the arguments of an evaluator; None if there is none."""
    known = _ARGUMENTS[name]
    for key, value in arguments.items():
        if key not in known:
            return f"{name!r} has no argument {key!r}, only {', '.join(known)}"
        kind, words = _KINDS.get(key, (object, ""))
        if not isinstance(value, kind) or (key == "seconds" and not _is_duration(value)):
            return f"{key!r} of {name!r} must be {words}, found {described(value)}"
    needed = known[0]
    return None if needed == "evaluation_name" or needed in arguments else f"{name!r} needs the argument {needed!r}"


def _is_duration(value: Any) -> bool:
    return not isinstance(value, bool) and 0 <= value < math.inf
