"""One simple check of the text of an answer (AgentEvals 1.0: `contains`, `equals`, `regex`, `is-json`, …)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from evalwright.errors import Problem
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.onlooker import Onlooker
from evalwright.evaluators.values.json_text import as_text, loaded_json
from evalwright.files.key_paths import as_written
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.sandbox.patterns import compiled_pattern, search

__all__ = ["TextCheck"]

_Check = Literal[
    "contains", "icontains", "contains_any", "contains_all", "icontains_any", "icontains_all", "starts_with",
    "ends_with", "equals", "regex", "is_json",
]  # fmt: skip
_SPACE = "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What JavaScript trims, as the original does; Python trims control characters, too, but no byte order mark."""
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}


class TextCheck(Onlooker, frozen=True):
    """Whether the answer contains, begins with, ends with, equals or matches `value`, or is JSON as a whole."""

    check: _Check
    value: Any = None
    flags: str = ""
    negate: bool = False

    uses_case = False
    reads: ClassVar[frozenset[str]] = frozenset({"output"})

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        check, value, flags = values.get("check"), values.get("value"), values.get("flags", "")
        if check in (None, msgspec.UNSET, "is_json") or value is msgspec.UNSET:
            return []
        if value is None:
            return [Problem("", f"needs 'value', the text to look for, with check: {check}", key="value")]
        if check != "regex":
            return []
        if isinstance(flags, str) and (unknown := [letter for letter in flags if letter not in _FLAGS]):
            expected = f"'flags' must be some of {', '.join(_FLAGS)}"
            return [Problem("", f"{expected}, found {as_written(unknown[0])}", key="flags")]
        try:
            compiled_pattern(as_text(value))
        except ValueError as error:
            return [Problem("", f"'value' is not a regular expression: {error}", key="value")]
        return []

    @staticmethod
    def config_doubts(config: Mapping[str, Any]) -> list[Problem]:
        check, value = str(config.get("check")), config.get("value")
        if check in ("is_json", "equals"):
            return []
        if value == []:
            return [Problem("", "an empty list checks nothing: say what to look for", key="value")]
        texts = [str(text) for text in value] if isinstance(value, list) else [str(value)]
        stripped = check in ("starts_with", "ends_with")
        empty = [text for text in texts if not (text.strip(_SPACE) if stripped else text)]
        if not empty or (check.endswith("_all") and len(empty) < len(texts)):
            return []
        return [Problem("", "every text contains the empty text: say what to look for", key="value")]

    def look(self, case: Case, trace: Trace) -> Evaluation:
        met = self._holds(trace.output.final_answer or "") is not self.negate
        sought = "" if self.check == "is_json" else json.dumps(self.value, ensure_ascii=False)
        message = f"{'not ' if self.negate else ''}{self.check.replace('_', ' ')} {sought}".strip()
        return banded(float(met), [message] if met else [], [] if met else [message])

    def _holds(self, answer: str) -> bool:
        if self.check == "is_json":
            return _is_json(answer)
        if self.check == "regex":
            return search(re.compile(as_text(self.value), _flags(self.flags)), answer) is not None
        if self.check in ("starts_with", "ends_with", "equals"):
            return _beside(self.check, answer.strip(_SPACE), as_text(self.value).strip(_SPACE))
        values = [as_text(value) for value in self.value] if isinstance(self.value, list) else [as_text(self.value)]
        if self.check.startswith("i"):
            answer, values = answer.lower(), [value.lower() for value in values]
        contained = [value in answer for value in values]
        return any(contained) if self.check.endswith("_any") else all(contained)


def _beside(check: str, answer: str, value: str) -> bool:
    if check == "starts_with":
        return answer.startswith(value)
    return answer.endswith(value) if check == "ends_with" else answer == value


def _flags(letters: Sequence[str]) -> int:
    flags = 0
    for letter in letters:
        flags |= _FLAGS.get(letter, 0)
    return flags


def _is_json(text: str) -> bool:
    try:
        loaded_json(text)
    except ValueError:
        return False
    return True
