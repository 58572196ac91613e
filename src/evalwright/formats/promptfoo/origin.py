"""Places in the files of a configuration, for messages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from evalwright.errors import Problem
from evalwright.files.key_paths import Place
from evalwright.files.yaml import Document
from evalwright.formats.shared.findings import Findings

__all__ = ["LineDocument", "Origin"]

_ELSEWHERE = {
    "envPath": "commandLineOptions.envPath",
    "maxConcurrency": "evaluateOptions.maxConcurrency",
    "timeout": "evaluateOptions.timeoutMs",
    "timeoutMs": "evaluateOptions.timeoutMs",
}
"""Keys that many configurations have where neither promptfoo nor we read them, and what is meant."""


class LineDocument(Document):
    """What one line of a file says, which is of JSON Lines or a table."""

    def __init__(self, file: str, value: Any, number: int) -> None:
        super().__init__(file, value)
        self._number = number

    def line(self, place: Place) -> int:
        return self._number


class Origin:
    """Where a part of the configuration was read, for messages."""

    def __init__(self, findings: Findings, place: Place = ()) -> None:
        self.findings: Findings = findings
        self.place: Place = place

    def at(self, *steps: str | int) -> Origin:
        return Origin(self.findings, (*self.place, *steps))

    def report(self, message: str, *, absent: bool = False) -> None:
        self.findings.report(self.place, message, absent=absent)

    def problem(self, message: str) -> Problem:
        """A problem here, neither reported as a mistake nor as a warning."""
        return self.findings.problem(self.place, message)

    def warn(self, message: str, *, unread: bool = False) -> None:
        self.findings.warn(self.place, message, unread=unread)

    def warn_unread(self, known: Collection[str]) -> None:
        if (meant := _ELSEWHERE.get(str(self.place[-1]))) is not None:
            self.findings.warn_of_stranger(self.place, f"nothing reads this key here; write {meant}")
        else:
            self.findings.warn_unread(self.place, known)
