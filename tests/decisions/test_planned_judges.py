"""What a plan says about the judges of its runs."""

from __future__ import annotations

from datetime import UTC, datetime

from evalwright.decisions.planned_judges import judge_notes
from evalwright.decisions.planning import Aim, suite_plan
from evalwright.model.calibration import JudgeCalibration, Share
from evalwright.model.summary import EvaluatorRollup, RunSummary
from evalwright.reports.planning import planning_lines
from evalwright.scoring.tally import Tally
from scoring.histories import plan


def summary(*judges: JudgeCalibration) -> RunSummary:
    made = Tally.of(plan()).summary(plan(), datetime.now(UTC))
    made.by_evaluator = [EvaluatorRollup(judge.evaluator, {}, judge) for judge in judges]
    return made


def judge(tpr: float | None, tnr: float | None, labels: int = 60) -> JudgeCalibration:
    return JudgeCalibration("tone", labels, tpr=Share(tpr, 40), tnr=Share(tnr, 20))


def test_errors_of_a_judge_make_a_change_smaller() -> None:
    known = summary(judge(0.9, 0.8))
    assert judge_notes([known], 0.1) == [
        "judge tone (60 labels: TPR 90.0%, TNR 80.0%): its verdicts show about 70% of a change that people would see: "
        "10 pp as 7 pp, which is what to --detect"
    ]
    assert judge_notes([known], 0.0)[0].endswith("about 70% of a change that people would see")
    planned = suite_plan("s", 80, [], [1], Aim(0.1, 0.0, 0.05, 0.8))
    planned.notes = judge_notes([known], 0.1)
    assert "note: judge tone (60 labels: TPR 90.0%, TNR 80.0%): its verdicts show about 70%" in planning_lines(
        planned, ""
    )


def test_a_judge_without_labels_or_skill_is_named() -> None:
    assert judge_notes([summary(judge(0.5, 0.4))], 0.1)[0].startswith(
        "judge tone (60 labels: TPR 50.0%, TNR 40.0%) is no better"
    )
    without = summary(JudgeCalibration("tone"))
    assert judge_notes([None, without], 0.1) == ["judge tone uncalibrated: the plan is about its opinion"]
    assert judge_notes([without, summary(judge(1.0, 1.0))], 0.1) == judge_notes([summary(judge(1.0, 1.0))], 0.1)
    assert judge_notes([summary(judge(None, 0.5))], 0.1) == []
