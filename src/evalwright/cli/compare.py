"""`evalwright compare`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from evalwright.cli.options import as_json, run_argument, store_options
from evalwright.errors import InputError

__all__ = ["command"]

_Scores = tuple[dict[str, float], int]
"""Scores by case, and the number of lines."""


@click.command("compare")
@run_argument("a")
@run_argument("b")
@store_options
@as_json
@click.option("--fail-on-regression", is_flag=True, help="Exit with 1 if a case regressed.")
@click.option(
    "--format", "--dialect", "dialect", metavar="NAME", help="Read A and B as result files of this format, not as runs."
)
@click.option(
    "--threshold",
    type=float,
    default=0.1,
    show_default=True,
    metavar="F",
    help="For result files: smallest change of a score that counts.",
)
def command(a: Path, b: Path, as_json: bool, fail_on_regression: bool, dialect: str | None, threshold: float) -> int:
    """Compare run B with run A, case by case; every change is B − A.

    p comes from the exact McNemar test on the cases with a verdict in both runs. Result files (JSON Lines) of formats
    that have them are compared by their scores; the exit code is then 1 if the mean score dropped.
    """
    if (read_scores := _results_reader(dialect, a, b)) is not None:
        return _score_files(read_scores(a), read_scores(b), threshold, as_json)
    from contextlib import closing

    import msgspec

    from evalwright.cli.screen import say
    from evalwright.decisions.comparison import compare
    from evalwright.reports.comparison import comparison_of_runs
    from evalwright.reports.text import harmless, paint_for
    from evalwright.run.start import open_run

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


def _results_reader(dialect: str | None, *paths: object) -> Callable[[Path], _Scores] | None:
    """What reads result files of a format; None for runs. JSON Lines are of the format that has such files."""
    if dialect is None and any(Path(str(path)).suffix != ".jsonl" for path in paths):
        return None
    from evalwright.registry import format_of, formats, resolve

    able = [one for one in ([format_of(dialect)] if dialect else formats()) if one.read_results is not None]
    if len(able) > 1:
        raise InputError(f"result files of which format? Pass --format ({', '.join(one.name for one in able)})")
    reader: Callable[[Path], _Scores] | None = resolve(able[0].read_results) if able and able[0].read_results else None
    return reader


def _score_files(a: _Scores, b: _Scores, threshold: float, as_json: bool) -> int:
    import msgspec

    from evalwright.cli.screen import say
    from evalwright.decisions.scores import compared

    (scores_a, lines_a), (scores_b, lines_b) = a, b
    found = compared(scores_a, scores_b, threshold)
    found["summary"]["total"] = lines_a + lines_b
    if as_json:
        say([msgspec.json.encode(found).decode()])
    else:
        rows = [f"{m['outcome']:5} {m['delta']:+.3f}  {m['eval_id']}" for m in found["matched"]]
        total = found["summary"]
        counts = f"{total['wins']} won, {total['losses']} lost, {total['ties']} tied"
        say([*rows, f"{counts}; mean change {total['mean_delta']:+.3f} over {total['matched']} cases in both files"])
    return 0 if found["summary"]["mean_delta"] >= 0 else 1
