"""Reports say of every judge whether people agree with it, or that nobody knows."""

from __future__ import annotations

import json

from evalwright.model.calibration import (
    CalibrationReport,
    Confidence,
    Flips,
    JudgeCalibration,
    LengthBias,
    PositionBias,
    ScoreAgreement,
    SelfAgreement,
    SelfPreference,
    Share,
    Strength,
)
from evalwright.model.summary import EvaluatorRate, EvaluatorRollup
from evalwright.registry import load
from evalwright.reports.calibration import calibration_lines
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from reports.runs import HOSTILE, plan, stored, summary

MEASURED = JudgeCalibration("judge", 60, tpr=Share(0.921, 38, (0.79, 0.97)), tnr=Share(1.0, 22, (0.85, 1.0)))


def rolled_up(calibration):
    return summary(by_evaluator=[EvaluatorRollup("judge", {"old": EvaluatorRate(0.75, 0.75, 48)}, calibration)])


def test_the_terminal_marks_a_judge_without_labels() -> None:
    lines = run_lines(plan(), rolled_up(JudgeCalibration("judge")), Paint())
    assert any("judge" in line and line.endswith("uncalibrated") for line in lines)


def test_the_terminal_shows_what_is_known_of_a_judge() -> None:
    lines = run_lines(plan(), rolled_up(MEASURED), Paint())
    assert any(line.endswith("TPR 92.1%, TNR 100.0% (n=60)") for line in lines)


def test_markdown_has_a_column_only_where_there_is_a_judge() -> None:
    report = load("reports", "markdown")()
    assert "uncalibrated |" in report.render(stored(), rolled_up(JudgeCalibration("judge")))
    assert "| calibration |" not in report.render(stored(), rolled_up(None))


def test_json_has_the_whole_calibration() -> None:
    text = load("reports", "json")().render(stored(), rolled_up(MEASURED))
    assert json.loads(text)["summary"]["by_evaluator"][0]["calibration"]["tpr"]["n"] == 38


def test_scores_flips_and_notes_are_shown_and_names_are_harmless() -> None:
    calibration = JudgeCalibration(
        HOSTILE,
        12,
        2,
        1,
        scores=ScoreAgreement(9, 0.5, 0.61, None, 0.4, 0.7, -0.25),
        flips=Flips(4, 1, Share(0.25, 4, (0.05, 0.7))),
        notes=["few labels"],
    )
    text = "\n".join(calibration_lines(CalibrationReport("r", [calibration]), Paint()))
    assert "12 labels, 2 without a judge verdict, 1 of superseded answers" in text
    assert "quadratic weights" in text
    assert "−0.25" in text
    assert "25.0%" in text
    assert "note: few labels" in text
    assert "\x1b" not in text


def test_what_rounds_to_zero_has_no_sign() -> None:
    calibration = JudgeCalibration("judge", 60, length=LengthBias(-0.004, (-0.01, 0.002), 60))
    (line,) = [
        calibration_line
        for calibration_line in calibration_lines(CalibrationReport("r", [calibration]), Paint())
        if "twice as long" in calibration_line
    ]
    assert line.split()[-5:-1] == ["0.00", "−0.01", "to", "0.00"]


def test_biases_of_a_judge_are_shown_within_80_columns() -> None:
    calibration = JudgeCalibration(
        "judge",
        40,
        confidence=Confidence(40, 0.182, 0.07),
        length=LengthBias(0.11, (0.02, 0.2), 40),
        length_at_label=LengthBias(0.07, (0.01, 0.13), 40),
        preference=SelfPreference("Anthropic", 20, 20, 0.15, (0.05, 0.25)),
        repeats=[SelfAgreement("claude-haiku-4-5-20251001-and-longer", Share(0.9, 40, (0.77, 0.96)))],
        panel=Share(0.25, 40, (0.14, 0.4)),
        position=[PositionBias("agent", 60, 0.6, 20, 16, 24, 0.71, 0.0012)],
        strengths=[Strength("agent", 23.7), Strength("reference", 0.0)],
    )
    lines = calibration_lines(CalibrationReport("r", [calibration]), Paint())
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert "error, answer twice as long" in text
    assert "0.02 to 0.20" in text
    shown = ("0.01 to 0.13", "(same label)", "own maker (Anthropic)", "20 / 20", "same each time", "judges disagree")
    for row in shown:
        assert row in text, text
    assert "71.0%" in text
    assert "strength (Elo): agent +24, reference 0" in text
