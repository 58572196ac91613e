"""What is wrong with a file and what is most likely not meant in it, gathered while it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem, counted, did_you_mean
from evalwright.files.key_paths import Place, bracketed, steps_of
from evalwright.files.yaml import Document

__all__ = ["Findings", "empty_text_expected", "expectation", "kind_found", "unknown_keys"]


class Findings:
    """Problems and warnings of one file, with their lines; `spelled` writes their places."""

    def __init__(self, path: Path, document: Document, spelled: Callable[[Place], str] = bracketed) -> None:
        self._path, self._document, self._spelled = path, document, spelled
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.authored: Callable[[Place], Place] = lambda place: place
        """From a place in what is read to the one in the file, where the reader has changed something."""
        self.settled: list[Place] = []
        """Places whose mistake is reported already: anything else wrong there follows from it."""

    def tell(self, place: Place, message: str, *, absent: bool = False) -> None:
        """Report a mistake, once however often it is found."""
        place = self.authored(place)
        if any(place[: len(where)] == where for where in self.settled):
            return
        problem = self.problem(place, message, absent)
        if problem not in self.problems:
            self.problems.append(problem)

    def warn(self, place: Place, message: str, *, unread: bool = False) -> None:
        """Warn of what is allowed but most likely not meant; once."""
        problem = self.problem(self.authored(place), message, unread=unread)
        if problem not in self.warnings:
            self.warnings.append(problem)

    def warn_unread(self, place: Place, known: Collection[str]) -> None:
        """Warn of a key that nothing reads, with the nearest of those that are `known`."""
        self.warn(place, f"nothing reads this key{did_you_mean(str(place[-1]), known)}", unread=True)

    def take(self, place: Place, build: Callable[[], object]) -> None:
        """Build something; its problems and its `warnings` become those of this file, from `place` on.

        Problems of another file stay where they are.
        """
        try:
            for warning in getattr(build(), "warnings", ()):
                self.warn((*place, *steps_of(warning.key)), warning.message, unread=warning.unread)
        except InputError as error:
            for problem in error.problems or [Problem("", error.headline)]:
                if problem.file:
                    self.problems.append(problem)
                else:
                    self.tell((*place, *steps_of(problem.key)), problem.message, absent=problem.absent)

    def add(self, error: InputError) -> None:
        """The problems of another file that belongs to this one."""
        self.problems += error.problems

    def refuse(self, headline: str, cases: Iterable[object] = ()) -> None:
        """Raise InputError if there are problems, together with those that going through the cases finds."""
        if not self.problems:
            return
        try:
            for _ in cases:
                pass
        except InputError as error:
            self.add(error)
        raise InputError(self.problems, headline)

    def problem(self, place: Place, message: str, absent: bool = False, *, unread: bool = False) -> Problem:
        """A problem at a place, with its line."""
        return Problem(str(self._path), message, self._document.line(place), self._spelled(place), absent, unread)


def kind_found(value: Any, mapping: str = "a mapping", nothing: str = "null") -> str:
    """What was found where something else was expected; JSON has objects where YAML has mappings."""
    if isinstance(value, dict):
        return mapping
    if isinstance(value, list):
        return "a list"
    return nothing if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


def empty_text_expected(cases: int) -> str:
    """The warning that so many cases expect a text that every answer contains: most often an empty cell of a table."""
    expect = "expects it" if cases == 1 else "expect it, the first one here"
    return f"every answer contains the empty text: {counted(cases, 'case')} {expect}"


def expectation(message: str) -> str:
    """A message of pydantic in words that fit a file: "expected a mapping", not "a valid dictionary"."""
    message = re.sub(r"valid dictionary( or instance of \w+)?", "mapping", message.removeprefix("Value error, "))
    message = (
        message.replace("Input should be", "expected").replace("a valid ", "a ").replace("a integer", "an integer")
    )
    message = message.replace("Field required", "the key is missing")
    message = message.replace("Extra inputs are not permitted", "unknown key")
    return message[0].lower() + message[1:]


def remedy(kind: str, found: Any) -> str:
    """How what stands there becomes what a check of pydantic wants, where that is plain; `kind` is its error's."""
    if kind == "string_type" and isinstance(found, (bool, int, float, date)):
        return "; put it in quotes to make it text"
    return "; one item is written [...]" if kind == "list_type" and isinstance(found, str) else ""


def unknown_keys(value: Any, known: Collection[str], place: str) -> Iterator[str]:
    """The paths of the keys of a mapping that are not `known`; `place` goes before each."""
    for key in value if isinstance(value, dict) else ():
        if key not in known:
            yield f"{place}{key}"
