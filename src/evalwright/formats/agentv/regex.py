"""A JavaScript regular expression that is searched for in the answer: AgentV's `regex`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.combined.banded import banded
from evalwright.files.key_paths import as_written
from evalwright.formats.shared.javascript.characters import InvalidPattern
from evalwright.formats.shared.javascript.patterns import pattern_of
from evalwright.formats.shared.javascript.regular_expressions import InvalidFlags
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["JavaScriptRegex"]


class JavaScriptRegex(msgspec.Struct, frozen=True):
    """Passes if the expression `value` is found or, with `negate`, if it is not."""

    value: Annotated[str, msgspec.Meta(min_length=1)]
    flags: str = ""
    negate: bool = False

    uses_case = False

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        value, flags = values.get("value"), values.get("flags", "")
        if not isinstance(value, str) or not isinstance(flags, str):
            return []
        try:
            pattern_of(value, flags)
        except InvalidFlags:
            expected = "expected some of d, g, i, m, s, u, v and y, each once, and not both u and v"
            return [Problem("", f"flags: {expected}, found {as_written(flags)}", key="flags")]
        except InvalidPattern as error:
            return [Problem("", f"'value' is not a regular expression of JavaScript: {error}", key="value")]
        return []

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        """Raises EvaluatorError for an expression that only Node can run, if Node is missing or fails."""
        try:
            is_found = pattern_of(self.value, self.flags).found_in(trace.output.final_answer or "")
        except InvalidPattern as error:
            raise EvaluatorError(f"the pattern {self.value!r:.80} is invalid: {error}", "bad_value") from None
        message = f"{'not ' if self.negate else ''}regex {json.dumps(self.value)}"
        met = is_found is not self.negate
        return banded(float(met), [message] if met else [], [] if met else [message])
