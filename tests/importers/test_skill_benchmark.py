"""Benchmarks of Agent Skills: recorded gradings become rewards, by eval, variant and run."""

import json

import pytest
import yaml

from evalwright.errors import InputError
from importers.transcripts import imported


def benchmark(folder, *runs):
    entries = [
        {
            "eval_id": id, "eval_name": "e", "configuration": name, "run_number": number,
            "result": {"pass_rate": rate, "total": 2, "time_seconds": 1.5, "tokens": 30},
            "expectations": [{"text": "t", "passed": rate == 1, "evidence": "seen"}],
        }
        for id, name, number, rate in runs
    ]  # fmt: skip
    document = {"metadata": {"skill_name": "pdf"}, "runs": entries, "run_summary": {}}
    (folder / "benchmark.json").write_text(json.dumps(document))
    return folder / "benchmark.json"


def test_runs_of_a_benchmark_are_trials_of_both_variants(tmp_path):
    (tmp_path / "eval-1").mkdir()
    (tmp_path / "eval-1/eval_metadata.json").write_text('{"prompt": "Merge."}')
    runs = [
        (1, "with_skill", 2, 0.5),
        (1, "with_skill", 1, 1.0),
        (1, "without_skill", 1, 0.0),
        ("b", "with_skill", 1, 1),
    ]
    _, cases = imported(tmp_path, "skill-benchmark", benchmark(tmp_path, *runs))
    first = next(case for case in cases if case["id"] == "1")
    rewards = {(t["variant_name"], t["trial"]): t["metrics"]["custom"]["reward"] for t in first["embedded_trace"]}
    assert rewards == {("with_skill", 0): 1.0, ("with_skill", 1): 0.0, ("without_skill", 0): 0.0}
    assert first["input"] == {"user_message": "Merge."}
    assert first["embedded_trace"][0]["latency_ms"] == 1500
    scores = first["embedded_trace"][0]["extra"]["recorded_scores"]
    assert scores == [{"name": "t", "passed": True, "score": None, "reason": "seen"}]
    systems = yaml.safe_load((tmp_path / "out/eval.yaml").read_text())["systems"]
    assert {system["name"] for system in systems} == {"with_skill", "without_skill"}


def test_a_folder_without_a_benchmark_is_read_by_its_gradings(tmp_path):
    grading = {"expectations": [], "summary": {"pass_rate": 1.0, "total": 1}, "timing": {}}
    for place in ("eval-x/with_skill/run-1", "eval-x/without_skill"):
        (tmp_path / "it" / place).mkdir(parents=True)
        (tmp_path / "it" / place / "grading.json").write_text(json.dumps(grading))
        (tmp_path / "it" / place / "timing.json").write_text('{"total_tokens": 3}')
    _, (case,) = imported(tmp_path, "skill-benchmark", *sorted((tmp_path / "it").rglob("*.json")))
    assert case["id"] == "x"
    assert {trace["variant_name"] for trace in case["embedded_trace"]} == {"with_skill", "without_skill"}


@pytest.mark.parametrize(
    ("timing", "milliseconds"), [({}, 2500), ({"executor_duration_seconds": 2, "total_duration_seconds": 3}, 2000)]
)
def test_what_stands_beside_a_grading_is_read(tmp_path, timing, milliseconds):
    run = tmp_path / "it/eval-merging/with_skill/run-1"
    run.mkdir(parents=True)
    (run / "grading.json").write_text(json.dumps({"expectations": [], "timing": timing}))
    (run / "timing.json").write_text(json.dumps({"total_tokens": 84852, "total_duration_seconds": 2.5}))
    (run.parents[1] / "eval_metadata.json").write_text(json.dumps({"eval_id": 0, "prompt": "Merge."}))
    _, (case,) = imported(tmp_path, "skill-benchmark", *sorted((tmp_path / "it").rglob("*.json")))
    trace = case["embedded_trace"]
    assert (case["id"], trace["latency_ms"]) == ("0", milliseconds)
    assert trace["metrics"]["custom"]["tokens"] == 84852


def test_what_is_no_run_is_named_with_its_place(tmp_path):
    file = benchmark(tmp_path)
    file.write_text(json.dumps({"run_summary": {}, "runs": [{"eval_id": 1}]}))
    with pytest.raises(InputError) as raised:
        imported(tmp_path, "skill-benchmark", file)
    assert [problem.key for problem in raised.value.problems] == ["runs[0]"]
