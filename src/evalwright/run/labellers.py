"""Labels of several labellers for the same answers: the majority of each, and how far the labellers agree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import fsum

from msgspec import structs

from evalwright.errors import counted
from evalwright.importers.labels import LabelRow
from evalwright.model.calibration import BALANCED, Label
from evalwright.model.facts import CellKey
from evalwright.statistics.raters import krippendorff_alpha

__all__ = ["agreement_of", "label_by"]


def label_by(rows: Sequence[LabelRow], cell: CellKey, attempt: int) -> Label | None:
    """What most labellers say about an answer, with the mean of their scores; None for a tie."""
    passes = [row.passed for row in rows if row.passed is not None]
    scores = [row.score for row in rows if row.score is not None]
    if passes and 2 * sum(passes) == len(passes):
        return None
    passed = 2 * sum(passes) > len(passes) if passes else None
    score = fsum(scores) / len(scores) if scores else None
    # one labeller's random sample stays one, whatever else led others to the same answer
    drawn = next((row for row in rows if row.chosen in ("", "random")), None)
    drawn = drawn or next((row for row in rows if row.chosen == BALANCED), rows[0])
    found = Label(cell[0], rows[0].evaluator, *cell[1:], attempt, passed, score, drawn.chosen)
    return structs.replace(found, stratum=drawn.stratum, stratum_size=drawn.stratum_size)


def agreement_of(answers: Collection[Sequence[LabelRow]]) -> str:
    """How far labellers agree about the answers that several of them labelled, and what counts; empty without any."""
    shared = [{row.labeller: _label_value(row) for row in rows} for rows in answers if len(rows) > 1]
    if not shared:
        return ""
    names = dict.fromkeys(name for labels in shared for name in labels)
    same = sum(len(set(labels.values())) == 1 for labels in shared)
    alpha = krippendorff_alpha([[labels.get(name) for labels in shared] for name in names])
    verdicts = all(isinstance(value, bool) for labels in shared for value in labels.values())
    value = alpha.nominal if verdicts else alpha.interval
    shown = "" if value is None else f", Krippendorff's alpha {value:.2f}"
    ties = sum(label_by(rows, ("", "", 0), 1) is None for rows in answers)
    left_out = f"; {counted(ties, 'tie')} left out" if ties else ""
    found = f"{counted(len(names), 'labeller')}: the same label for {same:,} of {counted(len(shared), 'answer')}{shown}"
    return f"{found}; the majority counts, or the mean of scores{left_out}"


def _label_value(row: LabelRow) -> bool | float | None:
    return row.score if row.passed is None else row.passed
