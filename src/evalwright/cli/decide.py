"""`evalwright decide`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalwright.cli.options import as_json, color
from evalwright.cli.pairs import opened_pair, pair_options, warn_of_same_run
from evalwright.cli.stored_runs import run_argument, store_options
from evalwright.cli.usage import Command, PathParam, alpha_option
from evalwright.errors import AllMistakes

if TYPE_CHECKING:
    from evalwright.decisions.runs import TwoRuns
    from evalwright.decisions.terms import Terms
    from evalwright.model.decision import Decision

__all__ = ["command"]


@click.command("decide", cls=Command)
@run_argument("a")
@run_argument("b")
@store_options
@as_json
@color
@click.option(
    "--margin",
    metavar="M",
    help="The largest loss that does not matter: 2pp or 0.02 (default: 2pp, 2 % of a score's range).",
)
@alpha_option("Error rate of the two-sided test; a false SHIP is at most half as likely.")
@click.option(
    "--metric",
    default="pass_rate",
    show_default=True,
    metavar="NAME",
    help="pass_rate, or an evaluator: its score.",
)
@click.option("--variant", metavar="V", help="The variant to decide on (default: the one that both runs have).")
@click.option("--variants", metavar="A:B,…", help="Several variants, by their names in A and in B; decided together.")
@click.option("--better", is_flag=True, help="SHIP only if B is better; not worse is not enough.")
@click.option("--slices", metavar="KEYS", help="Show slices by these keys, such as tag,metadata.lang.")
@click.option(
    "--guard",
    metavar="K=LIMIT,…",
    help="What must also hold, separated by commas: limits of cost, latency, latency_p95 and tokens, as in cost=+10%, "
    "and of evaluators, as in evaluator:NAME=-1pp.",
)
@click.option(
    "--errors",
    type=click.Choice(["exclude", "fail", "strict"]),
    default="exclude",
    show_default=True,
    help="fail: errors of the system count as failures. strict: the decision must hold whatever they would have been.",
)
@click.option(
    "--population",
    type=click.Choice(["cases", "suite"]),
    default="cases",
    show_default=True,
    help="suite: its cases are all that matter; only their trials are a sample (at least 2 per run).",
)
@pair_options
@click.option(
    "--plot",
    type=PathParam(dir_okay=False),
    metavar="FILE",
    help="Difference, evaluators and slices with their intervals, as SVG.",
)
@click.option("--allow-changed", is_flag=True, help="Leave out cases that changed, keep evaluators that did.")
def command(
    a: Path,
    b: Path,
    as_json: bool,
    margin: str | None,
    alpha: float,
    metric: str,
    variant: str | None,
    variants: str | None,
    better: bool,
    slices: str | None,
    guard: str | None,
    errors: str,
    population: str,
    group: str | None,
    labels: Path | None,
    plot: Path | None,
    allow_changed: bool,
) -> int:
    """May run B replace run A? SHIP (exit 0), DON'T (1) or UNDECIDED (3), and what it would take to decide.

    SHIP: B is shown not to be worse by more than the margin, and every guard holds. DON'T: B is shown to be worse by
    more, or a guard is broken. No rate includes errors or cells that were not run yet; if these could change the
    decision, or records cannot be read, it is UNDECIDED.
    """
    from evalwright.decisions.clusters import explain
    from evalwright.decisions.terms import Terms, margin_of

    mistakes, loss = AllMistakes(), None
    with mistakes:
        loss = None if margin is None else margin_of(margin, metric=metric)
    terms = Terms(
        metric=metric,
        margin=loss,
        alpha=alpha,
        better=better,
        slices=tuple(filter(None, map(str.strip, (slices or "").split(",")))),
        errors=errors,  # type: ignore[arg-type]
        population=population,  # type: ignore[arg-type]
        group=group,
    )
    with opened_pair(a, b, terms, labels) as opened:
        runs = opened.runs
        _check(runs, guard, mistakes, allow_changed=allow_changed)
        pairs = _pairs(runs, variant, variants)
        decisions = _decisions(runs, pairs)
        explain(opened.before, opened.after, decisions)
        superfluous = runs.dominated(pairs)
        warn_of_same_run(opened, a, pairs)
    _print(decisions, (str(a), str(b)), superfluous, as_json)
    if plot is not None:
        from evalwright.cli.screen import write_plot
        from evalwright.reports.pictures.decision import decision_svg

        write_plot(plot, decision_svg(decisions))
    return _code(decisions)


def _check(runs: TwoRuns, guard: str | None, earlier: AllMistakes, *, allow_changed: bool) -> None:
    """Take the guards into the terms; what is wrong is added to the mistakes of the runs, as are `earlier` ones."""
    with runs.mistakes:
        earlier.refuse()
    if not allow_changed:
        with runs.mistakes:
            runs.refuse_changed(cases=True)
    with runs.mistakes:
        runs.terms = _with_guards(runs, guard)


def _with_guards(runs: TwoRuns, guard: str | None) -> Terms:
    import msgspec

    from evalwright.decisions.terms import guards_of

    names = {name for side in runs.b.values() for name in side.scores}
    return msgspec.structs.replace(runs.terms, guards=guards_of(guard, sorted(names)) if guard else ())


def _pairs(runs: TwoRuns, variant: str | None, variants: str | None) -> list[tuple[str, str]]:
    """The variants to decide. Raises InputError with all mistakes that were made."""
    from evalwright.decisions.runs import pairs_of

    with runs.mistakes:
        pairs = pairs_of(runs, variant, variants)
        for pair in pairs:
            with runs.mistakes:
                runs.refuse_strangers(*pair)
    runs.mistakes.refuse()
    return pairs


def _decisions(runs: TwoRuns, pairs: Sequence[tuple[str, str]]) -> list[Decision]:
    """Decide about several pairs of variants together."""
    import msgspec

    runs.terms = msgspec.structs.replace(runs.terms, family=len(pairs))
    return [runs.decision(before, after) for before, after in pairs]


def _print(
    decisions: Sequence[Decision], runs: tuple[str, str], superfluous: Mapping[str, Sequence[str]], as_json: bool
) -> None:
    import msgspec

    from evalwright.cli.screen import print_out, screen_paint
    from evalwright.reports.decision import decision_lines
    from evalwright.reports.decision_words import dominated_lines

    if as_json:
        together = {
            "schema_version": "1.0",
            "decisions": decisions,
            "exit_code": _code(decisions),
            "dominated": superfluous,
        }
        print_out([msgspec.json.encode(decisions[0] if len(decisions) == 1 else together).decode()])
        return
    paint = screen_paint()
    several = len(decisions) > 1
    lines = [
        line for decision in decisions for line in ["", *decision_lines(decision, paint, runs=runs, titled=several)]
    ][1:]
    print_out([*lines, *dominated_lines(superfluous, paint.columns)])


def _code(decisions: Sequence[Decision]) -> int:
    codes = {decision.exit_code for decision in decisions}
    return 1 if 1 in codes else 3 if 3 in codes else 0
