"""What is wrong in a file and what is most likely not meant, collected while the file is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.errors import InputError, Problem, counted, did_you_mean, with_others
from evalwright.files.key_paths import Place, bracketed, steps_of
from evalwright.files.yaml import Document

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = [
    "NOT_READ",
    "REACHED_BY_ALL",
    "Findings",
    "empty_text_expected",
    "expectation",
    "joined_mistakes",
    "mistakes_in",
    "passes_always",
    "remedy",
    "unknown_keys",
]

NOT_READ = "no evaluator of this suite reads this key"
"""The warning about a part of `expected`."""

REACHED_BY_ALL = "every score from 0 to 1 reaches it: say from which score it passes"
"""The warning about a threshold of 0."""


class Findings:
    """Problems and warnings of one file, with their lines; `spelled` writes their places."""

    def __init__(self, path: Path, document: Document, spelled: Callable[[Place], str] = bracketed) -> None:
        self._path, self._document, self._spelled = path, document, spelled
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._strangers: list[Problem] = []
        self.authored: Callable[[Place], Place] = lambda place: place
        """From a place in the data as read to the place in the file, if the reader has changed something."""
        self.quoted: set[str] = set()
        """Top-level keys to which references lead."""
        self.settled: list[Place] = []
        """Places whose mistake has been reported: anything else wrong there is a consequence."""

    def join(self, others: Findings) -> None:
        """Report what is found here together with what is wrong in another file."""
        self.problems, self.warnings, self._strangers = others.problems, others.warnings, others._strangers
        self.quoted = others.quoted

    def report(self, place: Place, message: str, *, absent: bool = False) -> None:
        """Report a mistake, once however often it is found."""
        place = self.authored(place)
        if any(place[: len(where)] == where for where in self.settled):
            return
        problem = self.problem(place, message, absent)
        if problem not in self.problems:
            self.problems.append(problem)

    def warn(self, place: Place, message: str, *, unread: bool = False) -> None:
        """Warn once of something that is allowed but most likely not meant."""
        problem = self.problem(self.authored(place), message, unread=unread)
        if problem not in self.warnings:
            self.warnings.append(problem)

    def lends(self, key: str) -> bool:
        """Whether references or aliases put parts of the value at a top-level key into other places."""
        return key in self.quoted or key in self._document.lent

    def warn_unread(self, place: Place, known: Collection[str]) -> None:
        """Warn of a key that nothing reads, with the nearest of the `known` keys."""
        self.warn_of_stranger(place, f"nothing reads this key{did_you_mean(str(place[-1]), known)}")

    def warn_of_stranger(self, place: Place, message: str) -> None:
        """Warn of an unknown key; it is also listed with mistakes, because it is often the reason for one of them."""
        self.warn(place, message, unread=True)
        self._strangers.append(self.problem(self.authored(place), message, unread=True))

    def take(self, place: Place, build: Callable[[], object]) -> None:
        """Build something; its problems and `warnings` become problems of this file, below `place`.

        Problems of other files keep their places.
        """
        try:
            for warning in getattr(build(), "warnings", ()):
                self.warn((*place, *steps_of(warning.key)), warning.message, unread=warning.unread)
        except InputError as error:
            for problem in error.listed:
                if problem.file:
                    self.problems.append(problem)
                else:
                    self.report((*place, *steps_of(problem.key)), problem.message, absent=problem.absent)

    def add(self, error: InputError) -> None:
        """The problems of another file that belongs to this one."""
        self.problems += error.listed

    def refuse(self, headline: str, cases: Iterable[object] = ()) -> None:
        """Raise InputError with all problems, if there are any: those found by iterating over the cases, and unknown
        keys, too."""
        if not self.problems:
            return
        try:
            for _ in cases:
                pass
        except InputError as error:
            self.add(error)
        raise InputError(with_others(self.problems, dict.fromkeys(self._strangers)), headline)

    def problem(self, place: Place, message: str, absent: bool = False, *, unread: bool = False) -> Problem:
        """A problem at a place, with its line."""
        return Problem(str(self._path), message, self._document.line(place), self._spelled(place), absent, unread)


def empty_text_expected(cases: int) -> str:
    """The warning that this many cases expect a text that every answer contains: most often an empty cell of a
    table."""
    expect = "expects it" if cases == 1 else "expect it, the first one here"
    return f"every answer contains the empty text: {counted(cases, 'case')} {expect}"


def passes_always(evaluator: str, keys: Iterable[str]) -> str:
    """The warning that an evaluator checks nothing, as no case expects any of the keys that it needs."""
    none = f"no case has {' or '.join(f'expected.{key}' for key in sorted(keys))}"
    return f"{none}: the evaluator {evaluator!r} passes whatever the answer is"


def expectation(message: str) -> str:
    """A message of pydantic in words that suit a file: "expected a mapping", not "a valid dictionary"."""
    message = re.sub(r"valid dictionary( or instance of \w+)?", "mapping", message.removeprefix("Value error, "))
    message = re.sub(r", unable to parse string as an? \w+", "", message)
    message = (
        message.replace("Input should be", "expected").replace("a valid ", "a ").replace("a integer", "an integer")
    )
    message = message.replace("Field required", "the key is missing")
    message = message.replace("Extra inputs are not permitted", "unknown key")
    return message[0].lower() + message[1:]


def mistakes_in(error: ValidationError) -> Iterator[tuple[str, str]]:
    """The place of each mistake in an object, empty for the object itself, and what was expected and found there."""
    for mistake in error.errors(include_url=False, include_context=False):
        whole = mistake["type"] in ("model_attributes_type", "model_type")
        expected = f"expected a {error.title}" if whole else expectation(mistake["msg"])
        yield ".".join(map(str, mistake["loc"])), f"{expected}, found {mistake['input']!r:.80}"


def joined_mistakes(error: ValidationError) -> str:
    """All mistakes in an object on one line: pydantic's own text has several for each, and a URL."""
    return "; ".join(f"{place}: {message}" if place else message for place, message in mistakes_in(error))


def remedy(kind: str, found: Any) -> str:
    """How to turn the value into what a pydantic check expects, if that is obvious; `kind` is the error's."""
    if kind == "string_type" and isinstance(found, (bool, int, float, date)):
        return "; put it in quotes to make it text"
    return "; one item is written [...]" if kind == "list_type" and isinstance(found, str) else ""


def unknown_keys(value: Any, known: Collection[str], place: str) -> Iterator[str]:
    """The paths of a mapping's keys that are not `known`; `place` precedes each."""
    for key in value if isinstance(value, dict) else ():
        if key not in known:
            yield f"{place}{key}"
