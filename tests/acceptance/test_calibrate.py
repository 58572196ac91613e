"""`evalwright calibrate`: a run and a file of labels in, error rates and corrected rates out, kept with the run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from acceptance.projects import TWO_SYSTEMS, Project, project

WORDS = {"a": "thanks", "b": "thanks", "c": "no", "d": "no", "e": "thanks", "f": {"v": "no", "w": "thanks"}}
LABELS = "case_id,evaluator,verdict\na,polite,pass\nb,polite,fail\nc,polite,fail\nd,polite,pass\n"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = project(tmp_path_factory.mktemp("calibrate"), WORDS, TWO_SYSTEMS)
    made.run()
    return made


@pytest.fixture
def made(once: Project, tmp_path: Path) -> Project:
    return Project(shutil.copytree(once.folder, tmp_path / "project"))


def run_of(made: Project) -> Path:
    return next((made.folder / "runs").iterdir())


def calibrate(made: Project, labels: str, *options: str):
    (made.folder / "labels.csv").write_text(labels)
    return made.evalwright("calibrate", run_of(made), "--labels", "labels.csv", *options)


def test_the_table_and_the_rates_are_shown(made: Project) -> None:
    ended = calibrate(made, LABELS)
    assert (ended.code, ended.err) == (0, "")
    assert "human: pass            1            1" in ended.out
    assert re.search(r"TPR \(human passes found\) +50\.0%", ended.out)
    assert "no better than chance" in ended.out


def test_labels_given_in_the_viewer_need_no_name(made: Project) -> None:
    without = made.evalwright("calibrate", run_of(made))
    assert (without.code, "no labels: pass --labels FILE, or label answers in" in without.err) == (2, True)
    (run_of(made) / "labels.csv").write_text(LABELS)
    found = made.evalwright("calibrate", run_of(made))
    assert (found.code, found.out) == (0, calibrate(made, LABELS).out)


def test_json_says_the_same_as_what_is_kept_with_the_run(made: Project) -> None:
    document = json.loads(calibrate(made, LABELS, "--json").out)
    assert document == json.loads((run_of(made) / "calibration.json").read_text())
    assert document["evaluators"][0]["tpr"]["value"] == 0.5


def test_reports_show_it_beside_the_evaluator(made: Project) -> None:
    calibrate(made, LABELS)
    assert "TPR 50.0%, TNR 50.0% (n=4)" in made.evalwright("report", run_of(made)).out
    report = json.loads(made.evalwright("report", run_of(made), "--format", "json").out)
    assert report["summary"]["by_evaluator"][0]["calibration"]["labels"] == 4


def test_judging_again_measures_again(made: Project) -> None:
    calibrate(made, LABELS)
    suite = made.folder / "eval.yaml"
    suite.write_text(suite.read_text().replace("all_of: [thanks]", "any_of: [thanks, 'no']"))
    out = made.evalwright("re-evaluate", run_of(made), "--suite", "eval.yaml").out
    assert "TPR 100.0%, TNR 0.0% (n=4)" in out


def test_a_label_names_one_of_several_answers(made: Project) -> None:
    ended = calibrate(made, "case_id,evaluator,verdict,variant\nf,polite,fail,v\nf,polite,pass,w\n")
    assert ended.code == 0
    assert re.search(r"accuracy +100\.0%", ended.out)


def test_all_mistakes_are_told_and_nothing_is_kept(made: Project) -> None:
    labels = "case_id,evaluator,verdict,variant,trial\nf,polite,pass,,\na,polit,pass,,\nz,polite,pass,,\n"
    ended = calibrate(
        made, labels + "b,polite,maybe,,\na,polite,pass,x,\na,polite,pass,v,3\na,polite,pass,,\na,polite,no,v,\n"
    )
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "labels.csv:2  case_id    the case has 2 answers: say which variant",
        "labels.csv:3  evaluator  the run has no evaluator 'polit'; did you mean \"polite\"? (there are: polite)",
        "labels.csv:4  case_id    the run has no answer to a case 'z'",
        "labels.csv:5  verdict    expected pass or fail, found 'maybe'",
        "labels.csv:6  variant    the case has no answer of 'x' (there are: v, w)",
        "labels.csv:7  trial      the case has no trial 3, trials are 0 to 0",
        "labels.csv:9  case_id    this answer is already labelled in line 8",
        "7 problems in labels.csv; nothing was changed",
    ]
    assert not (run_of(made) / "labels.jsonl").exists()


def test_several_labellers_count_by_majority_and_their_agreement_is_said(made: Project) -> None:
    rows = [
        ("a", "ann", "pass"),
        ("a", "bob", "pass"),
        ("b", "ann", "pass"),
        ("b", "bob", "fail"),
        ("b", "eve", "fail"),
    ]
    rows += [("c", "ann", "pass"), ("c", "bob", "fail"), ("d", "eve", "pass")]
    text = "case_id,labeller,evaluator,verdict\n" + "".join(f"{c},{who},polite,{said}\n" for c, who, said in rows)
    ended = calibrate(made, text)
    assert ended.code == 0
    assert "note: 3 labellers: the same label for 1 of 3 answers, Krippendorff's alpha 0.00; the" in ended.out
    assert "; 1 tie left out\n" in ended.out
    kept = [json.loads(line) for line in (run_of(made) / "labels.jsonl").read_text().splitlines()]
    assert [(row["case_id"], row["passed"]) for row in kept] == [("a", True), ("b", False), ("d", True)]


def test_scores_of_several_labellers_count_by_their_mean(made: Project) -> None:
    calibrate(made, "case_id,labeller,evaluator,score\na,ann,polite,0.5\na,bob,polite,1\n")
    (kept,) = map(json.loads, (run_of(made) / "labels.jsonl").read_text().splitlines())
    assert (kept["score"], kept["passed"]) == (0.75, None)


def test_a_labeller_labels_an_answer_once(made: Project) -> None:
    ended = calibrate(
        made, "case_id,labeller,evaluator,verdict\na,ann,polite,pass\na,bob,polite,pass\na,ann,polite,fail\n"
    )
    assert ended.code == 2
    assert "this answer is already labelled by ann in line 2" in ended.err


def test_labels_that_only_tie_replace_nothing(made: Project) -> None:
    calibrate(made, LABELS)
    before = (run_of(made) / "labels.jsonl").read_bytes()
    ended = calibrate(made, "case_id,labeller,evaluator,verdict\na,ann,polite,pass\na,bob,polite,fail\n")
    assert (ended.code, "has only labels on which the labellers disagree" in ended.err) == (2, True)
    assert (run_of(made) / "labels.jsonl").read_bytes() == before


def test_labels_of_one_evaluator_replace_its_earlier_ones(made: Project) -> None:
    calibrate(made, LABELS)
    calibrate(made, "case_id,evaluator,verdict\ne,polite,pass\n")
    kept = (run_of(made) / "labels.jsonl").read_text().splitlines()
    assert [json.loads(line)["case_id"] for line in kept] == ["e"]


def test_damaged_labels_cost_no_more_than_themselves(made: Project) -> None:
    calibrate(made, LABELS)
    (run_of(made) / "labels.jsonl").write_text("{")
    ended = made.evalwright("re-evaluate", run_of(made))
    assert ended.code == 1
    assert "labels.jsonl  is damaged" in ended.out
    assert calibrate(made, LABELS).code == 2
