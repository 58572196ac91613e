"""Assertions written as code, in JavaScript and Python."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from evalwright.errors import EvaluatorError
from evalwright.files.numbers import is_number
from evalwright.formats.promptfoo.evaluator import AssertionInput, context_of
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.javascript_code import javascript_body
from evalwright.formats.promptfoo.scripts import call_file, run_javascript, run_python
from evalwright.formats.promptfoo.sources import in_file
from evalwright.model.result import Evaluation

__all__ = ["finite", "finite_scores", "is_result", "javascript", "python"]

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
"""What JavaScript's `parseFloat` reads."""
_STRUCTURES = frozenset(("namedScores", "namedScoreWeights", "tokensUsed", "assertion"))
_NAMES = {"pass_": "pass", "named_scores": "namedScores", "component_results": "componentResults"}


async def javascript(question: AssertionInput) -> Evaluation:
    """The result of an expression, a function body or a file in JavaScript."""
    return await _judged_by_code(question, javascript_language=True)


async def python(question: AssertionInput) -> Evaluation:
    """The same in Python."""
    return await _judged_by_code(question, javascript_language=False)


async def _judged_by_code(question: AssertionInput, *, javascript_language: bool) -> Evaluation:
    if not isinstance(question.value, str) or not question.value.strip():
        raise EvaluatorError(f"{question.kind} needs a value: expected code, found none", "bad_value")
    names = {"output": question.output, "context": context_of(question)}
    try:
        if in_file(question.value):
            reply = await call_file(question.folder, question.value, "get_assert", list(names.values()))
        elif javascript_language:
            reply = await run_javascript(question.folder, javascript_body(question.value), names)
        else:
            reply = await run_python(question.value, names)
    except ScriptError as error:
        if error.type == "unusable" and in_file(question.value) and javascript_language:
            # promptfoo: an error for files of JavaScript, a failure for all other code
            raise EvaluatorError(f"the code cannot be used: {error}", error.type) from None
        if error.type in ("exception", "unusable"):
            if error.type == "unusable":
                return Evaluation(False, 0.0, f"the code cannot be used: {error}", {"threw": True, "unusable": True})
            return Evaluation(False, 0.0, f"the code raised {error}", {"threw": True})
        raise EvaluatorError(f"the code {error}", error.type) from None
    return _outcome(question, reply if javascript_language else _read(reply))


def _read(reply: Any) -> Any:
    """The value returned by Python code: a string may be a word for a boolean, or JSON."""
    if isinstance(reply, str):
        if reply.lower() in ("true", "false"):
            return reply.lower() == "true"
        if not reply.startswith("{"):
            number = _NUMBER.match(reply)
            return float(number[0]) if number else reply
        try:
            reply = json.loads(reply)
        except ValueError:
            return reply
    return _with_promptfoo_names(reply)


def _with_promptfoo_names(reply: Any) -> Any:
    """A result with promptfoo's names, also in the results that it consists of."""
    if not isinstance(reply, dict):
        return reply
    names = {_NAMES.get(key, key): value for key, value in reply.items()}
    if isinstance(parts := names.get("componentResults"), list):
        names["componentResults"] = [_with_promptfoo_names(part) for part in parts]
    return names


def _outcome(question: AssertionInput, reply: Any) -> Evaluation:
    """The evaluation for the value returned by code: a boolean, a number, or a mapping."""
    if isinstance(reply, bool):
        return question.of(reply, "the code returned false", "the code returned true")
    if isinstance(reply, (int, float)) and math.isfinite(reply):
        reached = reply > 0 if question.threshold is None else reply >= question.threshold
        passed = reached != question.negated
        return Evaluation(passed, float(reply), "" if passed else f"the code returned {reply:g}")
    if is_result(reply):
        return _evaluation_of(question, reply)
    shown = "nothing" if reply is None else f"{reply!r:.80}"
    message = f"the code must give a truth, a number, or a mapping with pass, score and reason: found {shown}"
    return Evaluation(False, 0.0, message, {"threw": True})


def is_result(reply: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether promptfoo accepts it as a result: `pass`, `score` and `reason`, and the rest of the right types."""
    return (
        isinstance(reply, Mapping)
        and isinstance(reply.get("pass"), bool)
        and finite(reply.get("score")) is not None
        and isinstance(reply.get("reason"), str)
        and all(reply[key] is None or isinstance(reply[key], (Mapping, list)) for key in _STRUCTURES & reply.keys())
        and isinstance(reply.get("componentResults", []), list)
        and isinstance(reply.get("comment", ""), str)
    )


def _evaluation_of(question: AssertionInput, reply: Mapping[str, Any]) -> Evaluation:
    holds, score = reply["pass"], float(reply["score"])
    # As in promptfoo: a threshold applies to numbers of both languages, but only to Python's mappings.
    short = question.kind == "python" and question.threshold is not None and score < question.threshold
    passed = holds and not short
    if question.negated:
        passed = not passed
    detail: dict[str, Any] = {}
    if named := finite_scores(reply):
        detail["named_scores"] = named
    parts = [part for part in reply.get("componentResults") or () if isinstance(part, Mapping)]
    if parts:
        detail["components"] = [
            {
                "passed": bool(part.get("pass")),
                "score": finite(part.get("score")),
                "reason": str(part.get("reason", "")),
            }
            for part in parts
        ]
    return Evaluation(passed, score, reply["reason"] or ("" if passed else "the code says that it fails"), detail)


def finite_scores(reply: Mapping[str, Any]) -> dict[str, float] | None:
    """The named scores of a result; None if it has none."""
    scores = reply.get("namedScores")
    if not isinstance(scores, Mapping):
        return None
    return {str(name): float(score) for name, score in scores.items() if finite(score) is not None}


def finite(value: Any) -> float | None:
    """A finite number, or None."""
    usable = is_number(value) and math.isfinite(value)
    return float(value) if usable else None
