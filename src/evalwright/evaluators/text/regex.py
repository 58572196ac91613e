"""A regular expression that is searched for anywhere in a conversation (NorthStar 0.1, `regex` grader)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from evalwright.errors import Problem
from evalwright.evaluators.conversation.documents import case_document, run_document
from evalwright.evaluators.conversation.messages import conversation_of
from evalwright.evaluators.onlooker import Onlooker
from evalwright.evaluators.wording import shown
from evalwright.model.recordings import json_text
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.sandbox.patterns import compiled_pattern, search

__all__ = ["Regex"]

_FLAGS = {"ignorecase": re.IGNORECASE, "multiline": re.MULTILINE, "dotall": re.DOTALL}
_ANSWER = ("final_response", "output")
_LONGEST = 500
"""Characters of a match that the result keeps."""


class Regex(Onlooker, frozen=True):
    """Whether `pattern` is found in `target`. A missing target fails.

    `target` is `final_response`, or a path of keys through the case (`case.metadata.tier`) or the run
    (`run.tool_calls`); a value that is not a string is searched as JSON with sorted keys.
    """

    pattern: str
    target: str = _ANSWER[0]
    flags: list[str] | None = None

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        flags, pattern = values.get("flags"), values.get("pattern")
        problems = [
            Problem("", f"unknown flag {flag!r}, expected {', '.join(_FLAGS)}", key="flags")
            for flag in (flags if isinstance(flags, list) else ())
            if flag.lower() not in _FLAGS
        ]
        try:
            compiled_pattern(pattern if isinstance(pattern, str) else "")
        except ValueError as error:
            problems.append(Problem("", f"'pattern' is not a regular expression: {error}", key="pattern"))
        return problems

    def look(self, case: Case, trace: Trace) -> Evaluation:
        detail: dict[str, Any] = {
            "kind": "regex",
            "target": self.target,
            "pattern": self.pattern,
            "flags": self.flags or [],
            "match": None,
        }
        text = self._text(case, trace)
        if text is None:
            return Evaluation(False, 0.0, f"there is nothing at {self.target!r}", detail)
        match = search(self._compiled, text)
        if match is None:
            return Evaluation(False, 0.0, f"{shown(self.pattern)} is not found in {shown(text)}", detail)
        detail["match"] = match[0][:_LONGEST]
        return Evaluation(True, 1.0, "", detail)

    def _text(self, case: Case, trace: Trace) -> str | None:
        if self.target in _ANSWER:
            return conversation_of(trace).final_response
        root, _, path = self.target.partition(".")
        if root not in ("case", "run") or not path:
            return None
        value: Any = (case_document if root == "case" else run_document)(case, trace)
        for step in path.split("."):
            if not isinstance(value, dict) or step not in value:
                return None
            value = value[step]
        return value if value is None or isinstance(value, str) else json_text(value)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        flags = 0
        for flag in self.flags or ():
            flags |= _FLAGS[flag.lower()]
        return re.compile(self.pattern, flags)
