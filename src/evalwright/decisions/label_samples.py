"""Which labels of an evaluator estimates may use: those of answers that were drawn by chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalwright.errors import counted
from evalwright.model.calibration import Label
from evalwright.model.facts import CellKey
from evalwright.scoring.judged_answers import JudgedAnswers, Judgement
from evalwright.statistics.changes import fisher_exact
from evalwright.statistics.judges import effective_labels

__all__ = ["LabelSample", "cell_of", "label_sample"]

_SELDOM = 0.01
"""The chance that labels of a random sample are taken for none."""


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
    unlike: list[str]
    """What shows that the labelled answers of a variant are no random sample, so that they correct nothing."""

    def left_out(self) -> list[str]:
        """The labels that are missing for a reason that a user can mend."""
        if not self.outdated:
            return []
        return [
            f"{counted(self.outdated, 'label')} of a balanced sample left out: answers or verdicts have changed since "
            "it was drawn; label a new sample"
        ]


def label_sample(evaluator: str, labels: Iterable[Label], answers: JudgedAnswers) -> LabelSample:
    """The labels of `evaluator` in `labels` that are a sample of the answers as they are now."""
    own_labels = [label for label in labels if label.evaluator == evaluator]
    judgements = answers.judgements[evaluator]
    sizes = Counter((key[1], judgement.passed) for key, judgement in judgements.items())
    current = [x for x in own_labels if answers.attempts.get(cell_of(x)) == x.attempt]
    drawn = [x for x in current if not x.chosen_by_results]
    balanced = [x for x in own_labels if x.balanced]
    # One label of another stratum shows that all weights are of another population.
    known = all(_is_in_stratum(x, judgements, sizes) for x in balanced) and {*balanced} <= {*current}
    usable = drawn if known else [x for x in drawn if not x.balanced]
    weighted = known and bool(balanced)
    return LabelSample(
        usable,
        weighted,
        len(own_labels) - len(current),
        len(current) - len(drawn),
        len(drawn) - len(usable),
        [] if weighted else list(_unlike_others(usable, judgements, answers)),
    )


def _unlike_others(
    labels: Sequence[Label], judgements: Mapping[CellKey, Judgement], found: JudgedAnswers
) -> Iterator[str]:
    """The variants whose labelled answers got other verdicts from the evaluator than the rest: whoever labels mostly
    failures, for example, sees few of the passes that people share, and every estimate is about other answers."""
    labelled = {cell_of(x) for x in labels}
    for variant in dict.fromkeys(name for _, name, _ in labelled):
        of = {key: j.passed for key, j in judgements.items() if key[1] == variant and j.passed is not None}
        parts = [{key: passed for key, passed in of.items() if (key in labelled) is here} for here in (True, False)]
        counts = [effective_labels([*part.values()], [found.unit(key) for key in part]) for part in parts]
        (yes, no), (others_yes, others_no) = counts
        p = fisher_exact(round(yes), round(yes + no), round(others_yes), round(others_yes + others_no))
        if p <= _SELDOM:
            (n, passed), (others, others_passed) = ((len(part), sum(part.values())) for part in parts)
            yield (
                f"{variant}: the evaluator passes {passed:,} of {n:,} labelled answers, but {others_passed:,} of the "
                f"{others:,} others: fewer than 1 % of random samples are so unlike, and these labels correct nothing; "
                "label a random or a balanced sample"
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
