"""Graders by pattern and by code; each calls the evaluator of the same rule."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalwright.formats.northstar.surface.graders import Grader

__all__ = ["PythonCodeGrader", "RegexGrader", "TypeScriptCodeGrader"]


class BadPatternError(re.error, ValueError):
    """A pattern that is not a regular expression: `re.error`, as in the original, and a ValueError."""


class RegexGrader(Grader):
    """A regular expression is found in the final response, or wherever `target` says. Raises BadPatternError."""

    flags: list[str]
    pattern: str
    target: str

    def __init__(
        self, name: str, pattern: str, *, target: str = "final_response", flags: Sequence[str] | None = None
    ) -> None:
        self.pattern, self.target, self.flags = pattern, target, list(flags or ())
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadPatternError(f"{name}: {error.msg}", error.pattern, error.pos) from None
        except (OverflowError, RecursionError) as error:
            raise BadPatternError(f"{name}: {error}", pattern) from None
        super().__init__(name, "regex", {"pattern": pattern, "target": target, "flags": self.flags})


class _CodeGrader(Grader):
    type: str

    def __init__(self, name: str, code: str, *, timeout_ms: int = 1000) -> None:
        if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int):
            raise TypeError(f"timeout_ms: expected an int, found {type(timeout_ms).__name__}")
        self.code: str = code
        self.timeout_ms: int = timeout_ms
        super().__init__(name, self.type, {"code": code, "timeout_ms": timeout_ms, "other_values": "fail"})


class PythonCodeGrader(_CodeGrader):
    """A Python function `validate(output, case, run)` says whether the run is good."""

    type = "python_code"


class TypeScriptCodeGrader(_CodeGrader):
    """An exported TypeScript function `validate(output, evalCase, run)` says whether the run is good."""

    type = "typescript_code"
