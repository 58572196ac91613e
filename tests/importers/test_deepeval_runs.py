"""Test runs of deepeval, as it keeps them."""

import json
from typing import Any

import pytest

from evalwright.formats.loading import load_suite
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from importers.transcripts import imported


def metric(name: str, success: bool, score: float | None, **more: object) -> dict[str, object]:
    return {"name": name, "threshold": 0.5, "success": success, "score": score, "reason": "because", "error": None,
            "evaluationModel": "m", "strictMode": False, "evaluationCost": 0.1, **more}  # fmt: skip


def case(success: bool | None, *metrics: object, **more: object) -> dict[str, object]:
    return {"name": "test_case_0", "input": "q", "actualOutput": "a", "expectedOutput": "e", "success": success,
            "metricsData": [*metrics], "runDuration": 9.0, "evaluationCost": 0.1, "order": 0, **more}  # fmt: skip


def run(folder: Any, *cases: object, **more: object) -> Any:
    document = {"testFile": None, "testCases": [*cases], "conversationalTestCases": [], "testPassed": 1, **more}
    path = folder / "run.json"
    path.write_text(json.dumps({"testRunData": document, "testRunLink": None} if more else document))
    assert detected(head_of(path)) == "deepeval"
    return imported(folder, "deepeval", path)


def test_cases_of_a_run_have_their_scores_and_what_is_known_about_the_answer(tmp_path):
    known = {"completionTime": 1.5, "tokenCost": 0.2, "tags": ["new"], "metadata": {"tier": "gold"}}
    done, [found] = run(tmp_path, case(False, metric("Faithful", False, 0.25), **known))
    trace = found["embedded_trace"]
    assert (found["id"], found["metadata"]) == ("test_case_0", {"tier": "gold", "tags": ["new"]})
    assert (trace["metrics"]["cost_usd"], trace["latency_ms"]) == (0.2, 1500)
    assert trace["metrics"]["custom"] == {"reward": 0, "Faithful": 0.25}
    assert trace["extra"]["recorded_scores"] == [
        {"name": "Faithful", "passed": False, "score": 0.25, "reason": "because"}
    ]
    assert not done.notes


def test_the_metrics_that_failed_are_the_reason_of_the_failure(tmp_path):
    failed = [metric("Faithful", False, 0.25), metric("Biased", True, 1.0), metric("Toxic", False, 0.0, reason=None)]
    run(tmp_path, case(False, *failed), case(True, metric("Faithful", True, 1.0), name="other"))
    run_dir = run_suite(load_suite(tmp_path / "out" / "eval.yaml"), RunOptions(out=tmp_path / "runs")).run_dir
    results = [json.loads(line) for line in (run_dir / "results.jsonl").read_text().splitlines()]
    (reason,) = [result["reason"] for result in results if not result["passed"]]
    assert reason == "metrics.custom.reward is 0.0, expected 1: Faithful failed ('because'), Toxic failed"


@pytest.mark.parametrize(
    ("success", "others", "custom"), [(False, [], {}), (False, [metric("b", False, 0.0)], {"reward": 0, "b": 0})]
)
def test_a_metric_that_could_not_measure_is_no_failure_of_the_answer(tmp_path, success, others, custom):
    failed = metric("a", False, None, error="timeout")
    _, [found] = run(tmp_path, case(success, failed, *others))
    trace = found["embedded_trace"]
    assert trace["metrics"]["custom"] == custom
    assert trace["extra"]["recorded_scores"][0] == {"name": "a", "passed": None, "score": None, "reason": "timeout"}


def test_conversations_of_the_latest_run_are_cases_of_their_own(tmp_path):
    turns = [{"role": "user", "content": "hi", "order": 0}, {"role": "assistant", "content": "yo", "order": 1}]
    talk = {"name": "talk_0", "success": True, "metricsData": [], "turns": turns}
    _, cases = run(tmp_path, case(True, metric("a", True, 1.0)), conversationalTestCases=[talk])
    assert [(one["id"], one["embedded_trace"]["metrics"]["custom"]["reward"]) for one in cases] == [
        ("test_case_0", 1), ("talk_0", 1)
    ]  # fmt: skip
    assert cases[1]["embedded_trace"]["output"]["final_answer"] == "yo"
