"""Which answer of a run each human label is about, and what counts where several people labelled it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import fsum
from typing import NamedTuple

from msgspec import structs

from evalwright.errors import Problem, counted, did_you_mean
from evalwright.importers.labels import LabelRow
from evalwright.model.calibration import BALANCED, Label
from evalwright.model.facts import CellKey
from evalwright.scoring.judged_answers import JudgedAnswers
from evalwright.statistics.raters import krippendorff_alpha

__all__ = ["LabelSheet", "cells_by_case", "labels_of", "matching_cells"]

_MOST_GUESSES, _MOST_IDS_COMPARED = 20, 5_000


class _LabelPlaces(NamedTuple):
    """What labels may name, and where that is."""

    evaluators: Sequence[str]
    found: JudgedAnswers
    cells: dict[str, list[CellKey]]


class LabelSheet(NamedTuple):
    """The labels of a file: one for each answer."""

    labels: list[Label]
    problems: list[Problem]
    labellers: dict[str, str]
    """By evaluator, how far its labellers agree; empty if no answer was labelled by several."""


def labels_of(rows: Iterable[LabelRow], evaluators: Sequence[str], found: JudgedAnswers, file: str) -> LabelSheet:
    """The answer that each row is about, and a problem for each row that is about none, or several, or repeats one of
    the same labeller."""
    cells = cells_by_case(found)
    where = _LabelPlaces(evaluators, found, cells)
    problems: list[Problem] = []
    given: dict[tuple[str, CellKey], list[LabelRow]] = {}
    for row in rows:
        mistakes = [
            Problem(file, message, row.line, key)
            for key, message in _unknown_names(row, where, len(problems) < _MOST_GUESSES)
        ]
        problems += mistakes
        if mistakes:
            continue
        cell = matching_cells(row, cells)[0]
        of_answer = given.setdefault((row.evaluator, cell), [])
        first = next((other.line for other in of_answer if other.labeller == row.labeller), None)
        if first is None:
            of_answer.append(row)
        else:
            by = f" by {row.labeller}" if row.labeller else ""
            problems.append(Problem(file, f"this answer is already labelled{by} in line {first}", row.line, "case_id"))
    newest = {key: _newest(rows, found.attempts[key[1]]) for key, rows in given.items()}
    labels = [_label_by(rows, cell, attempt) for (_, cell), (rows, attempt) in newest.items()]
    answers: dict[str, list[list[LabelRow]]] = {}
    for (evaluator, _), (rows_of, _) in newest.items():
        answers.setdefault(evaluator, []).append(rows_of)
    agreed = {evaluator: _agreement_of(of) for evaluator, of in answers.items()}
    return LabelSheet([label for label in labels if label is not None], problems, agreed)


def _newest(rows: Sequence[LabelRow], newest: int) -> tuple[list[LabelRow], int]:
    """The labels of the last attempt that has some, and that attempt; one that was replaced since does not count."""
    last = max(row.attempt or newest for row in rows)
    return [row for row in rows if (row.attempt or newest) == last], last


def cells_by_case(answers: JudgedAnswers) -> dict[str, list[CellKey]]:
    """The cells of a run in their order, in whatever order they finished."""
    cells: dict[str, list[CellKey]] = {}
    for key in sorted(answers.attempts):
        cells.setdefault(key[0], []).append(key)
    return cells


def matching_cells(row: LabelRow, cells: dict[str, list[CellKey]]) -> list[CellKey]:
    """The cells that a row may be about."""
    return [key for key in _cells_of(row, cells) if row.variant in (None, key[1]) and row.trial in (None, key[2])]


def _cells_of(row: LabelRow, cells: dict[str, list[CellKey]]) -> list[CellKey]:
    """The cells of the case that a row names."""
    return cells.get(row.case_id) or cells.get(row.case_id.strip(), [])


def _unknown_names(row: LabelRow, where: _LabelPlaces, guess: bool) -> Iterator[tuple[str, str]]:
    """What a row names that the run does not have, or has several of."""
    if row.evaluator not in where.evaluators:
        near, known = did_you_mean(row.evaluator, where.evaluators), ", ".join(where.evaluators)
        yield "evaluator", f"the run has no evaluator {row.evaluator!r}{near} (there are: {known})"
    answers = _cells_of(row, where.cells)
    if not answers:
        near = did_you_mean(row.case_id, where.cells) if guess and len(where.cells) <= _MOST_IDS_COMPARED else ""
        yield "case_id", f"the run has no answer to a case {row.case_id!r}{near}"
        return
    own = matching_cells(row, where.cells)
    if not own:
        yield _odd_one(row, answers)
    elif len({where.found.answers[key] for key in own}) > 1:
        yield "case_id", f"the case has {len(own)} answers: say which {_differing(own)}"


def _odd_one(row: LabelRow, answers: Sequence[CellKey]) -> tuple[str, str]:
    variants = sorted({key[1] for key in answers})
    if row.variant is not None and row.variant not in variants:
        near = did_you_mean(row.variant, variants)
        return (
            "variant",
            f"the case has no answer of {row.variant!r}{near} (there are: {', '.join(variants)})",
        )
    trials = sorted({key[2] for key in answers if row.variant in (None, key[1])})
    return "trial", f"the case has no trial {row.trial}, trials are {trials[0]} to {trials[-1]}"


def _differing(cells: Sequence[CellKey]) -> str:
    parts = []
    if len({key[1] for key in cells}) > 1:
        parts.append("variant")
    if len({key[2] for key in cells}) > 1:
        parts.append("trial")
    return " and ".join(parts)


def _label_by(rows: Sequence[LabelRow], cell: CellKey, attempt: int) -> Label | None:
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
    label = Label(cell[0], rows[0].evaluator, *cell[1:], attempt, passed, score, drawn.chosen)
    return structs.replace(label, stratum=drawn.stratum, stratum_size=drawn.stratum_size)


def _agreement_of(answers: Collection[Sequence[LabelRow]]) -> str:
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
    ties = sum(_label_by(rows, ("", "", 0), 1) is None for rows in answers)
    left_out = f"; {counted(ties, 'tie')} left out" if ties else ""
    found = f"{counted(len(names), 'labeller')}: the same label for {same:,} of {counted(len(shared), 'answer')}{shown}"
    return f"{found}; the majority counts, or the mean of scores{left_out}"


def _label_value(row: LabelRow) -> bool | float | None:
    return row.score if row.passed is None else row.passed
