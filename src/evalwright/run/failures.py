"""Why there is no verdict, as records."""

from __future__ import annotations

from evalwright.errors import EvaluatorError, LimitExceeded
from evalwright.model.trace import TraceError
from evalwright.targets.failures import stack_of, text_of

__all__ = ["evaluator_failure", "timed_out"]


def evaluator_failure(error: BaseException, limit: float) -> TraceError:
    """The result's error record: the type is the exception's class name unless the evaluator named another."""
    if isinstance(error, LimitExceeded):
        return timed_out(limit)
    if isinstance(error, EvaluatorError):
        return TraceError(type=error.type, message=text_of(error))
    return TraceError(type=type(error).__name__, message=text_of(error), stack=stack_of(error))


def timed_out(limit: float) -> TraceError:
    return TraceError(type="timeout", message=f"no answer within {limit:g} seconds")
