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
    return [line for found in report.evaluators for line in ["", *_judge(found, paint)]][1:]


def _judge(found: JudgeCalibration, paint: Paint) -> list[str]:
    left_out = [
        f"{number:,} {why}"
        for number, why in (
            (found.unjudged, "without a judge verdict"),
            (found.superseded, "of superseded answers"),
            (found.chosen_by_results, "of answers chosen by their results, left out"),
            (found.outdated, "of an outdated sample, left out"),
        )
        if number
    ]
    labels = counted(found.labels, "label") + "".join(f", {text}" for text in left_out)
    parts = [
        [paint(one_line(found.evaluator, 60), "bold") + paint(f"  {labels}", "dim")],
        _confusion(found.confusion, paint) if found.confusion else [],
        _agreement_lines(found, paint),
        _positions(found, paint),
        table_lines(CORRECTED_RATE_COLUMNS, found.rates, paint),
        [paint(f"  note: {one_line(note)}", "dim") for note in found.notes],
    ]
    return [line for part in parts if part for line in ["", *part]][1:]


def _confusion(table: Confusion, paint: Paint) -> list[str]:
    shown = Table(("", ">judge: pass", ">judge: fail"))
    shown.add([("human: pass", "bold"), f"{table.true_pass:,}", f"{table.false_fail:,}"])
    shown.add([("human: fail", "bold"), f"{table.false_pass:,}", f"{table.true_fail:,}"])
    return shown.lines(paint)


def _agreement_lines(found: JudgeCalibration, paint: Paint) -> list[str]:
    table = Table(("measure", ">value", ">95% interval", ">n"))
    for name, share in (
        ("accuracy", found.accuracy),
        ("TPR (human passes found)", found.tpr),
        ("TNR (human failures found)", found.tnr),
    ):
        if share is not None:
            table.add([(name, "bold"), numbers.share(share), numbers.interval(share.ci95), f"{share.n:,}"])
    if found.accuracy is not None:
        n = f"{found.accuracy.n:,}"
        table.add([("Cohen's kappa", "bold"), _number(found.cohen_kappa), _ends(found.cohen_kappa_ci95), n])
        table.add([("Gwet's AC1", "bold"), _number(found.gwet_ac1), "", n])
    if found.scores is not None:
        for name, value in (
            ("scores: kappa, linear weights", found.scores.kappa_linear),
            ("scores: kappa, quadratic weights", found.scores.kappa_quadratic),
            ("scores: Krippendorff's alpha, ordinal", found.scores.alpha_ordinal),
            ("scores: Krippendorff's alpha, interval", found.scores.alpha_interval),
            ("scores: Spearman's rho", found.scores.spearman),
        ):
            table.add([(name, "bold"), _number(value), "", f"{found.scores.n:,}"])
        apart, ends = found.scores.mean_difference, found.scores.mean_difference_ci95
        table.add([("scores: mean of judge − human", "bold"), _number(apart), _ends(ends), f"{found.scores.n:,}"])
    if found.confidence is not None:
        n = f"{found.confidence.n:,}"
        table.add([("score as chance of a pass: Brier", "bold"), _number(found.confidence.brier), "", n])
        table.add([("  its calibration error", "bold"), _number(found.confidence.calibration_error), "", n])
    if found.length is not None and found.length.slope is not None:
        ends = found.length.ci95
        table.add(
            [("error, answer twice as long", "bold"), _number(found.length.slope), _ends(ends), f"{found.length.n:,}"]
        )
    _biases(found, table)
    if found.flips is not None:
        rate = found.flips.rate
        table.add(
            [("flip rate (same answer)", "bold"), numbers.share(rate), numbers.interval(rate.ci95), f"{rate.n:,}"]
        )
    return table.lines(paint) if table.rows else []


def _biases(found: JudgeCalibration, table: Table) -> None:
    """Rows for length at the same label, the judge's own maker, agreement with itself and within a panel."""
    if found.length_at_label is not None and found.length_at_label.slope is not None:
        length = found.length_at_label
        name = "score, answer twice as long (same label)"
        table.add([(name, "bold"), _number(length.slope), _ends(length.ci95), f"{length.n:,}"])
    if found.preference is not None and found.preference.difference is not None:
        one = found.preference
        counts = f"{one.own:,} / {one.others:,}"
        table.add(
            [(f"error, own maker ({one.maker}) − others", "bold"), _number(one.difference), _ends(one.ci95), counts]
        )
    shares = [(f"same each time: {one_line(each.model, 30)}", each.same) for each in found.repeats]
    shares += [("panel: judges disagree", found.panel)] if found.panel is not None else []
    for name, share in shares:
        table.add([(name, "bold"), numbers.share(share), numbers.interval(share.ci95), f"{share.n:,}"])


def _positions(found: JudgeCalibration, paint: Paint) -> list[str]:
    """How often the answer shown first won, and who is stronger, where answers were compared in both orders."""
    if not found.position:
        return []
    table = Table(("against the reference", ">won", ">lost", ">tied", ">same in both orders", ">first won", ">p"))
    for one in found.position:
        first, same = ("–" if x is None else numbers.percent(x) for x in (one.first_won, one.consistency))
        counts = (f"{one.wins:,}", f"{one.losses:,}", f"{one.ties:,}")
        table.add([(one_line(one.variant, 30), "bold"), *counts, same, first, numbers.probability(one.p)])
    ranks = [f"{one_line(one.name, 30)} {numbers.signed(one.elo, 0)}" for one in found.strengths]
    return [*table.lines(paint), *([f"  strength (Elo): {', '.join(ranks)}"] if ranks else [])]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    text = f"{value:.2f}"
    return text.replace("-", "" if float(text) == 0 else "−")


def _ends(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{_number(ends[0])} to {_number(ends[1])}"
