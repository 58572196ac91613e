"""`evalwright compare`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from evalwright.cli.options import as_json, color
from evalwright.cli.pairs import opened_pair, pair_options, regression_code, warn_of_same_run
from evalwright.cli.stored_runs import run_argument, store_options
from evalwright.cli.usage import Command, NumberRange, alpha_option, points_param, reject_options
from evalwright.errors import InputError
from evalwright.registry import format_of, formats, resolve

__all__ = ["command"]

_Scores = tuple[dict[str, float], int]
"""Scores by case, and the number of lines."""


@click.command("compare", cls=Command)
@run_argument("a")
@run_argument("b")
@store_options
@as_json
@color
@click.option(
    "--fail-on-regression",
    is_flag=True,
    help="Exit with 1 if B is worse beyond noise, with 3 if errors or cells not run leave that open.",
)
@click.option(
    "--margin",
    type=points_param,
    metavar="M",
    help="The largest loss that does not matter: 2pp, 0.02 (default: 2pp for the verdict, 0 for --fail-on-regression).",
)
@alpha_option("Error rate of the two-sided tests; intervals have the level 1 − A.")
@pair_options
@click.option("--allow-changed", is_flag=True, help="Compare cases and evaluators that changed, too.")
@click.option(
    "--format", "--dialect", "dialect", metavar="NAME", help="Read A and B as result files of this format, not as runs."
)
@click.option(
    "--threshold",
    type=NumberRange(min=0),
    default=0.1,
    show_default=True,
    metavar="F",
    help="For result files: smallest change of a score that counts.",
)
def command(
    a: Path,
    b: Path,
    as_json: bool,
    fail_on_regression: bool,
    margin: float | None,
    alpha: float,
    group: str | None,
    labels: Path | None,
    allow_changed: bool,
    dialect: str | None,
    threshold: float,
) -> int:
    """Compare run B with run A, case by case; every change is B − A.

    Only cases with a verdict in both runs count. Cases that changed between the runs are left out and named; evaluators
    that changed are rejected; if there is nothing to compare or records cannot be read, the exit code is 3. Result
    files (JSON Lines) of formats that have them are compared by their scores; the exit code is then 1 if the mean
    score dropped.
    """
    if (read_scores := _results_reader(dialect, a, b)) is not None:
        return _score_files(read_scores(a), read_scores(b), threshold, as_json)
    reject_options(("threshold",), "is for result files, and these are runs: leave it out")
    import msgspec

    from evalwright.cli.screen import print_out, screen_paint
    from evalwright.decisions.clusters import explain
    from evalwright.decisions.comparison import comparison_of, regressions
    from evalwright.decisions.terms import Terms
    from evalwright.reports.comparison import comparison_of_runs

    terms = Terms(margin=margin, alpha=alpha, group=group, keep_changed=allow_changed)
    with opened_pair(a, b, terms, labels) as opened:
        runs = opened.runs
        with runs.mistakes:
            if not allow_changed:
                runs.refuse_changed()
        for name in runs.a.keys() & runs.b.keys():
            with runs.mistakes:
                runs.refuse_strangers(name, name)
        runs.mistakes.refuse()
        comparison = comparison_of(runs, str(a), str(b))
        decisions = [variant.decision for variant in comparison.variants]
        explain(opened.before, opened.after, decisions, keep_changed=allow_changed)
        tested = regressions(runs, decisions, margin or 0.0) if fail_on_regression else []
        warn_of_same_run(opened, a, [(name, name) for name in runs.a])
    if as_json:
        print_out([msgspec.json.encode(comparison).decode()])
    else:
        print_out(comparison_of_runs(comparison, screen_paint()))
    code = 0 if not runs.unread and any(decision.n for decision in decisions) else 3
    return regression_code(tested, code)


def _results_reader(dialect: str | None, *paths: object) -> Callable[[Path], _Scores] | None:
    """What reads the result files of a format; None for runs. JSON Lines belong to the format that has such result
    files."""
    if dialect is None and any(Path(str(path)).suffix != ".jsonl" for path in paths):
        return None

    able = [
        suite_format
        for suite_format in ([format_of(dialect)] if dialect else formats())
        if suite_format.read_results is not None
    ]
    if len(able) > 1:
        raise InputError(
            f"result files of which format? Pass --format ({', '.join(suite_format.name for suite_format in able)})"
        )
    reader: Callable[[Path], _Scores] | None = resolve(able[0].read_results) if able and able[0].read_results else None
    return reader


def _score_files(a: _Scores, b: _Scores, threshold: float, as_json: bool) -> int:
    import msgspec

    from evalwright.cli.screen import print_out, warn
    from evalwright.decisions.scores import compared

    (scores_a, lines_a), (scores_b, lines_b) = a, b
    comparison = compared(scores_a, scores_b, threshold)
    comparison["summary"]["total"] = lines_a + lines_b
    if as_json:
        print_out([msgspec.json.encode(comparison).decode()])
    elif comparison["matched"]:
        rows = [f"{m['outcome']:5} {m['delta']:+.3f}  {m['eval_id']}" for m in comparison["matched"]]
        total = comparison["summary"]
        counts = f"{total['wins']} won, {total['losses']} lost, {total['ties']} tied"
        mean = f"mean change {total['mean_delta']:+.3f} over {total['matched']} cases in both files"
        print_out([*rows, f"{counts}; {mean}"])
    if not comparison["matched"]:
        # AgentV's own `compare` exits with this code.
        warn(["the two files have no case in common: nothing was compared"])
    return 0 if comparison["summary"]["mean_delta"] >= 0 else 1
