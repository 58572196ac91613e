"""AgentEvals files run as they are: cases, targets, evaluators, judges, verdicts."""

import json

import pytest
import yaml

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.trace import Trace
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.run.forecast import forecast
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from formats.agentv.projects import EVAL, case, results, run, verdicts, with_block

pytestmark = pytest.mark.usefixtures("untouched_environment")


def test_a_file_is_recognised_and_run(project):
    (project / "EVAL.yaml").write_text(EVAL)
    assert load_suite(project / "EVAL.yaml").dialect == "agentv"
    outcome = run(project)
    assert {key: row.score for key, row in results(outcome).items()} == {
        ("greets", "short"): 1.0,
        ("greets", "named"): 1.0,
    }
    assert outcome.exit_code == 0
    assert outcome.summary.native["mean_score"] == 1.0


def test_the_command_line_chooses_the_target(project):
    assert verdicts(run(project, target="other"))["greets"].status == "fail"


def test_a_case_has_its_own_target_and_limits(project):
    text = case([{"name": "c", "type": "latency", "threshold": 60000}]).replace(
        '"evaluators"', '"target": "other", "timeout_seconds": 5, "evaluators"'
    )
    reader, _ = open_run(run(project, text).run_dir)
    assert [t.output.final_answer for t in reader.traces(Trace)] == ['{"name": "Bob"}']


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"id": 5, "expected_outcome": "x", "input": "hi"}, "id"),
        ({"id": "b", "input": "hi"}, "expected_outcome"),
        ({"id": "b", "expected_outcome": "x"}, "input"),
        ({"id": "b", "expected_outcome": "x", "input": []}, "empty"),
        (
            {"id": "b", "expected_outcome": "x", "input": [{"role": "robot", "content": "x"}]},
            "(b): input[0].role: unknown role 'robot'",
        ),
        ({"id": "b", "expected_outcome": "x", "input": [{"role": "user", "content": 7}]}, "content"),
        ({"id": "b", "expected_outcome": "x", "input": "hi", "rubrics": [{"weight": 1}]}, "rubrics"),
        ({"id": "b", "expected_outcome": "x", "input": "hi", "evaluators": [{"name": "e", "type": "magic"}]}, "magic"),
        ({"id": "b", "expected_outcome": "x", "input": "hi", "evaluators": [{"type": "cost", "budget": 1}]}, "name"),
        ({"id": "b", "expected_outcome": "x", "input": "hi", "execution": {"target": "gone"}}, "gone"),
        (
            {
                "id": "b",
                "expected_outcome": "x",
                "input": "hi",
                "evaluators": [{"name": "e", "type": "llm_judge", "target": "nobody"}],
            },
            "nobody",
        ),
        ("text", "mapping"),
    ],
)
def test_a_case_that_cannot_be_read_is_an_error_and_the_others_run(project, entry, said):
    sound = json.loads(case([{"name": "c", "type": "latency", "threshold": 60000}]))["evalcases"]
    outcome = run(project, json.dumps({"evalcases": [*sound, entry]}))
    found = verdicts(outcome)
    (lost,) = [v for v in found.values() if v.case_id != "a"]
    assert (found["a"].status, lost.status) == ("pass", "error")
    assert said in lost.error.message
    assert (outcome.exit_code, outcome.summary.cells_unread) == (3, 1)


@pytest.mark.parametrize("text", ["a: 1\n", "- 1\n", "evalcases: {}\n", "", "evalcases: [\n"])
def test_files_that_are_no_suites_are_refused(project, text):
    with pytest.raises(InputError):
        run(project, text)


def test_a_folder_without_targets_is_named_as_one(project):
    with pytest.raises(InputError, match=r"this folder has no targets\.yaml, targets\.yml, \.agentv"):
        run(project, targets=project / ".git")


def test_ids_must_be_unique(project):
    twice = json.loads(case([]))["evalcases"] * 2
    with pytest.raises(InputError, match="duplicate id 'a'"):
        run(project, json.dumps({"evalcases": twice}))


def warnings(project, **more):
    (project / "EVAL.yaml").write_text(case([], **more))
    suite = load_suite(project / "EVAL.yaml", "agentv")
    assert not suite.cases.problems
    return {problem.key.removeprefix("evalcases[0]."): problem.message for problem in suite.warnings}


def test_what_is_no_rubric_is_passed_over_with_a_warning(project):
    assert "5" in warnings(project, rubrics=[5, "greets"])["rubrics[0]"]


def test_an_unknown_aggregation_is_a_warning(project):
    fields = {"name": "f", "type": "field_accuracy", "fields": [{"path": "a"}], "aggregation": "median"}
    listed = warnings(project, execution={"evaluators": [fields]})
    assert "median" in listed["execution.evaluators[0].aggregation"]


def test_a_variable_inside_of_a_longer_value_is_told_not_to_be_replaced(project):
    targets = {"targets": [{"name": "default", "provider": "mock", "response": "Hi ${{ NAME }}"}]}
    (project / "targets.yaml").write_text(json.dumps(targets))
    assert "whole value" in warnings(project)["targets[0].response"]


def test_keys_that_nothing_reads_are_warnings(project):
    listed = warnings(project, idd="x", execution={"evaluators": [], "tarjet": "x"})
    assert 'did you mean "target"' in listed["execution.tarjet"]
    assert "idd" in listed


def test_mistakes_in_what_all_cases_share_are_told_once_and_at_their_own_place(project):
    shared = [
        {"name": "l", "type": "latency", "threshold": 5, "thrshold": 6},
        {"name": "x", "type": "magic"},
        {"name": "y", "type": "magik"},
    ]
    cases = [{"id": i, "expected_outcome": "x", "input": "hi"} for i in "ab"]
    head = {"name": "shop", "execution": {"evaluators": shared}}
    (project / "EVAL.yaml").write_text(yaml.safe_dump({**head, "evalcases": cases}, sort_keys=False))
    suite = load_suite(project / "EVAL.yaml", "agentv")
    both = ["execution.evaluators[1].type", "execution.evaluators[2].type"]
    assert [problem.key for problem in suite.cases.problems] == both
    assert [(problem.key, problem.line) for problem in suite.warnings] == [("execution.evaluators[0].thrshold", 7)]
    assert all(key in case.extra["load_error"] for case in suite.cases for key in both)


def test_evaluators_of_one_name_and_their_unknown_keys_are_warnings(project):
    check = {"name": "l", "type": "latency", "threshold": 1}
    listed = warnings(project, execution={"evaluators": [{**check, "treshold": 2}, check]})
    assert 'did you mean "threshold"' in listed["execution.evaluators[0].treshold"]
    assert "2 evaluators are named 'l'" in listed["execution.evaluators"]


@pytest.mark.parametrize(
    ("evaluator", "key"),
    [
        ({"type": "contains", "value": "x", "colour": 1}, "colour"),
        ({"type": "llm_judge", "promt": "x"}, "promt"),
        ({"type": "llm_judge", "config": {"seed": 1}}, "config.seed"),
        ({"type": "rubric", "rubrics": ["polite"], "prompt": "x"}, "prompt"),
        ({"type": "rubric", "rubrics": [{"outcome": "polite", "wieght": 2}]}, "rubrics[0].wieght"),
        ({"type": "composite", "evaluators": [{"name": "m", "type": "is_json", "odd": 1}]}, "evaluators[0].odd"),
        ({"type": "composite", "mode": "all", "evaluators": [{"name": "m", "type": "is_json"}]}, "mode"),
        (
            {
                "type": "composite",
                "evaluators": [{"name": "m", "type": "is_json"}],
                "aggregator": {"type": "minimum", "weights": {"m": 2}},
            },
            "aggregator.weights",
        ),
        (
            {
                "type": "composite",
                "evaluators": [{"name": "m", "type": "is_json"}],
                "aggregator": {"type": "minimum", "prompt": "Is it good?"},
            },
            "aggregator.prompt",
        ),
        ({"type": "tool_trajectory", "expected": [{"tool": "a", "arg": {}}]}, "expected[0].arg"),
        ({"type": "field_accuracy", "fields": [{"path": "a", "wieght": 2}]}, "fields[0].wieght"),
        (
            {"type": "rubric", "rubrics": [{"score_ranges": [{"score_range": [0, 10], "outcome": "x", "odd": 1}]}]},
            "rubrics[0].score_ranges[0].odd",
        ),
    ],
)
def test_what_nothing_reads_of_an_evaluator_is_a_warning(project, evaluator, key):
    listed = warnings(project, execution={"evaluators": [{"name": "e", **evaluator}]})
    assert "nothing reads" in listed[f"execution.evaluators[0].{key}"]


MEMBER = {"name": "m", "type": "is_json"}


@pytest.mark.parametrize(
    ("evaluator", "key", "said"),
    [
        ({"evaluators": [{**MEMBER, "required": True}]}, "evaluators", "required of m is not used"),
        ({"aggregator": {"type": "weighted_average", "weights": {"z": 1}}}, "aggregator.weights", "no member 'z'"),
        ({"aggregator": {"type": "safety_gate"}}, "aggregator.required", "the gate never closes"),
        ({"aggregator": {"type": "llm_judge", "prompt": "good?"}}, "aggregator.prompt", "sees no results"),
        ({"type": "rubric", "rubrics": [{"outcome": "x", "min_score": 0.5}]}, "rubrics[0]", "has no effect"),
        ({"type": "tool_trajectory", "mode": "exact", "expected": []}, "expected", "every trace passes"),
    ],
)
def test_what_an_evaluator_does_not_do_is_a_warning(project, evaluator, key, said):
    listed = warnings(
        project, execution={"evaluators": [{"name": "e", "type": "composite", "evaluators": [MEMBER], **evaluator}]}
    )
    assert said in listed[f"execution.evaluators[0].{key}"]


@pytest.mark.parametrize(
    ("evaluator", "said"),
    [
        ({"type": "code_judge", "script": ["true"], "cwd": 5}, "cwd: expected the name of a folder, found 5"),
        ({"type": "llm_judge", "target": 5}, "target: expected the name of a target, found 5"),
        ({"type": "llm_judge", "config": [1]}, "config: expected a mapping, found a list"),
        ({"type": "llm_judge", "config": {"max_tokens": 0}}, "max_tokens: e: 'max_tokens' must be"),
        ({"aggregator": {"type": "llm_judge", "prompt": "none.md"}}, "aggregator.prompt: there is no file 'none.md'"),
        ({"aggregator": {"weights": {}}}, "aggregator.type: e: expected one of weighted_average"),
        ({"aggregator": {"type": "safety_gate", "required": "m"}}, "aggregator.required: e: expected a list"),
        ({"evaluators": [{"name": "m", "type": "magic"}]}, "evaluators[0].type: unknown type 'magic'"),
        ({"evaluators": []}, "needs at least one readable member"),
        ({"type": "rubric", "rubrics": [{"outcome": " "}]}, "rubrics: rubrics of 'e': expected text"),
    ],
)
def test_mistakes_of_an_evaluator_are_told_once(project, evaluator, said):
    settings = {"name": "e", "type": "composite", "evaluators": [MEMBER], **evaluator}
    (project / "EVAL.yaml").write_text(case([settings]))
    (read,) = load_suite(project / "EVAL.yaml", "agentv").cases
    assert read.extra["load_error"].count(said) == 1
    assert "; " not in read.extra["load_error"]


def test_expected_messages_may_be_none_and_json_needs_a_value(project):
    (project / "EVAL.yaml").write_text(case([], expected_messages=[]))
    (read,) = load_suite(project / "EVAL.yaml", "agentv").cases
    assert (read.extra["expected_messages"], read.extra["reference_answer"]) == ([], "")
    (project / "EVAL.yaml").write_text(with_block(type="json"))
    (read,) = load_suite(project / "EVAL.yaml", "agentv").cases
    assert "a block of type 'json' needs a 'value'" in read.extra["load_error"]


def test_expected_files_are_resolved(project):
    (project / "answer.txt").write_text("42")
    block = {"type": "file", "value": "answer.txt"}
    text = case([], expected_output=[{"role": "assistant", "content": [block]}])
    (project / "EVAL.yaml").write_text(text)
    (loaded,) = load_suite(project / "EVAL.yaml", "agentv").cases
    (found,) = loaded.extra["expected_messages"][0]["content"]
    assert (found["text"], found["resolvedPath"]) == ("42", str(project / "answer.txt"))


def test_json_lines_have_a_sidecar(project):
    (project / "d.yaml").write_text(
        "name: big\nexecution: {evaluators: [{name: l, type: latency, threshold: 60000}]}\n"
    )
    line = json.dumps({"id": "a", "expected_outcome": "x", "input": "hi"})
    outcome = run(project, line + "\n\n", "d.jsonl")
    assert list(results(outcome)) == [("a", "l")]
    assert "big" in outcome.run_dir.name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targets: {}\n", "expected a list"),
        ("targets: [{provider: mock}]\n", "needs a name"),
        ("targets: [{name: default, provider: telepathy}]\n", "telepathy"),
        ("targets: [{name: main, provider: mock}]\n", "no target 'default'"),
        ("targets: [{name: default, provider: cli}]\n", "command_template"),
        ("targets: [{name: default, provider: cli, command_template: 'x {CASE}'}]\n", "CASE"),
        (
            "targets: [{name: default, provider: cli, command_template: '${{ NOT_SET_ANYWHERE }}'}]\n",
            "NOT_SET_ANYWHERE",
        ),
    ],
)
def test_targets_that_cannot_be_used_are_refused(project, text, said):
    (project / "targets.yaml").write_text(text)
    with pytest.raises(InputError) as raised:
        run(project)
    assert said in str(raised.value)


def test_without_targets_a_file_can_be_checked_but_not_run(project):
    (project / "targets.yaml").unlink()
    with pytest.raises(InputError, match=r"no targets\.yaml"):
        run(project)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("none.png", "there is no file 'none.png' (tried: "),
        ("text.png", "not a PNG, JPEG, GIF or WebP image"),
        ("data:image/png;base64,eA==", "not a PNG, JPEG, GIF or WebP image"),
        ("data:image/png,x", "the data URL does not contain base64"),
        ("a" * 5000 + ".png", "there is no file 'aaa"),
        ("../outside.png", "lies outside of the suite's repository"),
        ("link.png", "outside of the suite's repository"),
        ("large.png", "the image is larger than 20 MiB"),
    ],
)
def test_an_image_that_cannot_be_shown_is_an_error_of_its_case(tmp_path, monkeypatch, value, problem):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    (tmp_path / "outside.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (project / "link.png").symlink_to(tmp_path / "outside.png")
    (project / "text.png").write_text("a cat")
    with (project / "large.png").open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(20 * 2**20 + 1)
    (project / "EVAL.yaml").write_text(with_block(type="image", value=value))
    suite = load_suite(project / "EVAL.yaml", "agentv")
    (case,) = suite.cases
    assert problem in case.extra["load_error"]


def test_the_end_of_a_run_tells_what_was_missed_most_often(project):
    outcome = run(project, case([{"name": "c", "type": "cost", "budget": 1}]))
    told = "\n".join(run_lines(outcome.plan, outcome.summary, Paint()))
    assert "mean 0.000, median 0.000" in told
    assert "1 × " in told.partition("Most frequent misses")[2]


@pytest.mark.parametrize(("form", "begins"), [(None, '{"timestamp"'), ("junit", "<?xml"), ("json", '{\n  "summary"')])
def test_results_are_written_as_the_original_does(project, form, begins):
    file = project / "new" / "results"
    run(project, output=file, output_format=form)
    assert file.read_text().startswith(begins)


@pytest.mark.parametrize("name", ["", " ", None])
def test_an_evaluator_needs_a_name_that_can_be_read(project, name):
    with pytest.raises(InputError, match=r"evaluators\[0\]\.name .* needs a name"):
        run(project, case([{"name": name, "type": "is-json"}]))


def test_results_may_be_documents_of_yaml(project):
    run(project, case([{"name": "c", "type": "is-json"}]), output=project / "documents", output_format="yaml")
    (document,) = yaml.safe_load_all((project / "documents").read_text())
    assert (document["eval_id"], document["score"], document["misses"]) == ("a", 1.0, [])


@pytest.mark.parametrize("given", [{"output_format": "json"}, {"output": "FOLDER"}])
def test_a_result_file_that_cannot_be_written_is_refused(project, given):
    given = {key: project if value == "FOLDER" else value for key, value in given.items()}
    with pytest.raises(InputError, match="--output"):
        run(project, **given)


def test_a_dry_run_tells_the_chosen_cases_that_a_run_could_not_read(project):
    sound = json.loads(case([{"name": "c", "type": "latency", "threshold": 60000}]))["evalcases"]
    (project / "EVAL.yaml").write_text(json.dumps({"evalcases": [*sound, {"id": "b", "input": "hi"}]}))
    suite = load_suite(project / "EVAL.yaml")
    assert not forecast(suite, RunOptions(cases=("a",))).unread
    expected = forecast(suite, RunOptions())
    assert (expected.cells, "expected_outcome" in expected.unread[0].message) == (1, True)
    suite.out = project / "runs"
    for ask in (forecast, run_suite):  # with nothing to run neither does
        with pytest.raises(InputError, match="expected_outcome"):
            ask(suite, RunOptions(cases=("b",)))
    assert not any((project / "runs").glob("*_*"))
