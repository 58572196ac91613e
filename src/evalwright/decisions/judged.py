"""A decision as human raters would have made it: a judge's verdicts on both sides, corrected by labels of some."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from evalwright.decisions.label_samples import cell_of
from evalwright.decisions.pairing import Ground, Pairs, ValueRange
from evalwright.decisions.sides import PASS_RATE
from evalwright.model.calibration import Label
from evalwright.model.decision import DecisionVerdict, JudgePart
from evalwright.model.facts import CellKey
from evalwright.scoring.judged_answers import JudgedAnswers
from evalwright.statistics.judges import (
    LabelledUnits,
    corrected_difference,
    difference_of_rates,
    effective_labels,
    powered_rate,
)
from evalwright.statistics.rates import rate_with_design_effect
from evalwright.statistics.strata import Stratum, WeightedRate, stratified_rates
from evalwright.statistics.units import units_of

__all__ = ["JudgedCell", "JudgedPair", "judge_parts", "judged_cells"]

_OWN = 10
"""Labels of each kind that a side needs to be corrected by its own labels."""


class JudgedCell(NamedTuple):
    """One trial: the judge's verdict, and the human label if there is one."""

    judge: bool
    human: bool | None = None
    balanced: bool = False
    """Whether the label is of a balanced sample."""


Cells = Mapping[str, Sequence[JudgedCell]]
"""Judged trials by case."""


class JudgedPair(NamedTuple):
    """The verdicts of one judge on both sides."""

    evaluator: str
    a: Cells
    b: Cells

    def of(self, cases: Collection[str]) -> JudgedPair:
        """The same with only some of the cases."""
        return JudgedPair(self.evaluator, *({c: s[c] for c in s if c in cases} for s in (self.a, self.b)))

    def balanced(self) -> bool:
        """Whether labels are of a balanced sample."""
        return any(c.balanced for side in (self.a, self.b) for cells in side.values() for c in cells)

    def labels(self) -> int:
        """How many of the verdicts have a human label."""
        return sum(cell.human is not None for side in (self.a, self.b) for cells in side.values() for cell in cells)


def judged_cells(
    evaluator: str, answers: JudgedAnswers, labels: Sequence[Label], threshold: float | None
) -> dict[str, dict[str, list[JudgedCell]]]:
    """The verdicts of an evaluator by variant and case, with labels that are a sample of the answers."""
    people: dict[CellKey, bool] = {}
    balanced: set[CellKey] = set()
    for label in labels:
        key = cell_of(label)
        judgement = answers.judgements[evaluator].get(key)
        if judgement is None:
            continue
        if label.balanced:
            balanced.add(key)
        lowest = threshold if judgement.threshold is None else judgement.threshold
        if label.passed is not None:
            people[key] = label.passed
        elif label.score is not None and lowest is not None:
            people[key] = label.score >= lowest
    cells: dict[str, dict[str, list[JudgedCell]]] = {}
    for key, judgement in answers.judgements[evaluator].items():
        if judgement.passed is not None:
            cell = JudgedCell(judgement.passed, people.get(key), key in balanced)
            cells.setdefault(key[1], {}).setdefault(key[0], []).append(cell)
    return cells


class _Differences(NamedTuple):
    """B - A by case: where both sides have human labels, where they do not, and by the judge for all of them."""

    labelled: list[str]
    human: list[float]
    judge: list[float]
    others: list[str]
    rest: list[float]
    single: bool

    @property
    def cases(self) -> list[str]:
        return [*self.labelled, *self.others]


def judge_parts(ground: Ground, judged: Sequence[JudgedPair], verdict: DecisionVerdict) -> JudgePart | None:
    """Among the judges with labels, the one that turns the verdict, else the one with the most labels.

    Labels are verdicts, so they correct only pass rates.
    """
    pairs = [pair for pair in judged if pair.labels()]
    if ground.terms.metric != PASS_RATE or not pairs:
        return None
    return max((_part(ground, pair, verdict) for pair in pairs), key=lambda part: (part.turns, part.labels))


def _part(ground: Ground, pair: JudgedPair, verdict: DecisionVerdict) -> JudgePart:
    """The powered difference of both sides, or the corrected one if that is not available; the stratified one if labels
    are of a balanced sample.

    It turns the verdict if it leads to a different one than both the judge alone and the metric; to none, if enough
    labels show that the judge's verdicts say nothing.
    """
    if ground.left_out:
        pair = pair.of({*pair.a, *pair.b} - {*ground.left_out})
    differences, senseless = _differences(pair), False
    part = JudgePart(pair.evaluator, pair.labels(), "")
    if pair.balanced():
        _weigh(part, ground, pair, differences)
        part.labels = pair.of(frozenset(differences.cases)).labels()
    else:
        _power(part, ground, differences)
        if part.ci is None:
            senseless = _correct(part, ground, pair, differences)
        else:
            part.labels = pair.of(frozenset(differences.labelled)).labels()
    alone = [*_judge_of(pair, differences.labelled), *differences.rest]
    raw = ground.decided(Pairs(units_of(alone, ground.units(differences.cases)), differences.single, ValueRange()))
    if part.ci is not None:
        part.verdict = ground.verdict(part.ci)
    part.turns = (senseless or part.ci is not None) and part.verdict not in (raw.verdict, verdict)
    return part


def _differences(pair: JudgedPair) -> _Differences:
    differences = _Differences([], [], [], [], [], all(len(c) == 1 for side in (pair.a, pair.b) for c in side.values()))
    for case, before in pair.a.items():
        after = pair.b.get(case)
        if after is None:
            continue
        ours = [[cell for cell in cells if cell.human is not None] for cells in (before, after)]
        if all(ours):
            one, other = ours
            differences.labelled.append(case)
            differences.human.append(_mean(bool(c.human) for c in other) - _mean(bool(c.human) for c in one))
            differences.judge.append(_mean(c.judge for c in other) - _mean(c.judge for c in one))
        else:
            differences.others.append(case)
            differences.rest.append(_mean(c.judge for c in after) - _mean(c.judge for c in before))
    return differences


def _judge_of(pair: JudgedPair, cases: Sequence[str]) -> list[float]:
    return [_mean(c.judge for c in pair.b[case]) - _mean(c.judge for c in pair.a[case]) for case in cases]


def _mean(values: Iterable[bool]) -> float:
    known = [float(value) for value in values]
    return fsum(known) / len(known)


def _power(part: JudgePart, ground: Ground, differences: _Differences) -> None:
    labelled, others = ground.units(differences.labelled), ground.units(differences.others)
    units = None if labelled is None or others is None else LabelledUnits(labelled, others)
    powered = powered_rate(differences.human, differences.judge, differences.rest, 1 - ground.alpha, -1.0, 1.0, units)
    part.refused = powered.refused
    if powered.ci is not None:
        part.method, part.difference, part.ci = "powered", powered.estimate, powered.ci


def _correct(part: JudgePart, ground: Ground, pair: JudgedPair, differences: _Differences) -> bool:
    """Each side by its own labels if both have enough, else both by all labels.

    True if there are enough and they show a judge of either side to be no better than chance.
    """
    tables = [_table(side, ground) for side in (pair.a, pair.b)]
    if not all(map(_enough, tables)):
        tables = [{name: tables[0][name] + tables[1][name] for name in tables[0]}] * 2
        part.note = "assumes the judge errs alike on both"
    sides = [
        _rate(side, differences.cases, ground) | table for side, table in zip((pair.a, pair.b), tables, strict=True)
    ]
    corrected = corrected_difference(sides[0], sides[1], 1 - ground.alpha)
    if corrected.ci is not None:
        part.method, part.difference, part.ci = "corrected", corrected.difference, corrected.ci
        return False
    senseless = all(map(_enough, tables)) and any(map(_senseless, tables))
    part.note = "no better than chance on the labels" if senseless else "too few labels, or none that explain its rate"
    return senseless


def _enough(table: Mapping[str, float]) -> bool:
    return min(table["tp"] + table["fn"], table["tn"] + table["fp"]) >= _OWN


def _senseless(table: Mapping[str, float]) -> bool:
    return table["tp"] / (table["tp"] + table["fn"]) + table["tn"] / (table["tn"] + table["fp"]) <= 1


def _weigh(part: JudgePart, ground: Ground, pair: JudgedPair, differences: _Differences) -> None:
    """Each side by its own labels: those of the answers that the judge passes, and those of the ones that it fails."""
    sides = [_stratified_rate(side, differences.cases, ground) for side in (pair.a, pair.b)]
    if sides[0] is None or sides[1] is None:
        part.note = "a balanced sample needs labels of passes and failures of both sides"
        return
    part.method = "stratified"
    part.difference, part.ci = difference_of_rates(*sides[0], *sides[1])


def _stratified_rate(side: Cells, cases: Sequence[str], ground: Ground) -> WeightedRate | None:
    units = ground.units(cases) or cases
    strata = []
    for verdict in (True, False):
        cells = [(unit, c) for case, unit in zip(cases, units, strict=True) for c in side[case] if c.judge is verdict]
        labelled = [(unit, c.human) for unit, c in cells if c.human is not None]
        strata.append(Stratum(verdict, len(cells), [human for _, human in labelled], [unit for unit, _ in labelled]))
    rates = stratified_rates(strata, _rate(side, cases, ground)["n"], 1 - ground.alpha)
    return None if rates is None else rates.passed


def _table(side: Cells, ground: Ground) -> dict[str, float]:
    """How often the judge is right and wrong; several labels of a case or group are not independent."""
    labelled = [
        (cell.human, cell.human is cell.judge, ground.groups.get(case, (case,)))
        for case, cells in side.items()
        for cell in cells
        if cell.human is not None
    ]
    kinds = [[(right, unit) for human, right, unit in labelled if human is kind] for kind in (True, False)]
    (tp, fn), (tn, fp) = (effective_labels([r for r, _ in kind], [unit for _, unit in kind]) for kind in kinds)
    return {"tp": tp, "fn": fn, "tn": tn, "fp": fp}


def _rate(side: Cells, cases: Sequence[str], ground: Ground) -> dict[str, float]:
    """The judge's rate over the cases of both sides, with their effective number of answers."""
    shares = [_mean(cell.judge for cell in side[case]) for case in cases]
    rate = rate_with_design_effect(shares, ground.units(cases), 1 - ground.alpha)
    return {"judge_pass": (rate.rate or 0.0) * rate.effective_n, "n": rate.effective_n}
