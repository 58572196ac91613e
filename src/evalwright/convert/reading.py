"""The original of a conversion: read without running anything, with references in the place of variables' values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.convert.references import marked
from evalwright.dialects import load_suite
from evalwright.errors import Problem
from evalwright.model.suite import Suite

__all__ = ["Original", "read_original"]

_UNREAD = ("nothing reads", "unknown key")
"""How warnings of the formats name keys that they pass over."""
_NAME = re.compile(r"\$\{\{?\s*([A-Z_][A-Z0-9_]*)")


class Original(NamedTuple):
    """A suite, and what the variables in its files stand for."""

    suite: Suite
    references: dict[str, str]
    brought: list[str]
    """Variables among them that only the suite's own files give a value."""

    def notes(self) -> list[str]:
        return [f"set {name} before a run: only agentv reads .env files" for name in self.brought]

    def unread(self) -> Iterator[Problem]:
        """Keys that nothing reads, so that nothing can write them."""
        suite = self.suite
        for problem in (*suite.warnings, *getattr(suite.cases, "unknown_keys", tuple)()):
            if any(words in problem.message for words in _UNREAD):
                yield Problem("suite", f"{problem.message} ({problem.file})", key=problem.key)


def read_original(source: Path, dialect: str | None, options: Mapping[str, Any]) -> Original:
    """Raises InputError with every problem of the suite."""
    before = set(os.environ)
    first = load_suite(source, dialect, to_run=False, options=options)
    names = _names(first, options)
    brought = sorted(names - before)
    if not names:
        return Original(first, {}, brought)
    references = marked(names)
    return Original(load_suite(source, first.dialect, references, to_run=False, options=options), references, brought)


def _names(suite: Suite, options: Mapping[str, Any]) -> set[str]:
    """Variables that the files of a suite name."""
    from evalwright.dialects.agentv_messages import Files
    from evalwright.dialects.agentv_targets import targets_file

    if suite.dialect not in ("agentv", "evalh"):
        return set()
    place: Path | None = suite.source
    if suite.dialect == "agentv":
        place = targets_file(options.get("targets"), Files(suite.source.resolve().parent).roots)
    return set() if place is None else set(_NAME.findall(place.read_text("utf-8", errors="replace")))
