"""Two stored runs, opened and counted for a command that compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from evalwright.cli.usage import PathParam
from evalwright.errors import AllMistakes

if TYPE_CHECKING:
    from evalwright.decisions.comparison import Regression
    from evalwright.decisions.runs import TwoRuns
    from evalwright.decisions.terms import Terms
    from evalwright.model.plan import Plan
    from evalwright.model.protocols import RunReader
    from evalwright.run.locations import Place

__all__ = ["OpenedPair", "opened_pair", "pair_options", "regression_code", "warn_of_same_run"]

F = TypeVar("F", bound=Callable[..., Any])


class OpenedPair(NamedTuple):
    """Both runs while they are open."""

    before: RunReader
    after: RunReader
    plan_before: Plan
    plan: Plan
    runs: TwoRuns


@contextmanager
def opened_pair(a: Path | Place, b: Path | Place, terms: Terms, labels: Path | None = None) -> Iterator[OpenedPair]:
    """Open run A and run B; damage in them is reported on standard error. `labels` is a file of human labels.

    What is wrong with the terms or labels is among the mistakes of the runs, to be reported with others.
    """
    from evalwright.cli.screen import print_damage
    from evalwright.decisions.runs import two_runs
    from evalwright.run.judged_pairs import judges_of_runs
    from evalwright.run.stored_run import open_run

    mistakes = AllMistakes()
    sides: list[tuple[RunReader, Plan]] = []
    with ExitStack() as stack:
        for place in (a, b):
            with mistakes:
                reader, plan = open_run(place)
                sides.append((stack.enter_context(closing(reader)), plan))
        mistakes.refuse()
        (reader_a, plan_a), (reader_b, plan_b) = sides
        runs = two_runs(reader_a, plan_a, reader_b, plan_b, terms)
        with runs.mistakes:
            runs.know(*judges_of_runs(reader_a, plan_a, reader_b, plan_b, labels))
        yield OpenedPair(runs.before, reader_b, plan_a, plan_b, runs)
        for reader in (reader_a, reader_b):
            print_damage(reader)


def warn_of_same_run(opened: OpenedPair, a: object, pairs: Iterable[tuple[str, str]]) -> None:
    """Warn on standard error if run A is run B and one of the pairs compares a variant with itself."""
    from evalwright.cli.screen import warn

    if opened.before.location != opened.after.location or all(one != other for one, other in pairs):
        return
    first, *others = [variant.name for variant in opened.plan.variants]
    cure = "name the earlier one first and the later one second"
    if others:
        cure += f"; `evalwright decide {a} {a} --variants {first}:{others[0]}` compares its variants"
    warn([f"A and B are the same run, {a}: {cure}"])


def regression_code(tested: Sequence[Regression], otherwise: int) -> int:
    """The exit code of `--fail-on-regression`. Means of scores, which the report's verdict is not about, are named."""
    from evalwright.cli.screen import warn
    from evalwright.decisions.sides import PASS_RATE
    from evalwright.reports.decision_words import change_of

    outcomes = {True: "worse beyond noise", None: "not known whether it is worse"}
    warn(
        f"{decision.variant_b}: mean score of {decision.metric}: {outcomes[is_worse]}, {change_of(decision)}"
        for decision, is_worse in tested
        if decision.metric != PASS_RATE and is_worse is not False
    )
    found = {one.is_worse for one in tested}
    # One certain regression decides, whatever is left open elsewhere.
    return 1 if True in found else 3 if None in found else otherwise


def pair_options(command: F) -> F:
    """Options of commands that compare the cases of two runs."""
    labels = click.option(
        "--labels",
        type=PathParam(dir_okay=False),
        metavar="FILE",
        help="Human labels of answers of both runs (default: those kept by `calibrate`); column run: A or B.",
    )
    group = click.option("--group", metavar="KEY", help="Group cases by this metadata key; `none`: no groups.")
    return group(labels(command))
