"""`evalwright plan`."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import as_json, dialect, suite_argument
from evalwright.cli.stored_runs import RunPath
from evalwright.cli.usage import Command, NumberRange, PathParam, alpha_option, variables
from evalwright.errors import AllMistakes, InputError

if TYPE_CHECKING:
    from evalwright.decisions.planning import Aim, SuitePlan
    from evalwright.decisions.sides import SideCounts
    from evalwright.model.suite import Suite
    from evalwright.model.summary import RunSummary

__all__ = ["command"]


@click.command("plan", cls=Command)
@suite_argument()
@click.argument("second", required=False, type=RunPath(), metavar="[--from RUN [RUN]]")
@dialect
@variables
@click.option("--detect", metavar="D", help="The difference to show: 3pp or 0.03; of a score, in its units.")
@click.option(
    "--metric",
    default="pass_rate",
    show_default=True,
    metavar="NAME",
    help="pass_rate, or an evaluator: its mean score, which needs --from.",
)
@click.option("--margin", metavar="M", help="Show that B is worse by at most M, if it is really better by D.")
@click.option(
    "--at-least", metavar="RATE", help="What a gate `at_least: RATE` would do to systems of known rates: 0.8 or 80%."
)
@click.option(
    "--power",
    type=NumberRange(0.05, 0.999),
    default=0.8,
    show_default=True,
    metavar="P",
    help="The chance of showing it.",
)
@alpha_option("Error rate of the two-sided test that is planned.")
@click.option(
    "--from",
    "runs",
    type=RunPath(),
    multiple=True,
    metavar="RUN",
    help="One or two runs of the suite, which show how much cases vary and what a cell costs.",
)
@click.option("--trials", default="1,3,5", show_default=True, metavar="K,…", help="Numbers of trials to compare.")
@click.option("--plot", type=PathParam(dir_okay=False), metavar="FILE", help="Power curves as SVG.")
@as_json
def command(
    path: Path,
    second: Path | None,
    dialect: str | None,
    variables: dict[str, str],
    detect: str | None,
    metric: str,
    margin: str | None,
    at_least: str | None,
    power: float,
    alpha: float,
    runs: tuple[Path, ...],
    trials: str,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Print how many cases and trials it takes to show a difference with the suite at PATH; run nothing.

    Exit code 1: the suite as it is does not reach the power, however many cases change, or can never pass the gate.
    Costs and minutes are those of one run.
    """
    import msgspec

    from evalwright.cli.screen import print_out, warn, write_plot
    from evalwright.decisions.planning import Aim
    from evalwright.formats.loading import load_suite
    from evalwright.reports.planning import planning_lines
    from evalwright.session.imports import nothing_imported

    if second is not None:
        if len(runs) != 1:
            raise InputError(f"unexpected {str(second)!r}: a second run belongs behind --from RUN")
        runs = (*runs, second)
    _check_aims(detect, metric, margin, at_least, plot)
    if metric != "pass_rate" and not runs:
        raise InputError(f"--metric {metric} needs --from RUN: only a run shows how much its scores vary")
    mistakes, difference, loss = AllMistakes(), 0.0, 0.0
    with mistakes:
        difference, loss = _difference(detect, margin, metric)
    with mistakes:
        rate = None if at_least is None else _rate(at_least)
    with mistakes:
        numbers = _trials(trials)
    with nothing_imported():
        with mistakes:
            suite = load_suite(path, dialect, variables, to_run=False)
        mistakes.refuse()
        warn(suite.warnings)
        aim = Aim(difference, loss, alpha, power)
        planned_suite = _planned_suite(path.name, suite, runs, numbers, aim, rate, metric)
    if as_json:
        print_out([msgspec.json.encode(planned_suite).decode()])
    else:
        print_out(planning_lines(planned_suite, ", ".join(map(str, runs))))
    if plot is not None:
        from evalwright.reports.pictures.planning import plan_svg

        write_plot(plot, plan_svg(planned_suite))
    return 1 if planned_suite.reached is False else 0


def _check_aims(detect: str | None, metric: str, margin: str | None, at_least: str | None, plot: Path | None) -> None:
    """Raise InputError unless these options say what is planned."""
    if detect is None and at_least is None:
        raise InputError("expected --detect, the difference to see (3pp), or --at-least, the rate of a gate (0.8)")
    if detect is None and (plot or margin):
        raise InputError("--margin and --plot belong to --detect: the difference to see (3pp)")
    if at_least is not None and metric != "pass_rate":
        raise InputError("--at-least is about the pass rate, --metric about a score: expected one of them, found both")


def _difference(detect: str | None, margin: str | None, metric: str) -> tuple[float, float]:
    """The difference to see and the loss that does not matter: fractions, or in a score's units. Raises InputError."""
    from evalwright.decisions.terms import margin_of

    difference = 0.0 if detect is None else margin_of(detect, "--detect", metric)
    loss = 0.0 if margin is None else margin_of(margin, metric=metric)
    if detect is not None and not difference + loss:
        raise InputError("--detect: expected a difference above 0, found 0")
    return difference, loss


def _planned_suite(
    name: str, suite: Suite, runs: tuple[Path, ...], trials: list[int], aim: Aim, at_least: float | None, metric: str
) -> SuitePlan:
    from evalwright.decisions.planned_judges import judge_notes
    from evalwright.decisions.planning import suite_plan
    from evalwright.decisions.sides import PASS_RATE

    if len(runs) > 2:
        raise InputError(f"--from: expected one run or two, found {len(runs)}")
    found = [_side(run) for run in runs]
    sides = [side for side, _ in found]
    cases = sum(1 for _ in suite.cases)
    if metric != PASS_RATE:
        from evalwright.decisions.score_planning import score_plan

        return score_plan(name, cases, sides, trials, aim, metric, suite.run.max_concurrency)
    planned = suite_plan(name, cases, sides, trials, aim, at_least, suite.run.max_concurrency)
    planned.notes = judge_notes([summary for _, summary in found], aim.detect)
    return planned


def _rate(text: str) -> float:
    """`0.8`, `80%`. Raises InputError."""
    number, percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise InputError(f"--at-least: expected a rate between 0 and 1, like 0.8 or 80%, found {text!r}")
    return value


def _trials(text: str) -> list[int]:
    from evalwright.model.plan import MOST_TRIALS

    parts = [part.strip() for part in text.split(",") if part.strip()]
    # more digits than the limit has are not read: that can take minutes
    numbers = [int(part) if re.fullmatch(r"[0-9]{1,5}", part) else 0 for part in parts]
    if not numbers or not all(1 <= k <= MOST_TRIALS for k in numbers):
        raise InputError(f"--trials: expected numbers from 1 to {MOST_TRIALS:,} like 1,3,5, found {text!r:.60}")
    return sorted(set(numbers))


def _side(run: Path) -> tuple[SideCounts, RunSummary | None]:
    """The counts of the run's first variant, and what the run's summary knows of its judges."""
    from evalwright.decisions.sides import sides_of
    from evalwright.decisions.spreads import judged_side
    from evalwright.run.stored_run import open_run

    reader, plan = open_run(run)
    with closing(reader):
        side, summary = judged_side(sides_of(reader, plan)), reader.summary()
    if side is None:
        raise InputError(f"{run} has no cell with a verdict")
    return side, summary
