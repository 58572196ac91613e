"""People's labels of a stored run: looked up, kept with the run, and held against its judges.

The labels are what is kept (`labels.jsonl`); `calibration.json` and the marks in summaries are made of them and of the
judgements as they are now, also after judging again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from evalwright.dialects.labels import Row, read_labels
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.durable import replace_file
from evalwright.files.jsonl import lines_of
from evalwright.model.calibration import CalibrationReport, JudgeCalibration, Label
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import RunReader, RunWriter
from evalwright.model.summary import RunSummary
from evalwright.registry import load
from evalwright.run.origin import plan_of_run
from evalwright.scoring.calibration import calibrate
from evalwright.scoring.facts import CellKey
from evalwright.scoring.fold import fold
from evalwright.scoring.judged import JudgedAnswers, judged_answers
from evalwright.stores.local_files import LocalFiles

__all__ = ["CALIBRATION", "LABELS", "calibrate_run", "keep_calibration", "mark_judges"]

LABELS = "labels.jsonl"
CALIBRATION = "calibration.json"
_MOST_IDS_COMPARED = 5_000


def calibrate_run(run_dir: Path, file: Path) -> CalibrationReport:
    """Measure the evaluators of a run by the labels in `file`, which replace earlier labels of the same evaluators.

    Raises InputError with every mistake of the file; nothing is changed then.
    """
    store, run_id = LocalFiles.at(run_dir)
    rows, problems = read_labels(file)
    with closing(store.open(run_id)) as writer:
        plan = plan_of_run(writer)
        labels, more = _looked_up(rows, plan, judged_answers(writer, _names(plan)), str(file))
        if problems + more:
            raise InputError(problems + more)
        named = {label.evaluator for label in labels}
        kept = [label for label in _stored_labels(writer) if label.evaluator not in named]
        replace_file(Path(writer.location) / LABELS, msgspec.json.Encoder().encode_lines([*kept, *labels]))
        summary = writer.summary() or fold(writer, plan).summary(plan, datetime.now(UTC))
        report = keep_calibration(writer, plan, summary)
        assert report is not None, "labels were just stored"
        writer.save_summary(summary)
        return report


def keep_calibration(writer: RunWriter, plan: Plan, summary: RunSummary) -> CalibrationReport | None:
    """Mark the judges in `summary`, and store what the labels of the run, if it has any, say of them now."""
    report = mark_judges(writer, plan, summary)
    if report is not None:
        document = msgspec.json.format(msgspec.json.encode(report), indent=2)
        replace_file(Path(writer.location) / CALIBRATION, document + b"\n")
    return report


def mark_judges(reader: RunReader, plan: Plan, summary: RunSummary) -> CalibrationReport | None:
    """Say in `summary` of every judge how far people agree with it; what is known, None without labels."""
    report = _report(reader, plan)
    known = {found.evaluator: found for found in report.evaluators} if report else {}
    judges = {spec.name for spec in plan.evaluators if _asks_models(spec)}
    for rollup in summary.by_evaluator:
        if rollup.evaluator in known:
            rollup.calibration = known[rollup.evaluator]
        elif rollup.evaluator in judges:
            rollup.calibration = JudgeCalibration(rollup.evaluator)
    return report


def _report(reader: RunReader, plan: Plan) -> CalibrationReport | None:
    labels = _stored_labels(reader)
    named = {label.evaluator for label in labels}
    specs = [spec for spec in plan.evaluators if spec.name in named]
    if not specs:
        return None
    found = judged_answers(reader, [spec.name for spec in specs])
    return CalibrationReport(plan.run_id, [calibrate(s.name, labels, found, _threshold(s)) for s in specs])


def _stored_labels(reader: RunReader) -> list[Label]:
    path = Path(reader.location) / LABELS
    if not path.is_file():
        return []
    try:
        return [msgspec.json.decode(line, type=Label) for _, line in lines_of(path)]
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"is damaged: {error}; remove it and calibrate again")) from error


def _asks_models(spec: EvaluatorSpec) -> bool:
    try:
        return bool(getattr(load("evaluators", spec.type), "calls_models", False))
    except InputError:
        return False  # of a plug-in that is not installed here


def _threshold(spec: EvaluatorSpec) -> float | None:
    value = spec.config.get("threshold", spec.config.get("pass_threshold"))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _names(plan: Plan) -> list[str]:
    return [spec.name for spec in plan.evaluators]


class _Where(NamedTuple):
    """What labels may name, and where they are."""

    plan: Plan
    found: JudgedAnswers
    cells: dict[str, list[CellKey]]


def _looked_up(rows: Iterable[Row], plan: Plan, found: JudgedAnswers, file: str) -> tuple[list[Label], list[Problem]]:
    """The answer that each row is about, and a problem for each row that is about none, several, or one again."""
    cells: dict[str, list[CellKey]] = {}
    for key in found.attempts:
        cells.setdefault(key[0], []).append(key)
    where = _Where(plan, found, cells)
    problems: list[Problem] = []
    labels: dict[tuple[str, CellKey], Label] = {}
    lines: dict[tuple[str, CellKey], int] = {}
    for row in rows:
        mistakes = [Problem(file, message, row.line, key) for key, message in _unknown(row, where)]
        problems += mistakes
        if mistakes:
            continue
        cell = _fitting(row, cells)[0]
        first = lines.setdefault((row.evaluator, cell), row.line)
        if first != row.line:
            problems.append(Problem(file, f"this answer is labelled in line {first} already", row.line, "case_id"))
        labels[row.evaluator, cell] = Label(
            cell[0], row.evaluator, *cell[1:], found.attempts[cell], row.passed, row.score
        )
    return list(labels.values()), problems


def _fitting(row: Row, cells: dict[str, list[CellKey]]) -> list[CellKey]:
    return [key for key in cells.get(row.case_id, []) if row.variant in (None, key[1]) and row.trial in (None, key[2])]


def _unknown(row: Row, where: _Where) -> Iterator[tuple[str, str]]:
    """What a row names and the run has not, or has several of."""
    names = _names(where.plan)
    if row.evaluator not in names:
        near = did_you_mean(row.evaluator, names)
        yield "evaluator", f"the run has no evaluator {row.evaluator!r}{near} (there are: {', '.join(names)})"
    answers = where.cells.get(row.case_id, [])
    if not answers:
        near = did_you_mean(row.case_id, where.cells) if len(where.cells) <= _MOST_IDS_COMPARED else ""
        yield "case_id", f"the run has no answer to a case {row.case_id!r}{near}"
        return
    fitting = _fitting(row, where.cells)
    if not fitting:
        yield _odd_one(row, answers)
    elif len({where.found.answers[key] for key in fitting}) > 1:
        yield "case_id", f"the case has {len(fitting)} answers: say which {_differing(fitting)}"


def _odd_one(row: Row, answers: Sequence[CellKey]) -> tuple[str, str]:
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
