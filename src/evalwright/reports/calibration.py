"""Agreement of evaluators with human labels, for a terminal."""

from __future__ import annotations

from evalwright.errors import counted
from evalwright.model.calibration import CalibrationReport, Confusion, JudgeCalibration
from evalwright.reports import numbers
from evalwright.reports.decision_columns import CORRECTED_RATE_COLUMNS
from evalwright.reports.table import Table
from evalwright.reports.terminal import table_lines
from evalwright.reports.text import Paint, one_line

__all__ = ["calibration_lines"]


def calibration_lines(report: CalibrationReport, paint: Paint) -> list[str]:
    """Every labelled evaluator: confusion, agreement, scores, flips, corrected pass rates."""
    return [line for evaluator in report.evaluators for line in ["", *_judge(evaluator, paint)]][1:]


def _judge(judge: JudgeCalibration, paint: Paint) -> list[str]:
    left_out = [
        f"{number:,} {why}"
        for number, why in (
            (judge.unjudged, "without a judge verdict"),
            (judge.superseded, "of superseded answers"),
            (judge.chosen_by_results, "of answers chosen by their results, left out"),
            (judge.outdated, "of an outdated sample, left out"),
        )
        if number
    ]
    labels = counted(judge.labels, "label") + "".join(f", {text}" for text in left_out)
    parts = [
        [paint(one_line(judge.evaluator, 60), "bold") + paint(f"  {labels}", "dim")],
        _confusion(judge.confusion, paint) if judge.confusion else [],
        _agreement_lines(judge, paint),
        _positions(judge, paint),
        table_lines(CORRECTED_RATE_COLUMNS, judge.rates, paint),
        [paint(f"  note: {one_line(note)}", "dim") for note in judge.notes],
    ]
    return [line for part in parts if part for line in ["", *part]][1:]


def _confusion(table: Confusion, paint: Paint) -> list[str]:
    shown = Table(("", ">judge: pass", ">judge: fail"))
    shown.add([("human: pass", "bold"), f"{table.true_pass:,}", f"{table.false_fail:,}"])
    shown.add([("human: fail", "bold"), f"{table.false_pass:,}", f"{table.true_fail:,}"])
    return shown.lines(paint)


def _agreement_lines(judge: JudgeCalibration, paint: Paint) -> list[str]:
    table = Table(("measure", ">value", ">95% interval", ">n"))
    for name, share in (
        ("accuracy", judge.accuracy),
        ("TPR (human passes found)", judge.tpr),
        ("TNR (human failures found)", judge.tnr),
    ):
        if share is not None:
            table.add([(name, "bold"), numbers.share(share), numbers.interval(share.ci95), f"{share.n:,}"])
    if judge.accuracy is not None:
        n = f"{judge.accuracy.n:,}"
        table.add([("Cohen's kappa", "bold"), _number(judge.cohen_kappa), _ends(judge.cohen_kappa_ci95), n])
        table.add([("Gwet's AC1", "bold"), _number(judge.gwet_ac1), "", n])
    if judge.scores is not None:
        for name, value in (
            ("scores: kappa, linear weights", judge.scores.kappa_linear),
            ("scores: kappa, quadratic weights", judge.scores.kappa_quadratic),
            ("scores: Krippendorff's alpha, ordinal", judge.scores.alpha_ordinal),
            ("scores: Krippendorff's alpha, interval", judge.scores.alpha_interval),
            ("scores: Spearman's rho", judge.scores.spearman),
        ):
            table.add([(name, "bold"), _number(value), "", f"{judge.scores.n:,}"])
        apart, ends = judge.scores.mean_difference, judge.scores.mean_difference_ci95
        table.add([("scores: mean of judge − human", "bold"), _number(apart), _ends(ends), f"{judge.scores.n:,}"])
    if judge.confidence is not None:
        n = f"{judge.confidence.n:,}"
        table.add([("score as chance of a pass: Brier", "bold"), _number(judge.confidence.brier), "", n])
        table.add([("  its calibration error", "bold"), _number(judge.confidence.calibration_error), "", n])
    if judge.length is not None and judge.length.slope is not None:
        ends = judge.length.ci95
        table.add(
            [("error, answer twice as long", "bold"), _number(judge.length.slope), _ends(ends), f"{judge.length.n:,}"]
        )
    _biases(judge, table)
    if judge.flips is not None:
        rate = judge.flips.rate
        table.add(
            [("flip rate (same answer)", "bold"), numbers.share(rate), numbers.interval(rate.ci95), f"{rate.n:,}"]
        )
    return table.lines(paint) if table.rows else []


def _biases(judge: JudgeCalibration, table: Table) -> None:
    """Rows for length at the same label, the judge's own maker, agreement with itself and within a panel."""
    if judge.length_at_label is not None and judge.length_at_label.slope is not None:
        length = judge.length_at_label
        name = "score, answer twice as long (same label)"
        table.add([(name, "bold"), _number(length.slope), _ends(length.ci95), f"{length.n:,}"])
    if judge.preference is not None and judge.preference.difference is not None:
        preference = judge.preference
        counts = f"{preference.own:,} / {preference.others:,}"
        table.add(
            [
                (f"error, own maker ({preference.maker}) − others", "bold"),
                _number(preference.difference),
                _ends(preference.ci95),
                counts,
            ]
        )
    shares = [(f"same each time: {one_line(each.model, 30)}", each.same) for each in judge.repeats]
    shares += [("panel: judges disagree", judge.panel)] if judge.panel is not None else []
    for name, share in shares:
        table.add([(name, "bold"), numbers.share(share), numbers.interval(share.ci95), f"{share.n:,}"])


def _positions(judge: JudgeCalibration, paint: Paint) -> list[str]:
    """How often the answer shown first won, and who is stronger, where answers were compared in both orders."""
    if not judge.position:
        return []
    table = Table(("against the reference", ">won", ">lost", ">tied", ">same in both orders", ">first won", ">p"))
    for bias in judge.position:
        first, same = ("–" if x is None else numbers.percent(x) for x in (bias.first_won, bias.consistency))
        counts = (f"{bias.wins:,}", f"{bias.losses:,}", f"{bias.ties:,}")
        table.add([(one_line(bias.variant, 30), "bold"), *counts, same, first, numbers.probability(bias.p)])
    ranks = [f"{one_line(strength.name, 30)} {numbers.signed(strength.elo, 0)}" for strength in judge.strengths]
    return [*table.lines(paint), *([f"  strength (Elo): {', '.join(ranks)}"] if ranks else [])]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    text = f"{value:.2f}"
    return text.replace("-", "" if float(text) == 0 else "−")


def _ends(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{_number(ends[0])} to {_number(ends[1])}"
