"""Reports of pydantic_evals, as `EvaluationReportAdapter` writes them."""

import json
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.transcripts import imported


def case(output: Any, *assertions: bool, name: str = "fr", **more: Any) -> dict[str, Any]:
    found = {f"a{n}": {"name": f"a{n}", "value": value, "reason": "because"} for n, value in enumerate(assertions)}
    return {"name": name, "inputs": "Capital?", "metadata": None, "expected_output": "Paris", "output": output,
            "metrics": {}, "attributes": {}, "scores": {}, "labels": {}, "assertions": found, "task_duration": 0.25,
            "total_duration": 9.0, "source_case_name": None, "trace_id": None, "evaluator_failures": [],
            **more}  # fmt: skip


def report(folder: Any, *cases: Any, name: str = "task", **more: Any) -> Any:
    document = {"name": name, "cases": [*cases], "failures": [], "analyses": [], "report_evaluator_failures": [],
                "experiment_metadata": None, "trace_id": None, "span_id": None, "dataset_name": "geo",
                **more}  # fmt: skip
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    assert detected(head_of(path)) == "pydantic-evals"
    return path


def recordings(folder: Any, *files: Any) -> tuple[Any, list[dict[str, Any]]]:
    done, cases = imported(folder, "pydantic-evals", *files)
    traces = [case["embedded_trace"] for case in cases]
    return done, [trace for item in traces for trace in (item if isinstance(item, list) else [item])]


def test_what_the_task_returned_is_kept_with_what_was_measured_and_found(tmp_path):
    found = {
        "metrics": {"input_tokens": 12, "output_tokens": 3, "cost": 0.5, "requests": 2},
        "scores": {"f1": {"value": 0.5, "reason": None}},
        "labels": {"kind": {"value": "city", "reason": "it is"}},
    }
    done, [trace] = recordings(tmp_path, report(tmp_path, case("Lyon", True, False, **found)))
    metrics = trace["metrics"]
    assert (trace["variant_name"], trace["output"]["final_answer"], trace["latency_ms"]) == ("task", "Lyon", 250)
    assert (metrics["token_input"], metrics["token_output"], metrics["cost_usd"]) == (12, 3, 0.5)
    assert metrics["custom"] == {"requests": 2, "a0": 1, "a1": 0, "f1": 0.5, "reward": 0}
    assert trace["extra"]["recorded_scores"] == [
        {"name": "a0", "passed": True, "score": 1.0, "reason": "because"},
        {"name": "a1", "passed": False, "score": 0.0, "reason": "because"},
        {"name": "f1", "passed": None, "score": 0.5, "reason": None},
        {"name": "kind", "passed": None, "score": None, "reason": "it is", "label": "city"},
    ]
    assert done.notes == []


@pytest.mark.parametrize(
    ("assertions", "broken", "reward"),
    [((True,), False, {"reward": 1}), ((), False, {}), ((True,), True, {}), ((False,), True, {"reward": 0})],
    ids=["all hold", "none", "one was not decided", "one was not decided and another does not hold"],
)
def test_all_assertions_together_are_the_reward(tmp_path, assertions, broken, reward):
    failures = [{"name": "Broken", "error_message": "ValueError: oh"}] if broken else []
    _, [trace] = recordings(tmp_path, report(tmp_path, case("Paris", *assertions, evaluator_failures=failures)))
    assert {key: value for key, value in trace["metrics"]["custom"].items() if key == "reward"} == reward
    assert [score["reason"] for score in trace["extra"].get("recorded_scores", ())][len(assertions) :] == [
        failure["error_message"] for failure in failures
    ]


@pytest.mark.parametrize(("output", "structured"), [({"city": "Paris"}, {"city": "Paris"}), (3, {"value": 3})])
def test_values_are_where_evaluators_of_a_dataset_look_for_them(tmp_path, output, structured):
    _, [trace] = recordings(tmp_path, report(tmp_path, case(output, True)))
    assert trace["output"]["structured"] == structured


def test_runs_of_a_case_are_trials_and_reports_are_systems(tmp_path):
    repeated = [case(text, True, name=f"fr [{n}/2]", source_case_name="fr") for n, text in ((1, "a"), (2, "b"))]
    files = [report(tmp_path, *repeated), report(tmp_path, *repeated[:1], name="v2")]
    done, traces = recordings(tmp_path, *files)
    assert (done.cases, done.trials) == (1, 2)
    assert [(trace["variant_name"], trace["trial"]) for trace in traces] == [("task", 0), ("task", 1), ("v2", 0)]


def test_a_task_that_failed_is_an_error(tmp_path):
    failure = {"name": "fr", "inputs": {"q": 1}, "error_message": "KeyError: 'q'", "error_stacktrace": "Traceback"}
    done, [trace] = recordings(tmp_path, report(tmp_path, failures=[failure]))
    assert trace["error"] == {"type": "task_error", "message": "KeyError: 'q'", "stack": "Traceback"}
    assert "1 recording of a run that erred, without a verdict" in done.notes


def test_scores_without_a_verdict_are_named_and_rewards_between_0_and_1_counted(tmp_path):
    scored = case("Paris", scores={"f1": {"value": 0.5}}, labels={"kind": {"value": "city"}})
    done, _ = imported(tmp_path / "a", "pydantic-evals", report(tmp_path, scored))
    assert [note.partition(":")[0] for note in done.notes] == ["recorded scores do not decide (f1)"]
    done, _ = imported(tmp_path / "b", "pydantic-evals", tmp_path / "task.json", mapping={"reward": "task_duration"})
    assert "1 reward is neither 0 nor 1: only a reward of 1 passes; see eval.yaml" in done.notes


def test_what_nothing_reads_is_counted_and_a_case_without_inputs_is_a_mistake(tmp_path):
    done, _ = imported(tmp_path / "a", "pydantic-evals", report(tmp_path, case("Paris", new=1), analyses=[{}]))
    assert done.notes == ["lost: keys 'analyses' of the report: 1", "lost: keys 'new' of cases: 1"]
    path = report(tmp_path, case("Paris"), {"name": "de"})
    with pytest.raises(InputError) as raised:
        imported(tmp_path / "b", "pydantic-evals", path)
    assert [(problem.key, problem.message[:26]) for problem in raised.value.problems] == [
        ("cases[1]", "expected a case with input")
    ]
