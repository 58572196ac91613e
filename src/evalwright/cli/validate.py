"""`evalwright validate`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.options import as_json, dialect, suite_argument
from evalwright.errors import InputError, Problem

__all__ = ["command"]


@click.command("validate", short_help="Check a suite and its dataset without running anything.")
@suite_argument()
@dialect
@as_json
def command(path: Path, dialect: str | None, as_json: bool) -> int:
    """Read the suite at PATH and every case of its dataset, and name everything that is wrong with them."""
    from evalwright.cli.screen import say
    from evalwright.dialects import load_suite
    from evalwright.reports.numbers import counted

    try:
        suite = load_suite(path, dialect)
        cases = sum(1 for _ in suite.cases)
    except InputError as error:
        if not as_json:
            raise
        say([_refusal(error)])
        return error.exit_code
    found = {"cases": cases, "variants": len(suite.variants), "evaluators": len(suite.evaluators)}
    if as_json:
        say([_encoded({"ok": True, "dialect": suite.dialect, **found, "problems": []})])
    else:
        say(["ok: " + ", ".join(counted(number, noun.removesuffix("s")) for noun, number in found.items())])
    return 0


def _refusal(error: InputError) -> str:
    problems = error.problems or (Problem("", error.headline),)
    rows = [{"file": p.file, "line": p.line, "key": p.key, "message": p.message} for p in problems]
    return _encoded({"ok": False, "problems": rows})


def _encoded(document: dict[str, object]) -> str:
    import msgspec

    return msgspec.json.encode(document).decode()
