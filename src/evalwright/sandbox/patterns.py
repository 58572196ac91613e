"""Searches with users' regular expressions, within a time limit.

A pattern with catastrophic backtracking keeps the interpreter busy without end. In the main thread a timer ends it;
other threads receive no signals, so there the search is first tried in a process that can be killed.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from evalwright.errors import EvaluatorError, shorten

__all__ = ["SEARCH_LIMIT", "compiled_pattern", "find_all", "search"]

SEARCH_LIMIT = 1.0
"""Seconds of processor time that one search may take."""
_REPEATS = frozenset("*+{")
"""A pattern without any of these cannot backtrack catastrophically, and needs no guard."""

T = TypeVar("T")


class _TooSlow(BaseException):
    pass


def compiled_pattern(text: str) -> re.Pattern[str]:
    """A user's regular expression. Raises ValueError for text that is none, also if it is too large or too deep."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first match of the pattern. Raises EvaluatorError (timeout) if the search takes too long."""
    return _within_time(pattern, text, pattern.search)


def find_all(pattern: re.Pattern[str], text: str) -> list[Any]:
    """Everything that `re.findall` finds. Raises EvaluatorError (timeout) if the search takes too long."""
    return _within_time(pattern, text, pattern.findall)


def _within_time(pattern: re.Pattern[str], text: str, work: Callable[[str], T]) -> T:
    if _REPEATS.isdisjoint(pattern.pattern):
        return work(text)
    if threading.current_thread() is threading.main_thread():
        return _under_timer(pattern, text, work)
    from evalwright.sandbox.workers import ends_in_time

    if not ends_in_time(pattern, text, SEARCH_LIMIT):
        raise _too_long(pattern)
    return work(text)


def _under_timer(pattern: re.Pattern[str], text: str, work: Callable[[str], T]) -> T:
    # The virtual timer counts processor time, so that a busy machine ends no harmless search. SIGALRM is not free: the
    # run's watchdog uses it.
    previous = signal.signal(signal.SIGVTALRM, _end)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, SEARCH_LIMIT)
        return work(text)
    except _TooSlow:
        raise _too_long(pattern) from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _end(_number: int, _frame: object) -> None:
    raise _TooSlow


def _too_long(pattern: re.Pattern[str]) -> EvaluatorError:
    return EvaluatorError(
        f"searching for {shorten(pattern.pattern, 80)!r} took more than {SEARCH_LIMIT:g} s and was stopped", "timeout"
    )
