"""A judge's error rates and corrected pass rates from a balanced sample of labels, by weighting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evalwright.decisions.judge_bias import UnitOf
from evalwright.errors import counted
from evalwright.model.calibration import CorrectedRate, JudgeCalibration, Share
from evalwright.model.facts import CellKey
from evalwright.scoring.judged_answers import Judgement, verdicts_by_variant
from evalwright.statistics.raters import agreement_binary
from evalwright.statistics.rates import rate_with_design_effect
from evalwright.statistics.strata import StratifiedRates, Stratum, WeightedRate, stratified_rates

__all__ = ["WeightedLabels", "weigh"]

_WEIGHED = "labels are of a balanced sample: the corrected rate weighs them"
_WORDS = {True: "passed", False: "failed"}


class WeightedLabels(NamedTuple):
    """The answers of each variant, in those that the judge passes and those that it fails, with their labels."""

    strata: Mapping[str, Sequence[Stratum]]
    rates: list[CorrectedRate]
    all: StratifiedRates | None
    """None if a stratum of any variant has no labels."""

    def measure(self, result: JudgeCalibration) -> None:
        """Fill in accuracy, TPR, TNR, kappa and AC1. Kappa has no interval: its usual one is for a random sample."""
        if self.all is None:
            return
        parts = [stratum for strata in self.strata.values() for stratum in strata]
        human = [label for stratum in parts for label in stratum.labels]
        result.accuracy = _share(self.all.accuracy, len(human))
        result.tpr = _share(self.all.tpr, sum(human))
        result.tnr = _share(self.all.tnr, len(human) - sum(human))
        counts = [sum(_stands_for(part, label) for part in parts if part.judge is judge) for label, judge in _CELLS]
        both = agreement_binary(*counts)
        result.cohen_kappa, result.gwet_ac1 = both.cohen_kappa, both.gwet_ac1

    def notes(self) -> list[str]:
        """What is weighted, and what cannot be."""
        notes = ["balanced sample: rates weigh each label by the number of answers for which it stands"]
        for variant, strata in self.strata.items():
            for part in strata:
                if part.size and not part.labels:
                    which = f"{counted(part.size, 'answer')} that the evaluator {_WORDS[part.judge]}"
                    notes.append(f"{variant}: none of {which} is labelled: its rate cannot be corrected")
        return notes


_CELLS = (True, True), (False, True), (True, False), (False, False)
"""Label and verdict of true passes, false passes, false failures and true failures."""


def weigh(judgements: Mapping[CellKey, Judgement], human: Mapping[CellKey, bool], unit: UnitOf) -> WeightedLabels:
    """Weigh the labels `human` of some of the answers that an evaluator judged."""
    judged = verdicts_by_variant(judgements)
    strata = {
        variant: [_stratum(verdict, of, human, unit) for verdict in (True, False)] for variant, of in judged.items()
    }
    units = len({unit(key) for of in judged.values() for key in of})
    whole = stratified_rates([part for parts in strata.values() for part in parts], units) if units else None
    rates = [_rate(variant, judged[variant], parts, unit) for variant, parts in strata.items()]
    return WeightedLabels(strata, rates, whole)


def _stratum(verdict: bool, judged: Mapping[CellKey, bool], human: Mapping[CellKey, bool], unit: UnitOf) -> Stratum:
    keys = [key for key, passed in judged.items() if passed is verdict]
    labelled = [key for key in keys if key in human]
    return Stratum(verdict, len(keys), [human[key] for key in labelled], [unit(key) for key in labelled])


def _rate(variant: str, judged: Mapping[CellKey, bool], strata: Sequence[Stratum], unit: UnitOf) -> CorrectedRate:
    units = [unit(key) for key in judged]
    raw = rate_with_design_effect([float(passed) for passed in judged.values()], units)
    rates = stratified_rates(strata, raw.effective_n if len({*units}) < len(judged) else len(judged))
    labels = sum(len(part.labels) for part in strata)
    share = Share(raw.rate, len(judged), raw.ci)
    if rates is None:
        return CorrectedRate(variant, share, labels, refused=_WEIGHED)
    return CorrectedRate(variant, share, labels, rates.passed.value, rates.passed.ci, refused=_WEIGHED)


def _share(rate: WeightedRate | None, n: int) -> Share:
    return Share(None, n) if rate is None else Share(rate.value, n, rate.ci)


def _stands_for(part: Stratum, label: bool) -> float:
    """The estimated number of answers of a stratum that have this label."""
    return part.size * sum(drawn is label for drawn in part.labels) / len(part.labels) if part.labels else 0.0
