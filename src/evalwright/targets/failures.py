"""Exceptions of a system as records: type, text and stack, whatever the exception itself does."""

from __future__ import annotations

import traceback

from evalwright.errors import TargetError
from evalwright.files.plain import clean_text
from evalwright.model.trace import TraceError

__all__ = ["stack_of", "target_failure", "text_of"]

_MESSAGE_LIMIT, _STACK_LIMIT = 4_000, 8_000


def target_failure(error: BaseException) -> TraceError:
    """The trace's error record: the type is `adapter_error` unless the target named another."""
    if isinstance(error, TargetError):
        return TraceError(type=error.type, message=text_of(error))
    message = f"{type(error).__name__}: {text_of(error)}".rstrip(": ")
    return TraceError(type="adapter_error", message=message, stack=stack_of(error))


def text_of(error: BaseException) -> str:
    """What an exception says, at most 4,000 characters, also when it cannot say it."""
    try:
        text = str(error)
    except BaseException as second:
        text = f"(its text cannot be read: {type(second).__name__})"
    return clean_text(text[:_MESSAGE_LIMIT], "message", [])


def stack_of(error: BaseException) -> str:
    """The innermost part of the traceback, where the cause is; at most 8,000 characters."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:
        return "(the stack cannot be shown)"
    return clean_text(text[-_STACK_LIMIT:], "stack", [])
