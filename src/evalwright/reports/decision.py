"""A decision on a terminal: the verdict first, then its certainty."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from evalwright.decisions.sides import PASS_RATE
from evalwright.errors import counted
from evalwright.model.calibration import REFUSALS
from evalwright.model.decision import Decision, FailureCluster, GuardPart, SideRate, SlicePart
from evalwright.reports import numbers
from evalwright.reports.decision_words import (
    WORDS,
    amount,
    bare,
    errors_line,
    missing_words,
    shown_ends,
    units_line,
    with_ends,
)
from evalwright.reports.intervals import ForestRow, interval_line
from evalwright.reports.next_step import next_step
from evalwright.reports.text import Paint, one_line, shortened

__all__ = ["decision_lines", "forest_of", "reason_lines"]

_STYLES = {"ship": "pass", "dont": "fail", "undecided": "borderline"}
_SHOWN = 3
_MARKED = 0.1
"""The share of marked slices or evaluators that is expected not to have changed."""
_WIDTH = 80


def decision_lines(
    decision: Decision, paint: Paint, *, runs: tuple[str, str] | None = None, titled: bool = False
) -> list[str]:
    """A decision on a terminal: verdict, estimate, interval and units first; lines without content are left out.

    `runs` are the names of run A and run B, where no other line says them.
    """
    columns = max(40, min(paint.columns or _WIDTH, _WIDTH))
    lines = [*_claims(decision, columns), *_rates(decision, columns), *_errors(decision), *_judge(decision)]
    lines += [
        *_slices(decision, columns),
        *_guards(decision, columns),
        *_evaluators(decision),
        *_changed_lines(decision),
    ]
    lines += reason_lines(decision.clusters, columns)
    body = [*_picture(decision, columns), *(row for line in lines if line for row in _wrapped_lines(line, columns))]
    title = _wrapped_lines(_title(decision), columns) if titled else []
    warnings = [row for line in decision.warnings for row in _wrapped_lines(f"warning: {one_line(line)}", columns)]
    head = [*_head(decision, paint, columns), *_sides(decision, runs, columns)]
    step = next_step(decision)
    onward = [] if step is None else _wrapped_lines(f"next: {step}", columns)
    return [*title, *head, *body, *warnings, *onward]


def _sides(decision: Decision, runs: tuple[str, str] | None, columns: int) -> list[str]:
    """Which variant A and B are, and of which run; nothing if both are one variant and no runs are named."""
    variants = decision.variant_a, decision.variant_b
    if runs is None and variants[0] == variants[1]:
        return []
    of = ("", "") if runs is None else tuple(f" in {one_line(run)}" for run in runs)
    sides = zip("AB", variants, of, strict=True)
    return [shortened(f"  {label:<10} {one_line(variant)}{run}", columns) for label, variant, run in sides]


def _picture(decision: Decision, columns: int) -> list[str]:
    """The interval as a line, with `│` at 0 and `┆` at the margin."""
    row = _row("", decision.difference, decision.ci)
    points = decision.metric == PASS_RATE
    return [] if row is None else ["  " + interval_line(row, columns - 2, margin=decision.margin, points=points)]


def forest_of(decision: Decision) -> list[ForestRow]:
    """The difference, the difference by human labels, evaluators, slices: a row for each that has an interval."""
    points = decision.metric == PASS_RATE
    name = "pass rate" if points else decision.metric
    rows = [_row(name, decision.difference, decision.ci, strong=True)]
    judge = decision.judge
    if judge is not None:
        rows.append(_row(f"{judge.evaluator}, {judge.method}", judge.difference, judge.ci))
    if points:  # pass rates even of evaluators with scores: other units would not fit the axis
        evaluators = decision.evaluators if len(decision.evaluators) > 1 else []
        rows += [_row(evaluator.name, evaluator.rate_difference, evaluator.rate_ci) for evaluator in evaluators]
    rows += [_row(f"{part.key}={part.value}", part.difference, part.ci) for part in decision.slices]
    return [row for row in rows if row is not None]


def _row(
    label: str, value: float | None, ends: tuple[float, float] | None, *, strong: bool = False
) -> ForestRow | None:
    return None if value is None or ends is None else ForestRow(label, value, *ends, strong=strong)


def _wrapped_lines(line: str, columns: int) -> list[str]:
    """A line in `columns`, its continuation below its text."""
    return wrap(line, columns, subsequent_indent=" " * 13, break_on_hyphens=False) or [line]


def _head(decision: Decision, paint: Paint, columns: int) -> list[str]:
    words = WORDS[decision.verdict]
    if decision.verdict == "ship" and decision.ci is not None:
        low, high = shown_ends(decision.readings)
        words += ", better" if low > 0 else ", but worse, by less than the margin" if high < 0 else ""
    if because := _because(decision):
        words += f" ({', '.join(because)})"
    change = f"B − A = {with_ends(decision.difference, decision.ci, decision.metric, decision.margin)}"
    units = units_line(decision)
    left = f"{words}  {change}"
    gap = columns - len(left) - len(units)
    style = _STYLES[decision.verdict]
    if len(left) > columns:
        head, *rest = _wrapped_lines(words, columns)
        return [paint(head, style), *rest, f"  {change}", f"  {units}"]
    coloured = left.replace(words, paint(words, style), 1)
    return [coloured + " " * gap + units] if gap > 1 else [coloured, f"  {units}"]


def _because(decision: Decision) -> list[str]:
    """The reasons for the verdict that the interval does not show."""
    if decision.verdict == "dont":
        broken = [f"guard {one_line(guard.name, 24)}" for guard in decision.guards if guard.state == "broken"]
        return [*broken, *(one_line(reason, 40) for reason in decision.reasons)]
    return [] if decision.reasons == ["data"] else decision.reasons


def _claims(decision: Decision, columns: int) -> list[str]:
    """The claims that were tested and their outcome, each with its p."""
    if decision.ci is None:
        return ["  no case was judged in both runs"]
    level = decision.alpha / decision.family
    parts = [f"better   {_outcome(decision, 0.0, 'worse')} (p {_p(decision.p_better, level)})"]
    if decision.margin:
        state, limit = _outcome(decision, -decision.margin, "refuted"), amount(decision.margin, decision.metric)
        parts.insert(0, f"not worse than −{limit}   {state} (p {_p(decision.p_margin, level)})")
    return _side_by_side([f"  {parts[0]}", *parts[1:]], columns, "  ", gap=7)


def _outcome(decision: Decision, limit: float, refuted: str) -> str:
    """Whether the difference is shown to be above the limit; open where missing verdicts could turn that."""
    readings, errors = decision.readings, decision.errors
    outcomes = ["shown" if low > limit else refuted if high < limit else "not shown" for low, high in readings]
    strictly_open = errors.counting == "strict" and not errors.same_verdict
    if outcomes[0] != "not shown" and (strictly_open or len(set(outcomes)) > 1):
        return f"open: {missing_words(errors)} could turn it"
    return outcomes[0]


def _p(value: float | None, level: float) -> str:
    """A p-value, in as many digits as it takes not to look as if it were on the other side of the level."""
    if value is None:
        return "–"
    digits = numbers.digits_apart(value, [level], 2 if value >= 0.01 else 3)
    return "< .001" if value < min(0.001, level) else f"= {value:.{digits}f}".replace("= 0.", "= .")


def _rates(decision: Decision, columns: int) -> list[str]:
    name = "pass rate" if decision.metric == PASS_RATE else one_line(decision.metric, 20)
    sides = "   ".join(f"{label} {_rate(side, decision)}" for label, side in (("A", decision.a), ("B", decision.b)))
    terms = [] if decision.metric == PASS_RATE else ["score per case"]
    terms += [f"alpha {decision.alpha:g}".replace("0.", ".")]
    terms += [f"family of {decision.family}"] if decision.family > 1 else []
    terms += [f"population {decision.population}"] if decision.population != "cases" else []
    terms += [f"errors {decision.errors.counting}"] if decision.errors.counting != "exclude" else []
    terms += [f"group {one_line(decision.group, 20)}"] if decision.group else []
    message = ", ".join([*terms, decision.method or "no test"])
    left = f"  {name:<10} {sides}"
    gap = columns - len(left) - len(message)
    return [left + " " * gap + message] if gap > 2 else [left, " " * 13 + message]


def _rate(side: SideRate, decision: Decision) -> str:
    """Of all cases that the side judged; their number says why rates need not differ by the difference of pairs."""
    if side.rate is None:
        return "no case judged"
    number = "" if side.n == decision.n else f" (n={side.n:,})"
    if decision.metric == PASS_RATE:
        value = numbers.percent(side.rate).replace("%", " %")
        ends = [] if side.ci is None else [*numbers.rate_ends(side.ci)]
    elif side.ci is None:
        value, ends = numbers.score(side.rate), []
    else:
        value, *ends = (f"{x:.{numbers.score_digits(side.ci)}f}" for x in (side.rate, *side.ci))
    return f"{value} [{', '.join(ends)}]{number}" if ends else f"{value}{number}"


def _errors(decision: Decision) -> list[str]:
    errors, metric = decision.errors, decision.metric
    if not (text := errors_line(decision)):
        return []
    low, high = (bare(end, metric) for end in (errors.lowest, errors.highest))
    share = with_ends(errors.share_difference, errors.ci, PASS_RATE)
    span = "" if low == high else f"; B − A from {low} to {high}, whatever they would have been"
    return [
        f"  errors     {text}",
        f"  error rate {share}{span}",
    ]


def _judge(decision: Decision) -> list[str]:
    judge = decision.judge
    if judge is None:
        return []
    shown = with_ends(judge.difference, judge.ci, PASS_RATE, decision.margin)
    why = f" (not powered: {REFUSALS[judge.refused]})" if judge.refused in REFUSALS else ""
    return [f"  judge      {counted(judge.labels, 'label')}: {judge.method or 'not corrected'} {shown}{why}"]


def _slices(decision: Decision, columns: int) -> list[str]:
    """The slices that changed beyond noise, and how many others there are."""
    if not decision.slices:
        return []
    alpha = decision.alpha / decision.family
    shown = [part for part in decision.slices if part.p_holm is not None and part.p_holm <= alpha]
    marked = [part for part in decision.slices if part not in shown and part.q is not None and part.q <= _MARKED]
    strong = [(part, f"Holm p {_p(part.p_holm, alpha)}") for part in shown]
    notable = [(part, f"q {_p(part.q, _MARKED)}") for part in marked]
    parts = [f"{_slice(part, decision.metric)} ({p}, {counted(part.n, 'case')})" for part, p in [*strong, *notable]]
    rest = len(decision.slices) - len(shown) - len(marked)
    parts += [f"{counted(rest, 'other' if parts else 'slice')}: nothing shown"] if rest else []
    return _side_by_side([f"  slices     {parts[0]}", *parts[1:]], columns, " " * 13)


def _side_by_side(parts: Sequence[str], columns: int, indent: str, *, gap: int = 4) -> list[str]:
    """Side by side if they fit, else below each other."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + gap + len(part) <= columns:
            lines[-1] += " " * gap + part
        else:
            lines.append(f"{indent if lines else ''}{part}")
    return lines


def _slice(part: SlicePart, metric: str) -> str:
    return f"{one_line(part.key, 20)}={one_line(part.value, 20)} {with_ends(part.difference, part.ci, metric)}"


def _guards(decision: Decision, columns: int) -> list[str]:
    parts = [f"{_guard_name(guard.name)} {_guard(guard)}" for guard in decision.guards]
    return _side_by_side([f"  {part}" for part in parts[:1]] + parts[1:], columns, "  ")


def _guard_name(name: str) -> str:
    measure, _, quantile = name.partition("_p")
    return f"{f'p{quantile} {measure}' if quantile.isdigit() else one_line(name, 24):<10}"


def _guard(guard: GuardPart) -> str:
    ratio = not guard.name.startswith("evaluator:")
    limit = f"{100 * (guard.limit - 1):+,.6g} %" if ratio else f"{100 * guard.limit:+.6g} pp"
    state = f"{guard.state} ({limit.replace('-', '−')}){f': {guard.reason}' if guard.reason else ''}"
    if guard.value is None or guard.ci is None:
        return state
    if not ratio:
        return f"{with_ends(guard.value, guard.ci, PASS_RATE, -guard.limit)}  {state}"
    changes = guard.ci[0] - 1, guard.ci[1] - 1
    low, high = numbers.ends_apart(changes, 0, 1 - guard.limit, 100)
    return f"{numbers.signed(100 * (guard.value - 1), 0)} % [{low}, {high}]  {state}"


def _evaluators(decision: Decision) -> list[str]:
    """Evaluators that changed, with the share of such lines that is expected to be noise, if there are several: a
    single one repeats the pass rate."""
    evaluators = (
        [evaluator for evaluator in decision.evaluators if evaluator.q is not None and evaluator.q <= _MARKED]
        if len(decision.evaluators) > 1
        else []
    )
    changes = [
        (part, with_ends(part.difference, part.ci, "score" if part.scored else PASS_RATE)) for part in evaluators
    ]
    return [f"  evaluator  {one_line(part.name, 30)} {text} (q {_p(part.q, _MARKED)})" for part, text in changes]


def _changed_lines(decision: Decision) -> list[str]:
    changed = decision.changed
    if not changed.flipped:
        return []
    if changed.flipped_expected is None:
        ways = f"{len(changed.worse):,} worse, {len(changed.better):,} better"
        return [f"  changed    {changed.flipped:,} flipped ({ways})"]
    flipped = f"{changed.flipped:,} flipped, at least {changed.flipped_expected:.0f} expected"
    if changed.too_few_trials:
        return [f"  changed    {flipped} of an unchanged system; trials too few to tell which"]
    worse, better = set(changed.worse), set(changed.better)
    beyond = [change.case_id for change in changed.beyond_noise]
    ways = f"{sum(c in worse for c in beyond):,} worse, {sum(c in better for c in beyond):,} better"
    return [f"  changed    {len(beyond):,} of {decision.n:,} beyond noise: {ways}; {flipped}"]


def reason_lines(clusters: Sequence[FailureCluster], columns: int) -> list[str]:
    """The reasons of failures and errors that B has more often than A, and those that it has less often."""
    worse = [cluster for cluster in clusters if cluster.b > cluster.a]
    better = sorted(
        (cluster for cluster in clusters if cluster.a > cluster.b), key=lambda cluster: cluster.b - cluster.a
    )
    lines = []
    for title, listed in (("why worse", worse), ("why better", better)):
        parts = [_reason(cluster) for cluster in listed[:_SHOWN]]
        lines += _side_by_side([f"  {title:<10} {parts[0]}", *parts[1:]], columns, " " * 13) if parts else []
    return lines


def _reason(cluster: FailureCluster) -> str:
    mark = " (new)" if not cluster.a else " (gone)" if not cluster.b else ""
    if not mark and cluster.gained and cluster.lost:
        mark = f" ({len(cluster.gained):,} gained, {len(cluster.lost):,} lost)"
    return f"{abs(cluster.b - cluster.a):,} × {one_line(cluster.signature, 60 - len(mark))}{mark}"


def _title(decision: Decision) -> str:
    """The variants, and the claim about them."""
    metric = "" if decision.metric == PASS_RATE else f"{one_line(decision.metric, 20)} "
    claim_text = f"not worse than −{amount(decision.margin, decision.metric)}" if decision.margin else "better"
    claim_text = "better" if decision.better else claim_text
    return f"{one_line(decision.variant_a, 30)} → {one_line(decision.variant_b, 30)}: {metric}{claim_text}"
