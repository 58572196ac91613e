"""`evalwright dataset`: the cases of a suite, looked at as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright import registry
from evalwright.cli.options import SuiteCommand, as_json, dialect, suites_argument
from evalwright.cli.usage import variables
from evalwright.errors import InputError, Problem, counted

if TYPE_CHECKING:
    from evalwright.datasets.lint import Finding
    from evalwright.model.case import EvalCase
    from evalwright.model.snapshot import Case

__all__ = ["command"]

_TABLES = ("csv", "parquet", "tsv", "xlsx")
_ROWS = ("json", "jsonl")
"""Suffixes of files that are tables if no format recognises them as a suite."""
_LISTED = 20
"""How many findings of one kind are listed: one habit of a dataset may cause thousands."""


@click.group("dataset")
def command() -> None:
    """Look at the cases of suites as data."""


@command.command("lint", cls=SuiteCommand)
@suites_argument()
@dialect
@variables
@as_json
def lint(paths: tuple[Path, ...], dialect: str | None, variables: dict[str, str], as_json: bool, **options: Any) -> int:
    """List what looks wrong with the cases at PATH.

    Looks for duplicates and near duplicates, expected answers that appear in the input, cases that expect nothing, and
    one answer that is expected nearly always. Calls no system and executes no code of a suite.

    A PATH is a suite, a folder that is searched for suites, a glob, or a table: CSV, TSV, Parquet, JSON or JSON Lines.
    At most 20 of a kind are listed, with --json all. Exit code 1 says that something was found.
    """
    from evalwright.cli.screen import print_out
    from evalwright.datasets.lint import findings_in

    findings: list[Finding] = []
    empty: list[Problem] = []
    for file, cases in _cases_of(paths, dialect, variables, options):
        if next(iter(cases), None) is None:
            empty.append(Problem(str(file), "has no cases"))
        else:
            findings += findings_in(cases, file)
    if empty:
        raise InputError(empty)
    if as_json:
        print_out([_encoded_findings(findings)])
    else:
        print_out(_lines(findings))
    return 1 if findings else 0


def _cases_of(
    paths: tuple[Path, ...], dialect: str | None, variables: dict[str, str], options: dict[str, Any]
) -> Iterable[tuple[Path, Iterable[EvalCase | Case]]]:
    from evalwright.cli.screen import print_skipped, warn
    from evalwright.cli.validate import loaded_to_check
    from evalwright.formats.discovery import suite_files
    from evalwright.session.imports import nothing_imported

    tables = [path for path in paths if dialect is None and path.is_file() and _is_table(path)]
    for path in tables:
        yield path, _table(path)
    suites = tuple(path for path in paths if path not in tables)
    if paths and not suites:
        return
    files = suite_files(suites, dialect)
    used: set[Path] = set()
    with nothing_imported():
        for file in files.files:
            suite = loaded_to_check(file, dialect, variables, options)[0]
            warn(suite.warnings)
            used.update(path.resolve() for path in suite.files)
            yield file, suite.cases
    print_skipped(files.skipped, used)


def _is_table(path: Path) -> bool:
    from evalwright.formats.loading import fitting
    from evalwright.formats.native.dataset_section import file_type

    kind = file_type(str(path))
    return kind in _TABLES or (kind in _ROWS and not fitting(path))


def _table(path: Path) -> Iterable[EvalCase | Case]:
    from evalwright.formats.native.dataset_section import file_type
    from evalwright.formats.native.row_files import JsonlRows

    kind = file_type(str(path)) or ""
    rows_class = JsonlRows if kind == "jsonl" else registry.load("datasets", kind)
    cases: Iterable[EvalCase | Case] = rows_class(path, "", {})
    return cases


def _lines(findings: list[Finding]) -> Iterable[str]:
    from evalwright.reports.text import harmless

    if not findings:
        yield "nothing found"
        return
    counts: Counter[str] = Counter()
    for kind, problem in findings:
        counts[kind] += 1
        if counts[kind] > _LISTED:
            continue
        place = problem.file if problem.line is None else f"{problem.file}:{problem.line}"
        yield harmless(f"{place}  {kind}: {problem.message}")
    for kind, count in counts.items():
        if count > _LISTED:
            yield f"{kind}: {count - _LISTED:,} more, which --json lists"
    yield counted(len(findings), "finding")


def _encoded_findings(findings: list[Finding]) -> str:
    import msgspec

    rows = [{"kind": kind, "file": p.file, "line": p.line, "message": p.message} for kind, p in findings]
    return msgspec.json.encode({"findings": rows}).decode()
