"""Exceptions of user code as records: type, text and stack, whatever the exception itself does."""

from __future__ import annotations

import traceback

from evalwright.errors import EvaluatorError, LimitExceeded, TargetError
from evalwright.model.trace import TraceError
from evalwright.targets.plain import clean_text

__all__ = ["evaluator_failure", "target_failure", "timed_out"]

_MESSAGE_LIMIT, _STACK_LIMIT = 4_000, 8_000


def target_failure(error: BaseException) -> TraceError:
    """The trace's error record: the type is `adapter_error` unless the target named another."""
    if isinstance(error, TargetError):
        return TraceError(type=error.type, message=_text(error))
    return TraceError(
        type="adapter_error", message=f"{type(error).__name__}: {_text(error)}".rstrip(": "), stack=_stack(error)
    )


def evaluator_failure(error: BaseException, limit: float) -> TraceError:
    """The result's error record: the type is the exception's class name unless the evaluator named another."""
    if isinstance(error, LimitExceeded):
        return timed_out(limit)
    if isinstance(error, EvaluatorError):
        return TraceError(type=error.type, message=_text(error))
    return TraceError(type=type(error).__name__, message=_text(error), stack=_stack(error))


def timed_out(limit: float) -> TraceError:
    return TraceError(type="timeout", message=f"no answer within {limit:g} seconds")


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as second:
        text = f"(its text cannot be read: {type(second).__name__})"
    return clean_text(text[:_MESSAGE_LIMIT], "message", [])


def _stack(error: BaseException) -> str:
    """The innermost part of the traceback, where the cause is."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:
        return "(the stack cannot be shown)"
    return clean_text(text[-_STACK_LIMIT:], "stack", [])
