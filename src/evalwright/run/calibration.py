"""Human labels of a stored run: looked up, stored with the run, and compared with its judges.

The labels are what is stored (`labels.jsonl`); `calibration.json` and the marks in summaries are computed from them and
the present results, also after re-evaluation.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from evalwright.decisions.calibration import Makers, calibrate
from evalwright.errors import InputError, Problem, counted
from evalwright.evaluators.build import is_judge
from evalwright.files.durable import PRIVATE, replace_file
from evalwright.files.jsonl import lines_of
from evalwright.files.paths import seen_from_here
from evalwright.importers.labels import read_labels
from evalwright.model.calibration import CalibrationReport, JudgeCalibration, Label
from evalwright.model.damage import MendedDamage
from evalwright.model.makers import maker_of
from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.protocols import RunReader, RunWriter
from evalwright.model.summary import RunSummary
from evalwright.run.label_sheet import labels_of
from evalwright.run.locations import Place, find_run, folder_beside, label_sheet, labels_file
from evalwright.run.stored_run import plan_of_run
from evalwright.scoring.fold import fold
from evalwright.scoring.judged_answers import judged_answers

__all__ = ["CALIBRATION", "calibrate_run", "keep_calibration", "mark_judges", "stored_labels"]

CALIBRATION = "calibration.json"


def calibrate_run(run: Path | Place, file: Path | None) -> CalibrationReport:
    """Measure the evaluators of a run by the labels in `file`, which replace earlier labels of the same evaluators.

    None: those that were given in the viewer. Raises InputError with every mistake of the file; nothing is changed
    then.
    """
    place = find_run(run)
    file = file or _given_in_viewer(place)
    all_rows, problems = read_labels(file)
    rows, unsure = [row for row in all_rows if not row.unsure], Counter(row.evaluator for row in all_rows if row.unsure)
    if all_rows and not rows and not problems:
        raise InputError(Problem(str(file), "has only unsure labels"))
    with closing(place.store.open(place.run_id)) as writer:
        plan = plan_of_run(writer)
        names = [spec.name for spec in plan.evaluators]
        sheet = labels_of(rows, names, judged_answers(writer, names), str(file))
        labels = sheet.labels
        if problems := problems + sheet.problems:
            raise InputError(problems)
        if not labels:
            raise InputError(Problem(str(file), "has only labels on which the labellers disagree"))
        others = [label for label in stored_labels(writer) if label.evaluator not in sheet.labellers]
        folder_beside(writer).mkdir(parents=True, exist_ok=True)
        replace_file(labels_file(writer), msgspec.json.Encoder().encode_lines([*others, *labels]), PRIVATE)
        summary = writer.summary() or fold(writer, plan).summary(plan, datetime.now(UTC))
        report = keep_calibration(writer, plan, summary)
        assert report is not None, "labels were just stored"
        writer.save_summary(summary)
        for evaluator in report.evaluators:
            if labellers := sheet.labellers.get(evaluator.evaluator):
                evaluator.notes.append(labellers)
            if unsure[evaluator.evaluator]:
                evaluator.notes.append(f"{counted(unsure[evaluator.evaluator], 'answer')} labelled unsure, left out")
        return report


def _given_in_viewer(place: Place) -> Path:
    with closing(place.store.read(place.run_id)) as reader:
        file = label_sheet(reader)
    if not file.is_file():
        seen = seen_from_here(file)
        raise InputError(f"no labels: pass --labels FILE, or label answers in `evalwright view`, which writes {seen}")
    return file


def keep_calibration(writer: RunWriter, plan: Plan, summary: RunSummary) -> CalibrationReport | None:
    """Mark the judges in `summary`, and store what the run's labels, if it has any, now say about them."""
    report = mark_judges(writer, plan, summary)
    if report is not None:
        document = msgspec.json.format(msgspec.json.encode(report), indent=2)
        replace_file(folder_beside(writer) / CALIBRATION, document + b"\n", PRIVATE)
    return report


def mark_judges(reader: RunReader, plan: Plan, summary: RunSummary) -> CalibrationReport | None:
    """Note in `summary` how far each judge agrees with human labels. Returns what is known; None without labels."""
    try:
        report = _report(reader, plan)
    except InputError as error:  # no reason to lose the run's numbers
        reader.damage.append(MendedDamage(error))
        report = None
    calibrations = {evaluator.evaluator: evaluator for evaluator in report.evaluators} if report else {}
    judges = {spec.name for spec in plan.evaluators if is_judge(spec)}
    for rollup in summary.by_evaluator:
        if rollup.evaluator in calibrations:
            rollup.calibration = calibrations[rollup.evaluator]
        elif rollup.evaluator in judges:
            rollup.calibration = JudgeCalibration(rollup.evaluator)
    return report


def _report(reader: RunReader, plan: Plan) -> CalibrationReport | None:
    labels = stored_labels(reader)
    labelled = {label.evaluator for label in labels}
    specs = [spec for spec in plan.evaluators if spec.name in labelled]
    if not specs:
        return None
    answers = judged_answers(reader, [spec.name for spec in specs])
    measured = [
        calibrate(spec.name, labels, answers, plan.lowest_passing(spec.name), _makers(spec, plan)) for spec in specs
    ]
    return CalibrationReport(plan.run_id, measured)


def _makers(spec: EvaluatorSpec, plan: Plan) -> Makers:
    """The makers of a judge's models, if there is only one, and of the systems that name their model."""
    models = [spec.config.get("model"), *(spec.config.get("models") or ())]
    makers = {maker_of(model) for model in models if isinstance(model, str)}
    return Makers(
        makers.pop() if len(makers) == 1 else None, {variant.name: _maker_of(variant) for variant in plan.variants}
    )


def _maker_of(variant: Variant) -> str | None:
    named = (place.get("model") for place in (variant.config, variant.metadata))
    return next((maker_of(model) for model in named if isinstance(model, str)), None)


def stored_labels(reader: RunReader) -> list[Label]:
    """The labels that are stored with a run. Raises InputError if they are damaged."""
    path = labels_file(reader)
    if not path.is_file():
        return []
    try:
        return [msgspec.json.decode(line, type=Label) for _, line in lines_of(path)]
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"is damaged: {error}; remove it and calibrate again")) from error
