"""Which labels of an evaluator estimates may use: those of answers that were drawn by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from evalwright.errors import counted
from evalwright.model.calibration import Label
from evalwright.model.facts import CellKey
from evalwright.scoring.judged_answers import JudgedAnswers, Judgement

__all__ = ["LabelSample", "cell_of", "label_sample"]


class LabelSample(NamedTuple):
    """The labels of one evaluator that can be used, and how many were left out and why."""

    labels: list[Label]
    balanced: bool
    """Some labels are of a balanced sample: each one stands for as many answers of its variant and verdict as there are
    for one label. Labels of random samples are drawn by chance within these strata too."""
    superseded: int
    """Of answers that a later attempt replaced."""
    chosen_by_results: int
    outdated: int
    """Of balanced samples of other answers, or by other verdicts, than the run now has: their weights are not known."""

    def left_out(self) -> list[str]:
        """The labels that are missing for a reason that a user can mend."""
        if not self.outdated:
            return []
        return [
            f"{counted(self.outdated, 'label')} of a balanced sample left out: answers or verdicts have changed since "
            "it was drawn; label a new sample"
        ]


def label_sample(evaluator: str, labels: Iterable[Label], found: JudgedAnswers) -> LabelSample:
    """The labels of `evaluator` in `labels` that are a sample of the answers as they are now."""
    own_labels = [label for label in labels if label.evaluator == evaluator]
    judgements = found.judgements[evaluator]
    sizes = Counter((key[1], judgement.passed) for key, judgement in judgements.items())
    current = [x for x in own_labels if found.attempts.get(cell_of(x)) == x.attempt]
    drawn = [x for x in current if not x.chosen_by_results]
    balanced = [x for x in own_labels if x.balanced]
    # One label of another stratum shows that all weights are of another population.
    known = all(_is_in_stratum(x, judgements, sizes) for x in balanced) and {*balanced} <= {*current}
    usable = drawn if known else [x for x in drawn if not x.balanced]
    return LabelSample(
        usable,
        known and bool(balanced),
        len(own_labels) - len(current),
        len(current) - len(drawn),
        len(drawn) - len(usable),
    )


def cell_of(label: Label) -> CellKey:
    """The cell whose answer was labelled."""
    return label.case_id, label.variant_name, label.trial


def _is_in_stratum(label: Label, judgements: dict[CellKey, Judgement], sizes: Counter[tuple[str, bool | None]]) -> bool:
    """Whether the answer has the verdict with which it was drawn, and as many others of its variant have it."""
    judgement = judgements.get(cell_of(label))
    if judgement is None or judgement.passed is None:
        return False
    stratum = "pass" if judgement.passed else "fail"
    return (label.stratum, label.stratum_size) == (stratum, sizes[label.variant_name, judgement.passed])
