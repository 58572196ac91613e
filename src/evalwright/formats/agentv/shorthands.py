"""Shorthands of newer cases: `vars` used in their texts, and `input_files` before their input."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from evalwright.errors import Problem
from evalwright.files.key_paths import as_written
from evalwright.files.masker import may_be_secret
from evalwright.formats.agentv.notes import OF_FILE, Notes
from evalwright.session import hide

__all__ = ["Environment", "shared_input", "with_files", "with_variables"]

_FILLED = ("criteria", "expected_outcome", "input", "input_files", "expected_output", "turns")
_VARIABLE = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_PLAIN: Mapping[str, Any] = {"true": True, "false": False}
_NAME = re.compile(r"\{\{\s*(?:vars\.)?([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")


class Environment:
    """Replaces `${{ NAME }}` by variables of the environment; those that are not set become empty.

    A whole value may become a number or a boolean, as in AgentV 4.
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self.secrets: dict[str, str] = {}
        """Those of the values that were put into texts that may be secret, by name."""
        self._unset: set[str] = set()

    def put_into(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.put_into(item) for item in value]
        if isinstance(value, dict):
            return {key: self.put_into(item) for key, item in value.items()}
        if not isinstance(value, str) or "${{" not in value:
            return value
        if whole := _VARIABLE.fullmatch(value):
            text = self._value(whole)
            return _PLAIN.get(text, _number(text) if _NUMBER.fullmatch(text) else text)
        return _VARIABLE.sub(self._value, value)

    def unset(self, file: str) -> list[Problem]:
        """A warning about the variables that are not set, if there are any."""
        names = ", ".join(sorted(self._unset))
        message = f"variables that are not set are empty in the suite: {names}"
        return [Problem(file, message, key="tests")] if names else []

    def _value(self, match: re.Match[str]) -> str:
        name = self._known.get(match[1])
        if name is None:
            self._unset.add(match[1])
            return ""
        if may_be_secret(name):
            self.secrets[match[1]] = name
            hide({match[1]: name})
        return name


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def with_variables(case: dict[str, Any]) -> dict[str, Any]:
    """The case with its `vars` filled in; unknown names are left, as other templates have names, too."""
    variables = case.get("vars")
    if not isinstance(variables, dict):
        return case
    return {**case, **{key: _with_variables(case[key], variables) for key in _FILLED if key in case}}


def shared_input(written: Any, case: dict[str, Any]) -> Any:
    """The input of the file with the `vars` of a case filled in."""
    variables = case.get("vars")
    return _with_variables(written, variables) if isinstance(variables, dict) else written


def _with_variables(value: Any, variables: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_with_variables(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: _with_variables(item, variables) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    whole = _NAME.fullmatch(value)
    if whole is not None and (found := _value(variables, whole[1])) is not None:
        return found
    return _NAME.sub(lambda match: _text(_value(variables, match[1]), match[0]), value)


def _value(variables: dict[str, Any], name: str) -> Any:
    value: Any = variables
    for step in name.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(value: Any, otherwise: str) -> str:
    if value is None:
        return otherwise
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def with_files(written: Any, shared: Any, own: Any, report: Notes) -> Any:
    """The input with the files of the case, or else those of the suite, before the text of its first user message."""
    key, listed = (f"input_files{OF_FILE}", shared) if own is None else ("input_files", own)
    if listed is None:
        return written
    if not isinstance(listed, list) or not all(isinstance(name, str) and name for name in listed):
        report(key, f"input_files: expected a list of paths, found {as_written(listed)}")
        return written
    blocks = [{"type": "file", "value": name} for name in listed]
    if not blocks:
        return written
    if isinstance(written, str):
        return [{"role": "user", "content": [*blocks, {"type": "text", "value": written}]}]
    messages = written if isinstance(written, list) else [written]
    first = next(
        (i for i, message in enumerate(messages) if isinstance(message, dict) and message.get("role") == "user"), None
    )
    if first is None:
        return [{"role": "user", "content": blocks}, *messages]
    content = messages[first].get("content")
    if not isinstance(content, (list, str, dict)):
        return written  # reported where messages are checked
    parts = (
        content
        if isinstance(content, list)
        else [{"type": "text" if isinstance(content, str) else "json", "value": content}]
    )
    return [*messages[:first], {**messages[first], "content": [*blocks, *parts]}, *messages[first + 1 :]]
