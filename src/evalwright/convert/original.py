"""The original of a conversion: read without running anything, with references in place of variables' values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import to_builtins

from evalwright.errors import InputError, Problem
from evalwright.files.credentials import credentials
from evalwright.formats.loading import format_at, load_suite
from evalwright.formats.shared.references import NAMED, OWN_NAMES, marked_names, references_in, shown
from evalwright.model.case import EvalCase
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import resolve

__all__ = ["Original", "credential_notes", "read_original"]

_NAME = re.compile(r"\$\{\{?\s*([A-Z_][A-Z0-9_]*)")


class Original(NamedTuple):
    """A suite, and what the variables in its files stand for."""

    suite: Suite
    references: dict[str, str]
    brought: list[str]
    """Those of the variables that only the suite's own files define."""
    defaults: list[str]
    """References with a default, for which marks have no room."""

    def notes(self) -> list[str]:
        """What the user should know before running the new files."""
        notes = [
            f"set {name} before a run: it comes from a .env file, which is not read for the new files"
            for name in self.brought
        ]
        document = self.suite.document
        notes += credential_notes(self.suite)
        unread: Iterable[Problem] = getattr(self.suite.cases, "problems", ())
        notes += [f"of what cannot be read, only the problem is written: {problem.message}" for problem in unread]
        dataset = document.get("dataset")
        part = dataset if isinstance(dataset, dict) else document
        keys = ("filter", "sample", "sample_tags", "max_samples")
        chosen = [key for key in keys if part.get(key)]
        return notes + ([f"only the cases selected by {' and '.join(chosen)} are written"] if chosen else [])

    def losses(self) -> list[Problem]:
        """Losses that cannot be seen in the suite as it was read."""
        defaults = [Problem("suite", f"the default in {reference} is not written") for reference in self.defaults]
        return [*defaults, *self.suite.unexecuted]


def credential_notes(suite: Suite) -> list[str]:
    """Which keys of a suite and its cases contain a credential as text."""
    parts = chain([suite.document], (to_builtins(_authored_parts(case)) for case in suite.cases))
    contained = chain.from_iterable(map(credentials, parts))
    names = dict.fromkeys(key for key, text in contained if not _NAME.search(text) and not NAMED.search(text))
    return [f"{name} contains a credential, and so may the new files: name a variable instead" for name in names]


def _authored_parts(case: EvalCase | Case) -> list[Any]:
    snapped = snapshot(case)
    return [snapped.input, snapped.expected, snapped.metadata, snapped.extra]


def read_original(source: Path, dialect: str | None, options: Mapping[str, Any]) -> Original:
    """Raises InputError with every problem of the suite; variables need no values."""
    suite_format = format_at(source, dialect)
    written = dict.fromkeys(resolve(suite_format.names_in or _names_in)(source, options))
    named = {text: match[1] for text in written if (match := _NAME.match(text)) and match[1] not in OWN_NAMES}
    references = marked_names(set(named.values()))
    before = set(os.environ)
    try:
        suite = load_suite(source, suite_format.name, references, to_run=False, options=options)
    except InputError as error:
        problems = [Problem(p.file, shown(p.message), p.line, p.key) for p in error.problems]
        raise InputError(problems, shown(error.headline)) from error
    brought = sorted(references.keys() & (suite.environment.keys() - before))
    return Original(suite, references, brought, sorted(text for text in named if ":-" in text))


def _names_in(source: Path, _options: Mapping[str, Any]) -> list[str]:
    """The references in a YAML file."""
    return references_in([source] if source.suffix in (".yaml", ".yml") else [])
