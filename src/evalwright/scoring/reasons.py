"""Why a cell did not pass: its reasons, each with the shape that it shares with the same reason of other cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from evalwright.model.trace import TraceError

__all__ = ["QUOTED", "CommonReason", "UnpassedCell", "beginning", "error_text", "reasons_of", "shape_of"]

_SENTENCES = {
    "adapter_error": ("system raised an exception", "system failed"),
    "evaluator_error": ("evaluator raised an exception", "evaluator failed"),
}
"""Error types whose names mean nothing to a reader: with and without the stack of an exception."""

_VALUES = re.compile(
    r"\b(HTTP \d{3}|exit code -?\d+)\b"  # kinds of failure, which are kept
    r"|\b[a-z][a-z0-9+.-]*://\S+"  # an address
    r"|\b[\w.+-]+@[\w-]+\.[\w.-]+"
    r"|(?<![\w/])(?:~|\.{0,2})?/[\w.\-/]+"  # a path
    r"|\b\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?|\b\d\d?:\d\d(?::\d\d)?\b"  # a time
    r"|\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{8,})\b"  # an id
    r"|[-+]?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?%?",
    re.IGNORECASE,
)
_VALUABLE = re.compile(r"[\d/@]")
"""A character that each of these values has; most reasons have none once their quotes are left out."""
_LIST = re.compile(r"'…'(?:, '…')+")
_CALL = re.compile(r"(?<=\w)\([^()]*…[^()]*\)")
_PLACE = re.compile(r"^(.*) in (\S+:\d+)$", re.DOTALL)
"""The end of an exception's message: where in the user's code it was raised."""
_PLACEHOLDER = re.compile("('…'|…)")
_NO_REASON = "no reason was given"

_LONGEST = 2_000
QUOTED: re.Pattern[str] = re.compile(
    # the opening mark comes first, as a set of characters, so that only where there is one is anything else tried;
    # what can neither end the quote nor has to be looked at is taken at once: `++` returns nothing of it; with a limit
    # on the rest, many marks that end nowhere do not take seconds
    r"(['\"`“«])(?:"
    r"(?<=['\"])(?<!\w.)(?:[^\\\n'\".…]++|\\.|(?!\1)['\".…]|\1(?=\w)){0,200}?"
    r"(?:\1(?!\w)|(?:\.\.\.|…)(?=$|\)|; |, (?:['\"]|\w+=)))"
    r"|(?<=`)[^`\n]*`|(?<=“)[^”\n]*”|(?<=«)[^»\n]*»)"
)
"""A quote, even if it was cut off and others follow; an apostrophe within a word is not one."""


class UnpassedCell(Protocol):
    """What the reasons of a cell are read from: its verdict, or a part of one."""

    @property
    def case_id(self) -> str: ...
    @property
    def reasons(self) -> Sequence[str]: ...
    @property
    def error(self) -> TraceError | None: ...


def reasons_of(verdict: UnpassedCell) -> dict[str, str]:
    """The reasons of a cell that did not pass, each by its shape; of a broken system its error alone.

    The shape is what a reason shares with the same reason of other cells: the key of its group, and of the viewer's
    filter `reason`.
    """
    if verdict.error is not None:  # results for an answer that never came explain nothing
        return _reasons_of_error(verdict.error, verdict.case_id)
    words: dict[str, str] = {}
    for line in verdict.reasons:
        if line:
            words.setdefault(shape_of(line, verdict.case_id), line)
    return words or {_NO_REASON: _NO_REASON}


class CommonReason:
    """What reasons of one shape have in common: the shape, with the values that are the same in all of them."""

    __slots__ = ("_first", "_parts", "_values", "shape")

    def __init__(self, shape: str, text: str) -> None:
        self.shape: str = shape
        self._first = text
        self._parts: list[str] | None = None
        """Once a reason differs from the first: what is between placeholders, and they, in turn."""
        self._values: list[str | None] = []
        """For each placeholder the value of all reasons; None if they differ."""

    def add(self, text: str) -> None:
        if text == self._first:
            return
        if self._parts is None:
            self._parts = _PLACEHOLDER.split(self.shape)
            self._values = [*self._values_of(self._first)]
        if any(value is not None for value in self._values):
            pairs = zip(self._values, self._values_of(text), strict=True)
            self._values = [one if one == other else None for one, other in pairs]

    def __str__(self) -> str:
        if self._parts is None:
            return self._first
        shown = list(self._parts)
        for number, value in enumerate(self._values):
            if value is not None:
                shown[2 * number + 1] = value
        return "".join(shown)

    def _values_of(self, text: str) -> list[str | None]:
        """What a reason has for each placeholder, found by what is before and after it."""
        literals, text = (self._parts or [])[::2], beginning(text)
        values: list[str | None] = []
        if text.startswith(literals[0]) and text.endswith(literals[-1]):
            start, end = len(literals[0]), len(text) - len(literals[-1])
            for literal in literals[1:-1]:
                if (found := text.find(literal, start, end)) < 0:
                    break
                values.append(text[start:found])
                start = found + len(literal)
            values.append(text[start:end] if start <= end else None)
        # a reason that does not have the words of its shape, as that of an exception, has no value in common
        if len(values) != len(literals) - 1:
            return [None] * (len(literals) - 1)
        return [value or None for value in values]  # of two placeholders side by side, all may be found in the second


def error_text(error: TraceError, *, of_result: bool = False) -> str:
    """The error in words: `KeyError: 'question' in agent.py:12 (system raised an exception)`.

    With `of_result`, it is an evaluator's: a judge whose model failed has the type that a system has, as in evalh.
    """
    if of_result and error.type == "adapter_error":
        return f"{error.message} (judge failed)"
    if error.type not in _SENTENCES:
        return f"{error.type}: {error.message}"
    raised, failed = _SENTENCES[error.type]
    return f"{error.message} ({raised if error.stack else failed})"


def shape_of(reason: str, case_id: str = "") -> str:
    """A reason with `…` for quoted text, numbers, ids, paths, addresses and times.

    The name of the evaluator before the colon stays, and so do statuses of HTTP and exit codes.
    """
    reason = beginning(reason)
    return _shape_of(reason, case_id if case_id in reason else "")


@lru_cache(4096)  # many cells, and the same cells of two runs, have the same reason
def _shape_of(reason: str, case_id: str) -> str:
    source, colon, rest = reason.partition(": ")
    if not colon or len(source) > 60 or (not source.isidentifier() and QUOTED.search(source)):
        source, colon, rest = "", "", reason
    return source + colon + _shape(rest, case_id)


def _shape(text: str, case_id: str) -> str:
    text = QUOTED.sub("'…'", text)
    if len(case_id) > 2 and case_id in text:
        text = re.sub(rf"(?<!\w){re.escape(case_id)}(?!\w)", "…", text)
    return _without_values(text)


@lru_cache(1024)  # without their quotes, still more reasons are the same
def _without_values(text: str) -> str:
    if _VALUABLE.search(text):
        text = _VALUES.sub(lambda match: match[1] or "…", text)
    return _CALL.sub("(…)", _LIST.sub("'…'", text))


def _reasons_of_error(error: TraceError, case_id: str) -> dict[str, str]:
    match = _PLACE.match(error.message) if error.stack else None
    if match is None:
        return {f"{error.type}: {_shape(beginning(error.message), case_id)}": error_text(error)}
    message, place = match.groups()
    frame = f"{place}{_function(error.stack or '', place)}"
    return {f"{frame}: {_shape(beginning(message), case_id)}": f"{frame}: {message}"}


def _function(stack: str, place: str) -> str:
    """The function of the user's frame: ` in answer`; empty where the stack does not say it."""
    file, _, line = place.rpartition(":")
    functions = re.findall(rf'{re.escape(file)}", line {line}, in ([^\n]+)', stack)
    return f" in {functions[-1]}" if functions else ""


def beginning(reason: str) -> str:
    """The first 2,000 characters, which are enough to compare reasons, with an ellipsis if there are more."""
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}…"
