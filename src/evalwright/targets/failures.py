"""Exceptions of a system as records: type, text and stack, even if the exception's own methods raise."""

from __future__ import annotations

import os
import sysconfig
import traceback
from functools import cache
from pathlib import Path

from msgspec import UNSET

from evalwright.errors import TargetError
from evalwright.files.plain import clean_text
from evalwright.model.trace import TraceError

__all__ = ["stack_of", "target_error", "target_failure", "text_of", "user_place"]

_MESSAGE_LIMIT, _STACK_LIMIT = 4_000, 8_000


def target_failure(error: BaseException, place: str = "") -> TraceError:
    """The trace's error record: the type is `adapter_error` unless the target named another.

    `place` is where in the user's code it was raised, if that is to be part of the message.
    """
    if isinstance(error, TargetError):
        return TraceError(
            type=error.type,
            message=text_of(error),
            status=UNSET if error.status is None else error.status,
            retry_after_seconds=UNSET if error.retry_after is None else error.retry_after,
        )
    message = f"{type(error).__name__}: {text_of(error)}".rstrip(": ") + (f" in {place}" if place else "")
    return TraceError(type="adapter_error", message=message, stack=stack_of(error))


def target_error(record: TraceError) -> TargetError:
    """The exception that `target_failure` makes such a record of."""
    status, pause = record.status, record.retry_after_seconds
    return TargetError(
        record.message,
        record.type,
        status=None if status is UNSET else status,
        retry_after=None if pause is UNSET else pause,
    )


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


def user_place(error: BaseException) -> str:
    """File and line of the innermost frame of user code, as `agent.py:12`; empty where none is on the stack.

    Code of this package, of the standard library and of installed packages is not the user's to fix.
    """
    place, frame = "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith(_others()):
            place = f"{os.path.basename(file)}:{frame.tb_lineno}"  # noqa: PTH119
        frame = frame.tb_next
    return place


@cache
def _others() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    own = str(Path(__file__).parents[1])
    return (own, "<frozen", *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
