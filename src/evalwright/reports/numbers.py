"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from evalwright.errors import apart_from, counted
from evalwright.model.calibration import JudgeCalibration, Share
from evalwright.model.summary import EvaluatorRate, GateOutcome, GatePart, RunSummary, VariantDelta
from evalwright.reports.text import one_line

__all__ = [
    "agreement_figures",
    "change",
    "condition",
    "could_show",
    "dependence",
    "digits_apart",
    "duration",
    "ends_apart",
    "family_note",
    "interval",
    "mean",
    "met",
    "missing_cells",
    "outcome",
    "over_runs",
    "percent",
    "points",
    "probability",
    "rate_ends",
    "results",
    "score",
    "score_change",
    "score_digits",
    "share",
    "signed",
    "signed_duration",
]

REWARD_OF = "reward("
"""The prefix of the name of a mean reward."""
_NEARLY = {"100.0%": ">99.9%", "0.0%": "<0.1%"}
_ROUNDING = 1e-9
"""What sums of shares may lack of all, or have more than none."""
_MOST_NAMED = 6
"""Variants up to which each is said to show something else."""


def percent(rate: float) -> str:
    """Only all are `100.0%`, and only none are `0.0%`: nearly all are `>99.9%`, hardly any `<0.1%`."""
    text = f"{100 * rate:.1f}%"
    return _NEARLY.get(text, text) if _ROUNDING < rate < 1 - _ROUNDING else text


def share(found: Share) -> str:
    """A rate, or a dash if it is a rate of nothing."""
    return "–" if found.value is None else percent(found.value)


def interval(ends: tuple[float, float] | None) -> str:
    """A 95 % interval of a rate, `55.1–88.0%`; empty where there is none."""
    if not ends:
        return ""
    if ends[0] < 0:
        return f"{signed(100 * ends[0], 1)} to {signed(100 * ends[1], 1)} %"
    return "–".join(rate_ends(ends)) + "%"


def rate_ends(ends: tuple[float, float]) -> tuple[str, str]:
    """The ends of an interval of a rate in percent. Rounded, they still hold it: `>99.9` and `100.0`, `0.0` and
    `<0.1`."""
    low, high = (f"{100 * end:.1f}" for end in ends)
    return (
        ">99.9" if low == "100.0" and ends[0] < 1 - _ROUNDING else low,
        "<0.1" if high == "0.0" and ends[1] > _ROUNDING else high,
    )


def results(rate: EvaluatorRate) -> str:
    """The number of results, with the number of cases if those ran several times, or of groups of cases."""
    if rate.cases in (0, rate.n):
        return f"{rate.n:,}"
    if rate.grouped:
        return f"{counted(rate.n, 'result')} of {counted(rate.cases, 'group')}"
    return f"{rate.n:,} of {counted(rate.cases, 'case')}"


def agreement_figures(found: JudgeCalibration | None) -> str:
    """How often an evaluator agrees with human labels, or `uncalibrated`; empty for one that needs no labels."""
    if found is None:
        return ""
    if found.tpr is None or found.tnr is None:
        scored = 0 if found.scores is None else found.scores.n
        return f"calibrated (n={scored:,})" if scored else "uncalibrated"
    sample = "" if found.random_sample else ", no random sample"
    return f"TPR {share(found.tpr)}, TNR {share(found.tnr)} (n={found.tpr.n + found.tnr.n:,}{sample})"


def condition(part: GatePart) -> str:
    """The measured value of one gate condition and its threshold: `avg_score 0.82, at least 0.9 (24 scores)`."""
    if part.unit:
        return _claim_text(part)
    ends, measured = part.ci or part.ci95, "not measured"
    if part.value is not None:
        limit = math.nan if part.threshold is None else part.threshold
        measured = apart_from(limit, part.value, 6 if ends is None else 4)
        measured += "" if ends is None else f" [{ends[0]:.4g}, {ends[1]:.4g}]"
    wanted = f", {_LIMITS.get(part.op, part.op)} {part.threshold:.15g}" if part.threshold is not None else ""
    unit = "case" if part.ci is not None or part.undecided else "score"
    why = f"; no interval: {part.interval_reason}" if part.interval_reason else ""
    return f"{part.name} {measured}{wanted} ({counted(part.n, unit)}{why})"


_LIMITS = {"gt": "above", "gte": "at least", "lt": "below", "lte": "at most", "eq": "exactly"}


def _claim_text(part: GatePart) -> str:
    """`pass_rate of v not worse than baseline: −12.0 pp [−21.8, −2.2], above −2 pp (54 cases)`."""
    values = [] if part.value is None else [part.value, *(part.ci or ())]
    limits = [] if part.threshold is None else [part.threshold]
    shown, unit = _in_unit(values, part.unit, [*limits, 0, 1] if part.unit == "rate" else limits)
    ends = f" [{', '.join(shown[1:])}]" if shown[1:] else ""
    measured = f"{shown[0]}{unit}{ends}" if shown else "not measured"
    wanted = ""
    if part.threshold is not None:
        limit, unit = _limit_in_unit(part.threshold, part.unit)
        wanted = f", {_LIMITS.get(part.op, part.op)} {limit}{unit}"
    why = f"; no interval: {part.interval_reason}" if part.interval_reason else ""
    of = f" ({counted(part.n, 'case')})" if part.n else ""
    return f"{part.name}: {measured}{wanted}{of}{why}"


def _in_unit(values: Sequence[float], unit: str, limits: Sequence[float]) -> tuple[list[str], str]:
    """Shares in percent, differences of them in points, ratios as a change in percent; each in as many digits as it
    takes to look on the side of each of the `limits` that it is on."""
    scaled, far = ([_scaled(value, unit) for value in some] for some in (values, limits))
    digits = [digits_apart(value, far, 1) for value in scaled]
    shown = [f"{x:.{n}f}" if unit == "rate" else signed(x, n) for x, n in zip(scaled, digits, strict=True)]
    return shown, _UNITS.get(unit, " pp")


def _limit_in_unit(limit: float, unit: str) -> tuple[str, str]:
    """A limit as it was written."""
    scaled = _scaled(limit, unit)
    text = f"{scaled:.6g}" if unit == "rate" else f"{scaled:+.6g}".replace("-", "−")
    return "0" if text == "+0" else text, _UNITS.get(unit, " pp")


_UNITS = {"rate": "%", "ratio": " %"}


def _scaled(value: float, unit: str) -> float:
    """In percent or points, without what the sum of shares may lack of a whole number."""
    return round(100 * (value - 1 if unit == "ratio" else value), 9)


def outcome(gate: GateOutcome) -> tuple[str, str]:
    """The outcome of a gate in one word, and its style."""
    if gate.tolerated:
        return "UNDECIDED, let pass", "borderline"
    if is_reward(gate):
        return ("not measured", "error") if gate.undecided else ("measured", "pass")
    return ("undecided", "error") if gate.undecided else ("passed", "pass") if gate.passed else ("failed", "fail")


def is_reward(gate: GateOutcome) -> bool:
    """Whether no condition is set on the values: a reward, which neither passes nor fails."""
    parts = gate.parts or [part for run in gate.runs for part in run.parts]
    return bool(parts) and all(part.name.startswith(REWARD_OF) for part in parts)


def met(part: GatePart) -> tuple[str, str]:
    """The outcome of one condition in one word, and its style."""
    if part.undecided and part.value is not None:
        return "open", "borderline"
    if part.name.startswith(REWARD_OF):
        return ("unknown", "error") if part.value is None else ("mean", "pass")
    return ("unknown", "error") if part.value is None else ("met", "pass") if part.passed else ("missed", "fail")


def over_runs(runs: Sequence[GateOutcome]) -> list[str]:
    """Mean and sample standard deviation of each gate condition over the runs."""
    import statistics  # few suites are run several times, and it takes longer to import than all else here

    lines: dict[str, None] = {}
    for parts in zip(*(run.parts for run in runs), strict=True):
        values = [part.value for part in parts if part.value is not None]
        if len(values) > 1:
            measured = f"{parts[0].name} {statistics.mean(values):g} ± {statistics.stdev(values):.3g}"
            lines[f"{measured}, mean and standard deviation of {len(values):,} runs"] = None
    return list(lines)


def points(delta: float, ends: tuple[float, float] | None = None, margin: float = 0.0) -> str:
    """A difference of rates in percentage points, with its interval where there is one: ends in as many digits as it
    takes to be on their side of 0 and of the loss that does not matter, or `[−2.0, …]` could be either side of −2."""
    if ends is None:
        return f"{signed(100 * delta, 1)} pp"
    return f"{signed(100 * delta, 1)} pp [{', '.join(ends_apart(ends, 1, margin, 100))}]"


def ends_apart(ends: tuple[float, float], digits: int, margin: float = 0.0, factor: float = 1.0) -> list[str]:
    """The ends of a difference times `factor`, in `digits` behind the point or in as many as tell them from 0 and from
    -`margin`."""
    scaled, limits = ([round(factor * value, 9) for value in some] for some in (ends, (0.0, -margin)))
    return [signed(end, digits_apart(end, limits, digits)) for end in scaled]


def score_change(delta: float, ends: tuple[float, float] | None = None, margin: float = 0.0) -> str:
    """A difference of scores, with its interval where there is one, as `points` does for rates."""
    digits = score_digits((0.0, delta) if ends is None else ends)
    change_text = signed(delta, digits)
    return change_text if ends is None else f"{change_text} [{', '.join(ends_apart(ends, digits, margin))}]"


def score_digits(ends: tuple[float, float]) -> int:
    """The digits behind the point, at least 3, in which the two ends of an interval of a score differ."""
    size = abs(ends[1] - ends[0])
    return min(_MOST_DIGITS, max(_SCORE_DIGITS, -math.floor(math.log10(size)))) if size else _SCORE_DIGITS


def digits_apart(value: float, limits: Sequence[float], least: int) -> int:
    """The digits behind the point, at least so many, in which a value looks on the side of each limit that it is on."""
    sides = [(value > limit, value < limit) for limit in limits]
    rounded = ((n, round(value, n)) for n in range(least, _MOST_DIGITS))
    return next((n for n, x in rounded if [(x > limit, x < limit) for limit in limits] == sides), _MOST_DIGITS)


_SCORE_DIGITS = 3
_MOST_DIGITS = 9
_LARGE = 1e9
"""From here on, digits behind the point say nothing, and those before it may be hundreds."""


def signed(value: float, digits: int) -> str:
    """A number with its sign; `0.0` if it rounds to zero."""
    text = f"{value:+.{digits}f}" if abs(value) < _LARGE else f"{value:+.6g}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", "−")


def score(value: float) -> str:
    """A score, which may be a number of any size."""
    if abs(value) >= _LARGE:
        return f"{value:.6g}"
    return f"{value:.{_SCORE_DIGITS}f}" if not value or abs(value) >= 10**-_SCORE_DIGITS / 2 else f"{value:.3g}"


def change(value: float) -> str:
    """A difference of numbers of any size, with its sign."""
    return f"{'−' if value < 0 else '+'}{abs(value):.6g}" if value else "0"


def duration(milliseconds: float) -> str:
    """`812 ms`, `3.21 s`, `45.0 s`, `12 min 05 s`."""
    seconds = milliseconds / 1000
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def signed_duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    sign = "−" if milliseconds < 0 else "+"
    return (sign if round(milliseconds) else "") + duration(abs(milliseconds))


def mean(text: str, n: int) -> str:
    """A mean and the number of values behind it."""
    return f"{text} (n={n:,})"


def dependence(summary: RunSummary) -> str:
    """How many cases belong together in conversations, which intervals allow for; empty if none do."""
    native = summary.native or {}
    if not (conversations := native.get("conversations")):
        return ""
    together = f"{counted(native['cases_in_conversations'], 'case')} of {counted(conversations, 'conversation')}"
    return f"{together}: not independent of each other, and the intervals allow for it"


def family_note(deltas: Sequence[VariantDelta]) -> str:
    """Below a table of comparisons: what its intervals and its two kinds of p hold for; empty for a single one."""
    adjusted = sum(delta.p_holm is not None for delta in deltas)
    return f"each interval and p is of one comparison alone; p (Holm) holds for all {adjusted}" if adjusted else ""


def could_show(summary: RunSummary, escape: Callable[[str, int], str] = one_line) -> str:
    """What a comparison with this run can show; empty if the run does not tell. `escape` gets a name and its most
    characters."""
    variants = summary.variants
    detectable = [(v.name, 100 * v.detectable) for v in variants if v.detectable is not None]
    if not detectable or summary.scored is True:  # no pass rate that could change
        return ""
    if len(variants) == 1:
        each = f"±{detectable[0][1]:.1f} pp"
    elif len(detectable) <= _MOST_NAMED:
        each = ", ".join(f"{escape(name, 30)} ±{size:.1f} pp" for name, size in detectable)
    else:
        sizes = [size for _, size in detectable]
        each = f"±{min(sizes):.1f} to ±{max(sizes):.1f} pp, depending on the variant"
    return f"the smallest change of the pass rate that this suite can show: {each} (80 % power, alpha .05)"


def missing_cells(summary: RunSummary) -> str:
    """That the numbers are about a part of the run: `partial: 40 of 100 cells not run`."""
    planned = counted(summary.cells_total + summary.cells_missing, "cell")
    return f"partial: {summary.cells_missing:,} of {planned} not run"


def probability(p: float | None, level: float = 0.05) -> str:
    """A p-value in three digits, or in as many as it takes not to look as if it were on the other side of the level."""
    if p is None:
        return ""
    return "<0.001" if p < min(0.001, level) else f"{p:.{digits_apart(p, [level], 3)}f}"
