"""Which answer of a run each human label is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from evalwright.errors import Problem, did_you_mean
from evalwright.importers.labels import LabelRow
from evalwright.model.calibration import Label
from evalwright.model.facts import CellKey
from evalwright.scoring.re_judged import JudgedAnswers

__all__ = ["cells_by_case", "labels_of", "matching_cells"]

_MOST_GUESSES, _MOST_IDS_COMPARED = 20, 5_000


class _Where(NamedTuple):
    """What labels may name, and where that is."""

    evaluators: Sequence[str]
    found: JudgedAnswers
    cells: dict[str, list[CellKey]]


def labels_of(
    rows: Iterable[LabelRow], evaluators: Sequence[str], found: JudgedAnswers, file: str
) -> tuple[list[Label], list[Problem]]:
    """The answer that each row is about, and a problem for each row that is about none, several, or an answer again."""
    cells = cells_by_case(found)
    where = _Where(evaluators, found, cells)
    problems: list[Problem] = []
    labels: dict[tuple[str, CellKey], Label] = {}
    lines: dict[tuple[str, CellKey], int] = {}
    for row in rows:
        mistakes = [
            Problem(file, message, row.line, key)
            for key, message in _unknown(row, where, len(problems) < _MOST_GUESSES)
        ]
        problems += mistakes
        if mistakes:
            continue
        cell = matching_cells(row, cells)[0]
        first = lines.setdefault((row.evaluator, cell), row.line)
        if first != row.line:
            problems.append(Problem(file, f"this answer is already labelled in line {first}", row.line, "case_id"))
        attempt = row.attempt or found.attempts[cell]  # of an answer that was replaced since, it does not count
        labels[row.evaluator, cell] = Label(cell[0], row.evaluator, *cell[1:], attempt, row.passed, row.score)
    return list(labels.values()), problems


def cells_by_case(found: JudgedAnswers) -> dict[str, list[CellKey]]:
    """The cells of a run in their order, in whatever order they finished."""
    cells: dict[str, list[CellKey]] = {}
    for key in sorted(found.attempts):
        cells.setdefault(key[0], []).append(key)
    return cells


def matching_cells(row: LabelRow, cells: dict[str, list[CellKey]]) -> list[CellKey]:
    """The cells that a row may be about."""
    return [key for key in cells.get(row.case_id, []) if row.variant in (None, key[1]) and row.trial in (None, key[2])]


def _unknown(row: LabelRow, where: _Where, guess: bool) -> Iterator[tuple[str, str]]:
    """What a row names that the run does not have, or has several of."""
    if row.evaluator not in where.evaluators:
        near, known = did_you_mean(row.evaluator, where.evaluators), ", ".join(where.evaluators)
        yield "evaluator", f"the run has no evaluator {row.evaluator!r}{near} (there are: {known})"
    answers = where.cells.get(row.case_id, [])
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
