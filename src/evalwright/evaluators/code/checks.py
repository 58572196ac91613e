"""Checks written as code and run in a separate process: a function `validate` (NorthStar 0.1, code graders).

`validate(output, case, run)` gets the final response and plain data. It returns true or false, or a mapping with
`passed` and optionally `reason`, `feedback`, `score` and `metadata`. Any other value is an error, and so is code that
ends without returning one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.evaluators.conversation.documents import case_document, run_document
from evalwright.evaluators.conversation.messages import conversation_of
from evalwright.evaluators.wording import shown
from evalwright.files.numbers import is_number
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.sandbox.workers import call_worker, node_command, python_command

__all__ = ["PythonCode", "TypeScriptCode"]


class _Code(msgspec.Struct, frozen=True):
    """Code, and its time limit per case in milliseconds."""

    code: str
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=5000)] = 1000
    other_values: Literal["error", "fail"] = "error"
    """`fail`, as in NorthStar: a value of another type fails, and any finite number is a score."""

    kind: ClassVar[str]

    async def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        output = conversation_of(trace).final_response
        arguments = [output, case_document(case, trace), run_document(case, trace)]
        reply = await self._reply({"code": self.code, "arguments": arguments, "seconds": self.timeout_ms / 1000})
        detail: dict[str, Any] = {"kind": self.kind, "timeout_ms": self.timeout_ms}
        for key in ("printed", "missing_walls"):
            if reply.get(key):
                detail[key] = reply[key]
        if "error" in reply:
            raise EvaluatorError(f"the code {_end_of(reply)}", str(reply["error"]), detail)
        return _verdict(reply.get("value"), detail, strict=self.other_values == "error")

    @property
    def scores(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.other_values == "error" else (-sys.float_info.max, sys.float_info.max)


class PythonCode(_Code, frozen=True):
    """Passes if the Python function `validate` in `code` says so."""

    kind = "python"

    async def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        return await call_worker(python_command(), request)


class TypeScriptCode(_Code, frozen=True):
    """Passes if the TypeScript function `validate` that `code` exports says so."""

    kind = "typescript"

    async def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        return await call_worker(node_command(), {**request, "folders": [str(Path.cwd())]}, on_stdio=True)


def _end_of(reply: dict[str, Any]) -> str:
    message = str(reply.get("message"))
    return f"raised {message}" if reply["error"] == "exception" else message


def _verdict(value: Any, detail: dict[str, Any], *, strict: bool) -> Evaluation:
    result = {"passed": value} if isinstance(value, bool) else value
    wrong = _wrong(result) or (_wrong_score(result.get("score")) if strict else None)
    if wrong is not None:
        message = f"the code must give true, false or a mapping with 'passed': {wrong}"
        if strict:
            raise EvaluatorError(message, "bad_value", detail)
        return Evaluation(False, 0.0, message, detail)
    passed, score, reason = result["passed"], result.get("score"), result.get("reason")
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        score = 1.0 if passed else 0.0
    reason = reason.strip() if isinstance(reason, str) else ""
    if not reason and not passed:
        reason = "the code says that it failed"
    detail |= {key: result[key] for key in ("feedback", "metadata") if result.get(key) is not None}
    return Evaluation(passed, float(score), reason, detail)


def _wrong(result: Any) -> str | None:
    """What is wrong with the value that `validate` returned."""
    if not isinstance(result, dict):
        return f"found {shown(result, 80)}"
    if not isinstance(result.get("passed"), bool):
        return f"'passed' is {shown(result.get('passed'), 80)}"
    if not isinstance(result.get("feedback"), str | None):
        return f"'feedback' is {shown(result['feedback'], 80)}, no text"
    if not isinstance(result.get("metadata"), dict | None):
        return f"'metadata' is {shown(result['metadata'], 80)}, no mapping"
    score = result.get("score")
    if isinstance(score, int | float) and not -sys.float_info.max <= score <= sys.float_info.max:
        return f"'score' is {shown(score, 80)}"
    return None


def _wrong_score(score: Any) -> str | None:
    if score is None or (is_number(score) and 0 <= score <= 1):
        return None
    return f"'score' is {shown(score, 80)}, expected a number from 0 to 1"
