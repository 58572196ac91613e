"""`evalwright plan`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import RunPath, as_json, dialect, suite_argument
from evalwright.errors import InputError

if TYPE_CHECKING:
    from evalwright.decisions.planning import Spread
    from evalwright.decisions.sides import SideCounts

__all__ = ["command"]


@click.command("plan")
@suite_argument()
@dialect
@click.option("--detect", required=True, metavar="D", help="The difference of pass rates to see: 3pp or 0.03.")
@click.option("--margin", metavar="M", help="To show that B is not worse than by M, if it is better by D.")
@click.option(
    "--power",
    type=click.FloatRange(0.05, 0.999),
    default=0.8,
    show_default=True,
    metavar="P",
    help="The chance to see it.",
)
@click.option("--alpha", type=click.FloatRange(0, 1, True, True), default=0.05, show_default=True, metavar="A")
@click.option(
    "--from",
    "runs",
    type=RunPath(),
    multiple=True,
    metavar="RUN",
    help="A run of the suite, or twice for two: how much cases vary, and what a cell costs.",
)
@click.option("--trials", default="1,3,5", show_default=True, metavar="K,…", help="Numbers of trials to compare.")
@as_json
def command(
    path: Path,
    dialect: str | None,
    detect: str,
    margin: str | None,
    power: float,
    alpha: float,
    runs: tuple[Path, ...],
    trials: str,
    as_json: bool,
) -> int:
    """How many cases and trials of SUITE does it take to see a difference? Nothing is run.

    Exit code 1: the suite as it is does not reach the power. Costs and minutes are those of one run.
    """
    import msgspec

    from evalwright.cli.screen import say
    from evalwright.decisions.planning import guessed_spreads, planned
    from evalwright.decisions.terms import margin_of
    from evalwright.formats.loading import load_suite
    from evalwright.reports.planning import planning_lines

    difference, loss = margin_of(detect, "--detect"), 0.0 if margin is None else margin_of(margin)
    if not difference + loss:
        raise InputError("--detect: expected a difference above 0, found 0")
    numbers = _trials(trials)
    suite = load_suite(path, dialect, to_run=False)
    spreads = _spreads(runs) if runs else guessed_spreads()
    found = planned(
        path.name,
        sum(1 for _ in suite.cases),
        spreads,
        numbers if runs else numbers[:1],
        detect=difference,
        margin=loss,
        alpha=alpha,
        power=power,
        concurrency=suite.run.max_concurrency,
    )
    if as_json:
        say([msgspec.json.encode(found).decode()])
    else:
        cell = spreads[0].cell_usd
        cost = "" if cell is None else f", ${cell:.3g} a cell"
        say(planning_lines(found, f"{cost}, from {', '.join(map(str, runs))}" if runs else ""))
    return 0 if found.reached else 1


def _trials(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdigit() and int(part) for part in parts):
        raise InputError(f"--trials: expected numbers of at least 1 like 1,3,5, found {text!r}")
    return sorted(set(map(int, parts)))


def _spreads(runs: tuple[Path, ...]) -> list[Spread]:
    from evalwright.decisions.planning import spreads_of

    if len(runs) > 2:
        raise InputError(f"--from: expected one run or two, found {len(runs)}")
    sides = [_side(run) for run in runs]
    return spreads_of(sides[0], sides[1] if len(sides) > 1 else None)


def _side(run: Path) -> SideCounts:
    """The first variant of a run."""
    from evalwright.decisions.sides import sides_of
    from evalwright.run.start import open_run

    reader, plan = open_run(run)
    with closing(reader):
        sides = sides_of(reader, plan)
    for side in sides.values():
        if any(one.judged for one in side.passes.values()):
            return side
    raise InputError(f"{run} has no cell with a verdict")
