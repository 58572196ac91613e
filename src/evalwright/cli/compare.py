"""`evalwright compare`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evalwright.cli.options import as_json, run_argument

__all__ = ["command"]


@click.command("compare", short_help="Compare two runs: what got better, what got worse, how sure.")
@run_argument("a")
@run_argument("b")
@as_json
@click.option("--fail-on-regression", is_flag=True, help="Exit with 1 when a case got worse.")
def command(a: Path, b: Path, as_json: bool, fail_on_regression: bool) -> int:
    """Compare run B with run A, case by case: every change is B − A.

    p is that of the exact McNemar test on the cases that both runs judged.
    """
    from contextlib import closing

    import msgspec

    from evalwright.cli.screen import paint_for, say
    from evalwright.reports.comparison import comparison_of_runs
    from evalwright.reports.text import harmless
    from evalwright.run.api import open_run
    from evalwright.scoring.comparison import compare

    reader_a, plan_a = open_run(a)
    reader_b, plan_b = open_run(b)
    with closing(reader_a), closing(reader_b):
        comparison = compare(reader_a, plan_a, reader_b, plan_b)
        for note in [*reader_a.damage, *reader_b.damage]:
            print(harmless(note), file=sys.stderr)
    comparison.a, comparison.b = str(a), str(b)
    if as_json:
        say([msgspec.json.encode(comparison).decode()])
    else:
        say(comparison_of_runs(comparison, paint_for(sys.stdout)))
    worse = any(variant.delta.regressions for variant in comparison.variants)
    return 1 if worse and fail_on_regression else 0
