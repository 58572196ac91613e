"""The original of a conversion: read without running anything, with references in the place of variables' values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.convert.references import OWN_NAMES, marked, shown
from evalwright.convert.unread import unread_keys
from evalwright.dialects import load_suite
from evalwright.errors import InputError, Problem
from evalwright.model.suite import Suite

__all__ = ["Original", "read_original"]

_NAME = re.compile(r"\$\{\{?\s*([A-Z_][A-Z0-9_]*)")
_DEFAULT = re.compile(r"\$\{([A-Z_][A-Z0-9_]*):-[^}]*\}")


class Original(NamedTuple):
    """A suite, and what the variables in its files stand for."""

    suite: Suite
    references: dict[str, str]
    brought: list[str]
    """Variables among them that only the suite's own files give a value."""
    defaults: list[str]
    """References with a default, which marks have no room for."""

    def notes(self) -> list[str]:
        """What is to be known before the new files are run."""
        notes = [f"set {name} before a run: only agentv reads .env files" for name in self.brought]
        document = self.suite.document
        part = document.get("dataset") if self.suite.dialect == "evalh" else document
        keys = ("filter", "sample", "sample_tags", "max_samples")
        chosen = [key for key in keys if isinstance(part, dict) and part.get(key)]
        return notes + ([f"only the cases that {' and '.join(chosen)} choose are written"] if chosen else [])

    def unread(self) -> Iterator[Problem]:
        """What of the original is nowhere in the suite."""
        yield from unread_keys(self.suite)
        for reference in self.defaults:
            yield Problem("suite", f"the default in {reference} is not written", key="")


def read_original(source: Path, dialect: str | None, options: Mapping[str, Any]) -> Original:
    """Raises InputError with every problem of the suite."""
    before = set(os.environ)
    first = load_suite(source, dialect, to_run=False, options=options)
    text = _text_with_names(first, options)
    names = set(_NAME.findall(text)) - OWN_NAMES
    having = {match[0]: match[1] for match in _DEFAULT.finditer(text) if match[1] not in OWN_NAMES}
    brought = sorted(names - before - set(having.values()))
    if not names:
        return Original(first, {}, brought, [])
    references = marked(names)
    try:
        suite = load_suite(source, first.dialect, references, to_run=False, options=options)
    except InputError as error:
        problems = [Problem(p.file, shown(p.message), p.line, p.key) for p in error.problems]
        raise InputError(problems, "a variable stands for something else than text, which cannot be written") from error
    return Original(suite, references, brought, sorted(having))


def _text_with_names(suite: Suite, options: Mapping[str, Any]) -> str:
    """The file of a suite in which variables are named."""
    from evalwright.dialects.agentv_messages import Files
    from evalwright.dialects.agentv_targets import targets_file

    if suite.dialect == "evalh":
        return suite.source.read_text("utf-8", errors="replace")
    if suite.dialect != "agentv":
        return ""
    place = targets_file(options.get("targets"), Files(suite.source.resolve().parent).roots)
    return "" if place is None else place.read_text("utf-8", errors="replace")
