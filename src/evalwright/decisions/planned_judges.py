"""What the judges of a run leave of the difference that a plan is about: their errors make it look smaller."""

from __future__ import annotations

from collections.abc import Iterable

from evalwright.errors import counted
from evalwright.model.calibration import JudgeCalibration
from evalwright.model.summary import RunSummary

__all__ = ["judge_notes"]


def judge_notes(summaries: Iterable[RunSummary | None], detect: float) -> list[str]:
    """A line for each judge of the runs: which part of a change of `detect` by human labels its verdicts show.

    That is TPR + TNR - 1 (Rogan and Gladen 1978). If a judge has labels in both runs, those of the first count.
    """
    known: dict[str, JudgeCalibration] = {}
    for rollup in (rollup for summary in summaries if summary is not None for rollup in summary.by_evaluator):
        found, before = rollup.calibration, known.get(rollup.evaluator)
        if found is not None and (before is None or not before.labels):
            known[rollup.evaluator] = found
    return [line for found in known.values() if (line := _note(found, detect))]


def _note(found: JudgeCalibration, detect: float) -> str:
    if not found.labels:
        return f"judge {found.evaluator} uncalibrated: the plan is about its opinion"
    if found.tpr is None or found.tnr is None or found.tpr.value is None or found.tnr.value is None:
        return ""
    skill = found.tpr.value + found.tnr.value - 1
    figures = f"{counted(found.labels, 'label')}: TPR {found.tpr.value:.1%}, TNR {found.tnr.value:.1%}"
    judge = f"judge {found.evaluator} ({figures})"
    if skill <= 0:
        return f"{judge} is no better than chance: its verdicts do not show a change that people would see"
    line = f"{judge}: its verdicts show about {skill:.0%} of a change that people would see"
    return (
        f"{line}: {100 * detect:.6g} pp as {100 * detect * skill:.2g} pp, which is what to --detect" if detect else line
    )
