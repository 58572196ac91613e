"""Exceptions of a system as records: type, text and stack, even if the exception's own methods raise."""

from __future__ import annotations

import traceback

from msgspec import UNSET

from evalwright.errors import EvaluatorError, TargetError
from evalwright.files.plain import clean_text
from evalwright.model.trace import TraceError
from evalwright.user_code import code_of_others, user_place

__all__ = ["error_type_of", "located", "placed", "stack_of", "target_error", "target_failure", "text_of"]

_MESSAGE_LIMIT, _STACK_LIMIT = 4_000, 8_000


def target_failure(error: BaseException) -> TraceError:
    """The trace's error record: the type is `adapter_error` unless the target named another.

    The message of an exception says where in the user's code it was raised. That code may have raised a TargetError
    with values of any type: one of another type is left out, or no reader could read the record.
    """
    if isinstance(error, TargetError):
        return TraceError(
            type=error_type_of(error, "adapter_error"),
            message=text_of(error),
            status=error.status if isinstance(error.status, int) else UNSET,
            retry_after_seconds=error.retry_after if isinstance(error.retry_after, (int, float)) else UNSET,
            attempts=error.attempts if isinstance(error.attempts, int) else UNSET,
        )
    return TraceError(type="adapter_error", message=located(error), stack=stack_of(error))


def located(error: BaseException) -> str:
    """Class, text and place of an exception: `KeyError: 'question' in agent.py:12`."""
    return f"{type(error).__name__}: {text_of(error)}".rstrip(": ") + _in_user_code(error)


def placed(error: BaseException) -> str:
    """Text and place of an exception whose class is given elsewhere: `'question' in agent.py:12`."""
    return (text_of(error) + _in_user_code(error)).lstrip()


def _in_user_code(error: BaseException) -> str:
    place = user_place(error)
    return f" in {place}" if place else ""


def target_error(record: TraceError) -> TargetError:
    """The exception of which `target_failure` makes such a record."""
    status, pause, attempts = record.status, record.retry_after_seconds, record.attempts
    return TargetError(
        record.message,
        record.type,
        status=None if status is UNSET else status,
        retry_after=None if pause is UNSET else pause,
        attempts=None if attempts is UNSET else attempts,
    )


def text_of(error: BaseException) -> str:
    """The text of an exception, at most 4,000 characters; a note if its text cannot be read."""
    try:
        # The exception is of a user's class: its `__str__` may raise, too, but the record must not be lost.
        text = str(error)
    except BaseException as second:  # it may even raise SystemExit
        text = f"(its text cannot be read: {type(second).__name__})"
    return clean_text(text[:_MESSAGE_LIMIT], "message", [])


def error_type_of(error: TargetError | EvaluatorError, usual: str) -> str:
    """The type that an exception names, or the `usual` one if that is no text."""
    named: object = error.type
    return clean_text(named, "type", []) if isinstance(named, str) else usual


def stack_of(error: BaseException) -> str:
    """The innermost part of the traceback, where the cause is; at most 8,000 characters.

    It begins with the user's own code, if that is part of it: how we came to call it does not help to fix it.
    """
    try:
        first = error.__traceback__
        while first is not None and first.tb_frame.f_code.co_filename.startswith(code_of_others()):
            first = first.tb_next
        text = "".join(traceback.format_exception(type(error), error, first or error.__traceback__))
    except BaseException:
        return "(the stack cannot be shown)"
    # The end of a stack is the innermost call, which is where the mistake is.
    return clean_text(text[-_STACK_LIMIT:], "stack", [])
