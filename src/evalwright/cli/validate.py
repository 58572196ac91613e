"""`evalwright validate`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from evalwright.cli.options import as_json, dialect, format_options, suite_argument
from evalwright.errors import InputError, Problem

__all__ = ["command"]


@click.command("validate", short_help="Check a suite and its dataset without running anything.")
@suite_argument()
@dialect
@format_options
@as_json
def command(path: Path, dialect: str | None, as_json: bool, **of_format: Any) -> int:
    """Read the suite at PATH and every case of its dataset, and name everything that is wrong with them.

    Keys that nothing reads, where they are allowed, and the like are named on stderr as warnings.
    """
    from evalwright.cli.screen import say, warn
    from evalwright.dialects import load_suite
    from evalwright.reports.numbers import counted

    cases: list[dict[str, object]] = []
    try:
        suite = load_suite(path, dialect, options=of_format)
        count = _count(suite.cases, cases if as_json else None)
        warnings = [*suite.warnings, *getattr(suite.cases, "unknown_keys", list)()]
        if lost := getattr(suite.cases, "problems", ()):
            raise InputError(lost)  # of cases that a run would tell as errors
    except InputError as error:
        if not as_json:
            raise
        say([_refusal(error, cases)])
        return error.exit_code
    found = {"cases": count, "variants": len(suite.variants), "evaluators": len(suite.evaluators)}
    if as_json:
        document = {"ok": True, "dialect": suite.dialect, **found, "problems": [], "warnings": _rows(warnings)}
        say([_encoded({**document, "cases": cases} if cases else document)])
    else:
        warn(warnings)
        say(["ok: " + ", ".join(counted(number, noun.removesuffix("s")) for noun, number in found.items())])
    return 0


def _count(found: Iterable[object], kept: list[dict[str, object]] | None) -> int:
    """The number of cases; those that a format describes whole are kept to be shown."""
    count = 0
    for case in found:
        count += 1
        described = getattr(case, "described", None)
        if kept is not None and described is not None and (shown := described()) is not None:
            kept.append(shown)
    return count


def _refusal(error: InputError, cases: list[dict[str, object]]) -> str:
    problems = error.problems or (Problem("", error.headline),)
    return _encoded({"ok": False, "problems": _rows(problems), **({"cases": cases} if cases else {})})


def _rows(problems: Iterable[Problem]) -> list[dict[str, object]]:
    return [{"file": p.file, "line": p.line, "key": p.key, "message": p.message} for p in problems]


def _encoded(document: dict[str, object]) -> str:
    import msgspec

    return msgspec.json.encode(document).decode()
