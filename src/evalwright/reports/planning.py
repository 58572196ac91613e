"""The cases and trials that a difference takes, for a terminal."""

from __future__ import annotations

from itertools import groupby
from textwrap import wrap

from evalwright.decisions.gate_planning import GatePlan
from evalwright.decisions.planning import PlanRow, SuitePlan
from evalwright.decisions.sides import PASS_RATE
from evalwright.errors import counted, money
from evalwright.reports import numbers
from evalwright.reports.decision_words import amount, with_ends
from evalwright.reports.intervals import spark
from evalwright.reports.text import one_line

__all__ = ["planned_claim", "planning_lines"]


def planning_lines(plan: SuitePlan, runs: str) -> list[str]:
    """What it takes to show a difference, and what a gate would do; `runs` are the runs behind the estimates."""
    parts = [_difference(plan, runs) if plan.rows else [], _gate(plan.gate, plan.suite) if plan.gate else []]
    parts.append([line for note in plan.notes for line in _wrapped(f"note: {one_line(note)}")])
    return [line for part in parts if part for line in ["", *part]][1:]


def _wrapped(line: str) -> list[str]:
    return wrap(line, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _difference(plan: SuitePlan, runs: str) -> list[str]:
    """A table for each assumption: cases, dollars and minutes of one run, and what the suite shows as it is."""
    cost = "" if plan.cell_usd is None else f", ${plan.cell_usd:.3g} a cell"
    source = f"{cost}, from {runs}" if runs else ""
    level = f"{plan.alpha:g}".replace("0.", ".")
    title = (
        f"To show {planned_claim(plan)} at alpha {level}: {one_line(plan.suite, 30)}, "
        f"{counted(plan.cases, 'case')}{source}"
    )
    lines = _wrapped(title)
    if not runs:
        lines += ["  how many cases pass in only one of two runs is assumed; --from A B learns it"]
    for assumed, found in groupby(plan.rows, key=lambda row: row.assumed):
        rows = list(found)
        lines += ["", f"  {assumed}", _heading(rows[0], plan), *(_row(row, plan) for row in rows)]
        lines += [line for row in rows if row.curve for line in (_curve(row), *_range(row))]
    if plan.repeats is not None:
        lines += ["", f"{plan.repeats:.0%} of the variance of the run's rate is trials that contradict each other"]
    lines += _reached(plan)
    unpaired = next((row.unpaired for row in plan.rows if row.unpaired), None)
    if unpaired is not None:
        lines += ["", f"the same cases on both sides; with different ones it would take {unpaired:,} a side"]
    return lines


def planned_claim(plan: SuitePlan) -> str:
    """What is to be shown, and for a margin what is true then."""
    detect, score = amount(plan.detect or 0.0, plan.metric), plan.metric != PASS_RATE
    name = f"the mean score of {one_line(plan.metric, 20)}" if score else "B"
    if not plan.margin:
        return f"that {name} is {detect} higher" if score else detect
    truth = f"{detect} {'higher' if score else 'better'}" if plan.detect else "as good"
    return f"that {name} is not worse than −{amount(plan.margin, plan.metric)}, if it is {truth},"


def _reached(plan: SuitePlan) -> list[str]:
    """Whether the suite as it is has the power, with how many trials, and which assumption that rests on, if any."""
    power, enough = f"{100 * plan.power:g}% power", plan.trials_enough
    if plan.reached is None:
        held = [f"  {assumed}{_with_trials(plan, least)}" for assumed, least in enough.items() if least]
        return ["", f"the suite as it is reaches {power} only if this holds:", *held]
    if not plan.rows or None in enough.values():
        return ["", f"the suite as it is does not reach {power}"]
    return ["", f"the suite as it is reaches {power}{_with_trials(plan, max(map(int, filter(None, enough.values()))))}"]


def _with_trials(plan: SuitePlan, least: int) -> str:
    """Nothing if all numbers of trials that were planned are enough."""
    return f", with {counted(least, 'trial')} or more" if least > min(row.trials for row in plan.rows) else ""


def _curve(row: PlanRow) -> str:
    """The power as a line of blocks, for the only or the cheapest row."""
    least, most = row.curve[0][0], row.curve[-1][0]
    blocks, mark = spark([chance for _, chance in row.curve]), ", <- cheapest" if row.cheapest else ""
    return f"  power   {blocks}  from {least:,} to {most:,} cases × {row.trials}{mark}"


def _range(row: PlanRow) -> list[str]:
    """How unsure the runs leave the number of cases."""
    low, high = row.cases_range or (None, None)
    if low is None or high is None:
        return []
    return [f"  range   {low:,} to {high:,} cases × {row.trials} (95 % interval of how much cases vary)"]


def _gate(gate: GatePlan, suite: str) -> list[str]:
    level = f"{gate.alpha:g}".replace("0.", ".")
    lines = [
        f"A gate at_least {100 * gate.at_least:.6g}% at alpha {level}: {one_line(suite, 30)}, "
        f"{counted(gate.cases, 'case')}, one trial"
    ]
    if gate.passes_from is None:
        lines.append("  no result passes: there are too few cases")
    else:
        share = numbers.percent(gate.passes_from / gate.cases)
        lines.append(f"  passes from {gate.passes_from:,} of {gate.cases:,} ({share})")
        lines.append("  true rate  " + "".join(f"{numbers.percent(row.true_rate):>9}" for row in gate.rows))
        lines.append("  passes     " + "".join(f"{numbers.percent(row.passes):>9}" for row in gate.rows))
    for trial in gate.by_trials:
        least = "no rate passes" if trial.passes_from is None else f"from {numbers.percent(trial.passes_from)}"
        worth = f"worth about {counted(trial.effective_cases, 'case')}"
        lines.append(f"  with {counted(trial.trials, 'trial')}, as in the run ({worth}): {least}")
        lines.append("  passes     " + "".join(f"{numbers.percent(row.passes):>9}" for row in trial.rows))
    if gate.few_units:
        lines.append("  groups: too few of them differ in the run to say what the gate would do with them")
    elif not gate.by_trials:
        lines.append("  more trials: --from a run with trials says how much they add")
    bound = f"at most {numbers.percent(gate.failures_at_most)} fail ({100 * (1 - gate.alpha):g} % sure)"
    return [
        *lines,
        f"  0 of {gate.cases:,} failed would show: {bound}",
        f"  if every case must pass, and each does {numbers.percent(gate.case_passes)} of the time: a sound system",
        f"  fails in {numbers.percent(gate.all_must_pass_fails)} of runs; by the majority of 3 trials in "
        f"{numbers.percent(gate.majority_of_three_fails)}",
    ]


def _heading(row: PlanRow, plan: SuitePlan) -> str:
    needs = "".join(f"{f'{100 * need.power:g}% power':>11}" for need in row.needs)
    money = f"{'cost':>9}" if any(need.cost_usd is not None for need in row.needs) else ""
    time = f"{'minutes':>9}" if any(need.minutes is not None for need in row.needs) else ""
    return f"  trials{needs}{money}{time}  {'shown if B − A is' if plan.margin else 'this suite shows'}"


def _row(row: PlanRow, plan: SuitePlan) -> str:
    needs = "".join(f"{'–' if need.cases is None else f'{need.cases:,}':>11}" for need in row.needs)
    usual = next((need for need in row.needs if need.power == 0.8), row.needs[-1])
    spent = "" if usual.cost_usd is None else f"{money(usual.cost_usd):>9}"
    time = "" if usual.minutes is None else f"{usual.minutes:>9,.1f}"
    shows = "–" if row.detectable is None else with_ends(row.detectable, None, plan.metric)
    shows = shows if plan.margin else shows.replace("+", "±")
    return f"  {row.trials:>6}{needs}{spent}{time}  {shows:>16}{' <-' if row.cheapest else ''}"
