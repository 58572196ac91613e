"""Human labels of two runs that are decided together: those stored with the runs, or a file of labels of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalwright.decisions.judged import judged_cells
from evalwright.decisions.label_samples import label_sample
from evalwright.decisions.runs import JudgedRuns
from evalwright.errors import InputError, Problem
from evalwright.evaluators.build import is_judge
from evalwright.importers.labels import LabelRow, read_labels
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.run.locations import labels_file
from evalwright.scoring.judged_answers import JudgedAnswers, judged_answers

if TYPE_CHECKING:
    from evalwright.run.label_sheet import LabelSheet

__all__ = ["JudgesOfRuns", "judges_of_runs"]


class JudgesOfRuns(NamedTuple):
    """What is known about the judges of two runs."""

    judged: list[JudgedRuns]
    """Evaluators with labels, or with something to say about why they have none."""
    uncalibrated: list[str]
    """Evaluators that call models and have no labels."""


class _Side(NamedTuple):
    reader: RunReader
    plan: Plan


def judges_of_runs(
    reader_a: RunReader, plan_a: Plan, reader_b: RunReader, plan_b: Plan, file: Path | None
) -> JudgesOfRuns:
    """The labelled evaluators of both runs. For the same evaluator, labels in `file` take precedence over stored ones.

    Raises InputError with every mistake of the file.
    """
    sides = _Side(reader_a, plan_a), _Side(reader_b, plan_b)
    both = [spec for spec in plan_b.evaluators if spec.name in {evaluator.name for evaluator in plan_a.evaluators}]
    judged: list[JudgedRuns] = []
    if file is not None or any(labels_file(side.reader).is_file() for side in sides):
        judged = list(_judged_runs(sides, [spec.name for spec in both], file))
    known = {part.evaluator for part in judged if part.has_labels()}
    return JudgesOfRuns(judged, [spec.name for spec in both if spec.name not in known and is_judge(spec)])


def _judged_runs(sides: Sequence[_Side], names: Sequence[str], file: Path | None) -> Iterator[JudgedRuns]:
    from evalwright.run.calibration import stored_labels

    answers_found = [judged_answers(side.reader, names) for side in sides]
    labels = [stored_labels(side.reader) for side in sides]
    labellers: dict[str, list[str]] = {}
    if file is not None:
        sheets = _label_sheets(file, names, sides, answers_found)
        named = {name for sheet in sheets for name in sheet.labellers}
        labels = [
            [*(old for old in kept if old.evaluator not in named), *new.labels]
            for kept, new in zip(labels, sheets, strict=True)
        ]
        labellers = {name: [labelled for sheet in sheets if (labelled := sheet.labellers.get(name))] for name in names}
    for name in names:
        samples = [label_sample(name, of, answers_of) for of, answers_of in zip(labels, answers_found, strict=True)]
        notes = [*labellers.get(name, []), *(line for sample in samples for line in sample.left_out())]
        unlike = [f"{side}, {line}" for side, sample in zip("AB", samples, strict=True) for line in sample.unlike]
        notes += unlike
        if not notes and not any(sample.labels for sample in samples):
            continue
        thresholds = [side.plan.lowest_passing(name) for side in sides]
        a, b = (
            judged_cells(name, answers_of, [] if unlike else sample.labels, threshold)
            for answers_of, sample, threshold in zip(answers_found, samples, thresholds, strict=True)
        )
        yield JudgedRuns(name, a, b, list(dict.fromkeys(notes)))


def _label_sheets(
    file: Path, names: Sequence[str], sides: Sequence[_Side], answers_found: Sequence[JudgedAnswers]
) -> list[LabelSheet]:
    from evalwright.run.label_sheet import cells_by_case, labels_of, matching_cells

    rows, problems = read_labels(file)
    rows = [row for row in rows if not row.unsure]
    cells = [cells_by_case(answers_of) for answers_of in answers_found]
    rows_by_side: list[list[LabelRow]] = [[], []]
    for row in rows:
        answers = [
            {answers_of.answers[key] for key in matching_cells(row, of)}
            for answers_of, of in zip(answers_found, cells, strict=True)
        ]
        places = _named_sides(row.run, sides) if row.run is not None else _places(*answers)
        if isinstance(places, str):
            problems.append(Problem(str(file), places, row.line, "run"))
            continue
        for place in places:
            rows_by_side[place].append(row)
    read = [
        labels_of(side_rows, names, sheet, str(file))
        for side_rows, sheet in zip(rows_by_side, answers_found, strict=True)
    ]
    problems += dict.fromkeys(problem for labels in read for problem in labels.problems)
    if problems:
        raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
    return read


def _named_sides(run: str, sides: Sequence[_Side]) -> list[int] | str:
    names = [{letter, side.plan.run_id.lower()} for letter, side in zip("ab", sides, strict=True)]
    places = [place for place, known in enumerate(names) if run.strip().lower() in known]
    ids = " or ".join(f"{letter} ({side.plan.run_id})" for letter, side in zip("AB", sides, strict=True))
    return places or f"expected {ids}, found {run!r}"


def _places(before: set[bytes], after: set[bytes]) -> list[int] | str:
    """To which of the two runs a row belongs that names neither, judged by their answers; if to none, the later run
    reports it."""
    if before and after and before != after:
        return "both runs have an answer to this case, and they differ: say which one the label is about, A or B"
    return [place for place, answers in enumerate((before, after)) if answers] or [1]
