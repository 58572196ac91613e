"""`evalwright validate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import SuiteCommand, allow_empty, as_json, dialect, suites_argument
from evalwright.cli.usage import variables
from evalwright.errors import InputError, Problem, counted
from evalwright.reports.text import harmless

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = ["command", "loaded_to_check"]

_LONGEST = 600
"""Characters of the first case that are shown."""
_MOST_FILES = 3
"""How many files are named after the first one with the same warning."""


@click.command("validate", cls=SuiteCommand)
@suites_argument()
@dialect
@variables
@allow_empty
@click.option("--import", "import_", is_flag=True, help="Import the code that the suites name, and check it, too.")
@as_json
def command(
    paths: tuple[Path, ...],
    dialect: str | None,
    variables: dict[str, str],
    import_: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Read the suites at PATH and every case of their datasets, and list all problems.

    Without --import, no code of a suite is executed; its commands never are.

    A PATH is a file, a folder that is searched for suites, or a glob. Warnings, such as unknown keys where they are
    allowed, go to stderr.
    """
    from evalwright.cli.screen import print_err, print_out, print_skipped, warn
    from evalwright.formats.discovery import suite_files
    from evalwright.session.imports import imported_files, nothing_imported

    files = suite_files(paths, dialect)
    checked = _Checked()
    with nullcontext() if import_ else nothing_imported():
        for file in files.files:
            checked.add(file, dialect, variables, options, keep=as_json)
    print_skipped(files.skipped, checked.used)
    print_err(f"imported {file}" for file in (imported_files() if import_ else ()))
    if as_json:
        print_out([checked.encoded()])
        return InputError.exit_code if checked.refusals else 0
    warn(_once_each(checked.warnings))
    several = len(files.files) > 1
    for file, (counts, *more) in checked.sound:
        print_out([f"ok: {harmless(str(file))}: {counts}" if several else f"ok: {counts}"])
        print_out(map(harmless, more))
    if len(checked.refusals) == 1:
        raise checked.refusals[0]
    if checked.refusals:
        raise InputError(checked.problems)
    return 0


def loaded_to_check(
    file: Path,
    dialect: str | None,
    variables: Mapping[str, str] | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Suite, Sequence[Problem]]:
    """The suite, and problems because something is missing on this machine: it may well run elsewhere."""
    from evalwright.formats.loading import load_suite

    try:
        return load_suite(file, dialect, variables, options=options), ()
    except InputError as error:
        absent = [problem for problem in error.problems if not problem.unread]  # the suite has warnings of those
        if not absent or not all(problem.absent for problem in absent):
            raise
        return load_suite(file, dialect, variables, to_run=False, options=options), absent


def _once_each(warnings: Sequence[Problem]) -> list[Problem | str]:
    """Warnings of several files, each once, at the first of them."""
    files: dict[tuple[str, str], dict[str, None]] = {}
    for warning in warnings:
        files.setdefault((warning.key, warning.message), {})[warning.file] = None
    listed: list[Problem | str] = []
    for warning in warnings:
        first, *others = files[warning.key, warning.message]
        if warning.file == first:
            more = [counted(len(others) - _MOST_FILES, "more file")] if len(others) > _MOST_FILES else []
            listed.append(f"{warning} (also in {', '.join([*others[:_MOST_FILES], *more])})" if others else warning)
    return listed


class _Checked:
    """What is wrong with suites and what is in them."""

    def __init__(self) -> None:
        self.refusals: list[InputError] = []
        self.warnings: list[Problem] = []
        self.used: set[Path] = set()
        """Files that suites read, such as their datasets."""
        self.sound: list[tuple[Path, list[str]]] = []
        self._cases: list[dict[str, object]] = []
        self._dialects: list[str] = []
        self._found: Counter[str] = Counter()

    def add(
        self, file: Path, dialect: str | None, variables: dict[str, str], options: dict[str, Any], *, keep: bool
    ) -> None:
        """Read a suite. With `keep`, the cases are shown that its format describes in full."""
        from evalwright.files.problems import ProblemKinds
        from evalwright.run.missing_packages import missing_functions, missing_packages
        from evalwright.run.selection import all_warnings
        from evalwright.targets.unfilled import UnfilledPlaces

        try:
            suite, absent = loaded_to_check(file, dialect, variables, options)
            self.used.update(path.resolve() for path in suite.files)
            places = UnfilledPlaces(suite.variants)
            count, own = _count(places.watched(_checking_claims(suite)), self._cases if keep else None)
            if not count and suite.variants and not options["allow_empty"]:
                # as JSON, which shows what was read: a program may well generate the cases later
                self._add_emptiness(suite, refuse=not keep)
            lost = getattr(suite.cases, "problems", ())
            doubts = ProblemKinds(doubt for doubt in all_warnings(suite) if doubt not in lost)
            functions = missing_functions(suite)
            elsewhere = [function for function in functions if function.absent]
            self.warnings += [*absent, *doubts, *missing_packages(suite), *elsewhere]
            # `lost` are among cases that a run would report as errors
            missing = [
                *(function for function in functions if not function.absent),
                *places.problems(str(suite.source)),
            ]
            if wrong := [*lost, *missing]:
                raise InputError(wrong)
        except InputError as error:
            self.refusals.append(error)
            return
        found = {"cases": count, "variants": len(suite.variants), "evaluators": len(suite.evaluators) + own}
        self._found.update(found)
        self._dialects.append(suite.dialect)
        counts = ", ".join(counted(number, noun.removesuffix("s")) for noun, number in found.items())
        more = [] if suite.contents is None else [suite.contents()]
        first = _first(suite.cases)
        has_counts = any(found.values()) or not more  # a file beside suites has none of these
        lines = [*([counts] if has_counts else []), *more, *([] if first is None else [f"first case: {first}"])]
        self.sound.append((file, lines))

    def _add_emptiness(self, suite: Suite, *, refuse: bool) -> None:
        from evalwright.run.selection import must_not_be_empty

        try:
            must_not_be_empty(suite, to_run=False)
        except InputError as error:
            if refuse:
                raise
            self.warnings += error.problems

    @property
    def problems(self) -> list[Problem]:
        return [p for error in self.refusals for p in error.listed]

    def encoded(self) -> str:
        import msgspec

        cases = {"cases": self._cases} if self._cases else {}
        if self.refusals:
            return msgspec.json.encode({"ok": False, "problems": _rows(self.problems), **cases}).decode()
        named = {"ok": True, "dialect": ", ".join(dict.fromkeys(self._dialects)), **self._found}
        document = {**named, "problems": [], "warnings": _rows(self.warnings), **cases}
        return msgspec.json.encode(document).decode()


def _checking_claims(suite: Suite) -> Iterable[Any]:
    """The cases; after the last one, it is checked that they have what the gate refers to."""
    if suite.gate is None:
        return suite.cases
    from evalwright.formats.shared.claims import with_claimed_keys

    return with_claimed_keys(suite.gate, str(suite.source), suite.cases)


def _count(mistakes: Iterable[object], kept: list[dict[str, object]] | None) -> tuple[int, int]:
    """The number of cases, and of the evaluators that they define; cases that the format describes in full are kept."""
    count = 0
    names: set[str] = set()
    for case in mistakes:
        count += 1
        own = getattr(case, "evaluators", None) or ()
        names.update(spec["name"] if isinstance(spec, dict) else spec.name for spec in own)
        described = getattr(case, "described", None)
        if kept is not None and described is not None and (shown := described()) is not None:
            kept.append(shown)
    return count, len(names)


def _first(cases: Iterable[object]) -> str | None:
    """The first case of a table, whose columns may have been read as something else than was meant."""
    case = next(iter(cases), None) if getattr(cases, "of_rows", False) else None
    if case is None:
        return None
    from evalwright.model.case import EvalCase

    if not isinstance(case, EvalCase):  # a recording, whose answer is not part of its case
        return None
    text = case.model_dump_json(exclude_unset=True)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"


def _rows(problems: Iterable[Problem]) -> list[dict[str, object]]:
    return [{"file": p.file, "line": p.line, "key": p.key, "message": p.message, "more": p.more} for p in problems]
