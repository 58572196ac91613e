"""AgentEvals files run as they are: cases, targets, evaluators, judges, verdicts."""

import json
import sys

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.run.forecast import forecast
from evalwright.run.options import RunOptions
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

pytestmark = pytest.mark.usefixtures("untouched_environment")

EVAL = """\
name: shop
evalcases:
  - id: greets
    expected_outcome: Greets Alice
    input: Hello, I am Alice
    execution:
      evaluators:
        - {name: short, type: latency, threshold: 60000}
        - {name: named, type: field_accuracy, fields: [{path: name}]}
    expected_output: {name: Alice}
"""
TARGETS = """\
targets:
  - {name: default, provider: mock, response: '{"name": "Alice"}'}
  - {name: other, provider: mock, responses: [{pattern: Bob, response: hi Bob}], response: '{"name": "Bob"}'}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return tmp_path


def run(project, text=EVAL, name="EVAL.yaml", **options):
    (project / name).write_text(text)
    suite = load_suite(project / name, "agentv", options=options)
    suite.out = project / "runs"
    return run_suite(suite)


def results(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {(row.case_id, row.evaluator): row for row in reader.results(EvaluationResult)}


def verdicts(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {v.case_id: v for v in reader.verdicts(CaseVerdict)}


def case(evaluators, **more):
    listed = {"id": "a", "expected_outcome": "x", "input": "hi", "execution": {"evaluators": evaluators}, **more}
    return json.dumps({"evalcases": [listed]})


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
        ({"id": "b", "expected_outcome": "x", "input": [{"role": "robot", "content": "x"}]}, "robot"),
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
    found = warnings(project, execution={"evaluators": [fields]})
    assert "median" in found["execution.evaluators[0].aggregation"]


def test_a_variable_inside_of_a_longer_value_is_told_not_to_be_replaced(project):
    targets = {"targets": [{"name": "default", "provider": "mock", "response": "Hi ${{ NAME }}"}]}
    (project / "targets.yaml").write_text(json.dumps(targets))
    assert "whole value" in warnings(project)["targets[0].response"]


def test_keys_that_nothing_reads_are_warnings(project):
    found = warnings(project, idd="x", execution={"evaluators": [], "tarjet": "x"})
    assert 'did you mean "target"' in found["execution.tarjet"]
    assert "idd" in found


def test_evaluators_of_one_name_and_their_unknown_keys_are_warnings(project):
    check = {"name": "l", "type": "latency", "threshold": 1}
    found = warnings(project, execution={"evaluators": [{**check, "treshold": 2}, check]})
    assert 'did you mean "threshold"' in found["execution.evaluators[0].treshold"]
    assert "2 evaluators are named 'l'" in found["execution.evaluators"]


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
    ],
)
def test_what_nothing_reads_of_an_evaluator_is_a_warning(project, evaluator, key):
    found = warnings(project, execution={"evaluators": [{"name": "e", **evaluator}]})
    assert "nothing reads" in found[f"execution.evaluators[0].{key}"]


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


def agent(project, code):
    (project / "agent.py").write_text("import json, sys\n" + code)
    command = f"{sys.executable} agent.py {{EVAL_ID}} {{OUTPUT_FILE}} {{PROMPT}}"
    target = {"name": "default", "provider": "cli", "command_template": command, "timeout_seconds": 5}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))


def test_a_command_answers_in_a_file(project):
    agent(
        project,
        "open(sys.argv[2], 'w').write(json.dumps({'text': sys.argv[3], 'token_usage': {'input': 3, 'output': 4}}))",
    )
    outcome = run(project, case([{"name": "t", "type": "token_usage", "max_total": 7}], input="it's $HOME"))
    reader, _ = open_run(outcome.run_dir)
    (trace,) = reader.traces(Trace)
    assert (trace.output.final_answer, trace.metrics.token_output) == ("it's $HOME", 4)
    assert outcome.exit_code == 0


def test_a_command_that_fails_is_the_error_of_its_case(project):
    agent(project, "sys.exit('broken')")
    outcome = run(project, case([{"name": "t", "type": "cost", "budget": 1}]))
    assert "broken (exit code 1)" in verdicts(outcome)["a"].error.message


def test_a_command_reads_its_prompt_from_a_file(project):
    target = {"name": "default", "provider": "cli", "command": "cat {PROMPT_FILE} > {OUTPUT_FILE}; rm {PROMPT_FILE}"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    outcome = run(project, case([{"name": "l", "type": "latency", "threshold": 60000}], input="é" * 200_000))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.output.final_answer == "é" * 200_000


def test_keys_of_env_files_are_used_and_never_stored(project):
    (project / ".env").write_text("SHOP_KEY='s3cret-value'\n")
    target = "{name: default, provider: openai, model: m, api_key: '${{ SHOP_KEY }}'}"
    (project / "targets.yaml").write_text(f"targets: [{target}, {{name: plain, provider: mock}}]\n")
    outcome = run(project, case([{"name": "c", "type": "latency", "threshold": 60000}]), target="plain")
    stored = b"".join(path.read_bytes() for path in outcome.run_dir.rglob("*") if path.is_file())
    assert b"s3cret-value" not in stored


def judged(project, replies, evaluator, **more):
    """A judge that gives its replies in turn."""
    code = (
        "import pathlib\n"
        "state = pathlib.Path('asked'); n = len(state.read_text()) if state.exists() else 0\n"
        f"replies = {replies!r}\nstate.write_text('x' * (n + 1))\n"
        "open(sys.argv[2], 'w').write(json.dumps({'text': replies[min(n, len(replies) - 1)]}))\n"
    )
    (project / "judge.py").write_text("import json, sys\n" + code)
    command = f"{sys.executable} judge.py {{EVAL_ID}} {{OUTPUT_FILE}} {{PROMPT}}"
    targets = [
        {"name": "default", "provider": "mock", "response": "an answer", "judge_target": "judge"},
        {"name": "judge", "provider": "cli", "command_template": command},
    ]
    (project / "targets.yaml").write_text(json.dumps({"targets": targets}))
    return run(project, case([evaluator] if evaluator else [], **more))


RUBRICS = [{"id": "a", "outcome": "does a"}, {"id": "b", "outcome": "does b"}]
JUDGE = {"name": "j", "type": "llm_judge"}


@pytest.mark.parametrize(
    ("replies", "score", "calls"),
    [
        (['{"score": 0.9, "hits": ["good"]}'], 0.9, 1),
        (['Sure:\n```json\n{"score": 0.65}\n```'], 0.65, 1),
        (["oops", '{"score": 1}'], 1.0, 2),
        (['{"score": 1.2}'], 0.0, 3),
        (['{"score": "0.9"}'], 0.0, 3),
        (['{"score": 1, "reasoning": null}'], 0.0, 3),
    ],
)
def test_a_judge_is_asked_until_its_reply_can_be_read(project, replies, score, calls):
    row = results(judged(project, replies, JUDGE))["a", "j"]
    assert (row.score, len((project / "asked").read_text())) == (score, calls)


def test_a_judge_that_crashes_once_is_asked_again(project):
    row = results(judged(project, [{"no text": 1}, '{"score": 1}'], {**JUDGE, "prompt": "{{ output }}"}))["a", "j"]
    assert row.score == 1.0


def test_a_command_judges_one_question_at_a_time(project):
    """Of questions at once, each would find the lock of another."""
    code = (
        "import os, time\n"
        "lock = os.open('lock', os.O_CREAT | os.O_EXCL)\ntime.sleep(0.05)\n"
        "open(sys.argv[2], 'w').write('{\"score\": 1}')\nos.remove('lock')\n"
    )
    (project / "judge.py").write_text("import sys\n" + code)
    command = f"{sys.executable} judge.py {{EVAL_ID}} {{OUTPUT_FILE}}"
    judge = {"name": "judge", "provider": "cli", "command_template": command}
    targets = [{"name": "default", "provider": "mock", "judge_target": "judge"}, judge]
    (project / "targets.yaml").write_text(json.dumps({"targets": targets}))
    members = [{**JUDGE, "name": f"j{i}"} for i in range(4)]
    outcome = run(project, case([{"name": "all", "type": "composite", "evaluators": members}]))
    assert results(outcome)["a", "all"].score == 1.0


def test_rubrics_without_a_word_of_the_judge_are_not_met_and_named(project):
    outcome = judged(project, ['{"checks": [{"id": "a", "satisfied": true}]}'], None, rubrics=RUBRICS)
    row = results(outcome)["a", "rubric"]
    assert (row.score, row.reason) == (0.5, "the judge said nothing about b")


def test_a_case_without_evaluators_is_judged_by_its_criterion(project):
    row = results(judged(project, ['{"score": 0.9}'], None))["a", "llm_judge"]
    assert row.score == 0.9


def test_a_required_rubric_that_is_missed_gates_the_case(project):
    reply = json.dumps({"checks": [{"id": "a", "satisfied": True}, {"id": "b", "satisfied": False}]})
    rubrics = [{"id": "a", "outcome": "does a", "weight": 9}, {"id": "b", "outcome": "does b", "required": True}]
    outcome = judged(project, [reply], None, rubrics=rubrics)
    row = results(outcome)["a", "rubric"]
    assert (row.score, row.detail["gated"], verdicts(outcome)["a"].status) == (0.9, True, "fail")


def test_rubrics_with_ranges_are_scored(project):
    reply = json.dumps({"checks": [{"id": "rubric-1", "score": 8}]})
    outcome = judged(project, [reply], None, rubrics=[{"score_ranges": {0: "bad", 5: "fair", 9: "good"}}])
    row = results(outcome)["a", "rubric"]
    assert (row.score, row.detail["raw_scores"]) == (0.8, {"rubric-1": 8})


def test_stored_answers_are_judged_again_without_the_system(project):
    outcome = run(project)
    (project / "targets.yaml").write_text("targets: [{name: default, provider: mock, response: 'no'}]\n")
    again = re_evaluate(outcome.run_dir)
    assert again.summary.native == outcome.summary.native


def test_borderline_is_no_pass(project):
    pair = [{"name": n, "type": "latency", "threshold": t, "weight": w} for n, t, w in (("a", 60000, 7), ("b", 0, 3))]
    (project / "slow.py").write_text("import time\ndef answer(asked):\n    time.sleep(0.05)\n    return 'x'\n")
    (project / "targets.yaml").write_text("targets: [{name: default, provider: python, callable: 'slow:answer'}]\n")
    outcome = run(project, case(pair))
    assert (verdicts(outcome)["a"].status, outcome.exit_code) == ("borderline", 1)


def with_block(**block):
    case = {"id": "a", "expected_outcome": "x", "input": [{"role": "user", "content": [block]}]}
    return json.dumps({"name": "suite", "evalcases": [case]})


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


def test_a_command_gets_the_paths_of_images(project):
    (project / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    target = {"name": "default", "provider": "cli", "command_template": "echo {PROMPT} {FILES}"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    outcome = run(project, with_block(type="image", value="cat.png"))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.output.final_answer == f'<image path="cat.png"> {project / "cat.png"}'


def test_the_end_of_a_run_tells_what_was_missed_most_often(project):
    outcome = run(project, case([{"name": "c", "type": "cost", "budget": 1}]))
    told = "\n".join(run_lines(outcome.plan, outcome.summary, Paint()))
    assert "mean 0.000, median 0.000" in told
    assert "1 × " in told.partition("Most frequent misses")[2]


@pytest.mark.parametrize(("threshold", "status"), [(0.7, "pass"), (0.71, "fail")])
def test_the_command_line_says_from_which_score_a_case_passes(project, threshold, status):
    pair = [{"name": n, "type": "contains", "value": v, "weight": w} for n, v, w in (("a", "Al", 7), ("b", "Bo", 3))]
    outcome = run(project, case(pair), threshold=threshold)
    assert verdicts(outcome)["a"].status == status


@pytest.mark.parametrize(("form", "begins"), [(None, '{"timestamp"'), ("junit", "<?xml"), ("json", '{\n  "summary"')])
def test_results_are_written_as_the_original_does(project, form, begins):
    file = project / "new" / "results"
    run(project, output=file, output_format=form)
    assert file.read_text().startswith(begins)


@pytest.mark.parametrize("given", [{"output_format": "json"}, {"output": "FOLDER"}])
def test_a_result_file_that_cannot_be_written_is_refused(project, given):
    given = {key: project if value == "FOLDER" else value for key, value in given.items()}
    with pytest.raises(InputError, match="--output"):
        run(project, **given)


REPORTED = [
    ({"text": "x", "cost_usd": -1}, "x", ["cost_usd: -1 is ignored, it cannot be"]),
    ({"text": "x", "duration_ms": -1, "token_usage": {"input": -5, "output": 2}}, "x", ["duration_ms: -1 is ignored"]),
    ({"output_messages": [1]}, '{"output_messages": [1]}', []),
    ({"output_messages": {"a": 1}}, '{"output_messages": {"a": 1}}', []),
    ({"output_messages": [{"role": 5}]}, '{"output_messages": [{"role": 5}]}', []),
    ({"output": [{"role": "assistant", "content": "new"}], "output_messages": [], "text": "old"}, "new", []),
    ({"output": [], "text": "x"}, "x", []),
    ({"output": [7], "text": "x"}, '{"output": [7], "text": "x"}', []),
    ({"output": "mine", "text": "x"}, "x", []),
    ({"text": "x", "cost_usd": float("nan")}, '{"text": "x", "cost_usd": NaN}', []),
]


@pytest.mark.parametrize(("reported", "answer", "warned"), REPORTED)
def test_what_cannot_be_of_a_report_is_not_believed(project, reported, answer, warned):
    agent(project, f"open(sys.argv[2], 'w').write({json.dumps(reported)!r})")
    outcome = run(project, case([{"name": "l", "type": "latency", "threshold": 60000}]))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    told = trace.extra.get("warnings", [])
    assert (trace.output.final_answer, trace.metrics.cost_usd, trace.metrics.token_input) == (answer, None, None)
    assert len(told) == len(warned)
    assert all(text in found for text, found in zip(warned, told, strict=True))


@pytest.mark.parametrize("command", ["printf %s, {FILES}", ["printf", "%s,", "{FILES}"]])
def test_each_file_stands_in_the_command_as_its_format_says(project, command):
    (project / "a b.txt").write_text("x")
    key = "command" if isinstance(command, list) else "command_template"
    target = {"name": "default", "provider": "cli", key: command, "files_format": "--file {path} {basename}"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    outcome = run(project, with_block(type="file", value="a b.txt"))
    (trace,) = open_run(outcome.run_dir)[0].traces(Trace)
    assert trace.output.final_answer == f"--file,{project / 'a b.txt'},a b.txt,"


def test_a_command_in_a_folder_that_is_not_there_says_so(project):
    target = {"name": "default", "provider": "cli", "command_template": "true", "cwd": "nowhere"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    assert "nowhere of the command does not exist" in verdicts(run(project))["greets"].error.message


def test_a_function_that_returns_nothing_has_not_answered(project):
    (project / "silent.py").write_text("def answer(asked):\n    pass\n")
    (project / "targets.yaml").write_text("targets: [{name: default, provider: python, callable: 'silent:answer'}]\n")
    assert "answer returned nothing" in verdicts(run(project))["greets"].error.message


@pytest.mark.parametrize(("said", "why"), [("log first", "is no JSON"), ('{"score": NaN}', "no number as 'score'")])
def test_a_code_judge_that_cannot_be_read_is_told_with_what_it_said(project, said, why):
    judge = {"name": "j", "type": "code_judge", "script": ["echo", said]}
    row = results(run(project, case([judge])))["a", "j"]
    assert (row.score, why in row.reason, said in row.reason) == (0, True, True)


def test_a_command_may_be_a_text_for_the_shell(project):
    target = {"name": "default", "provider": "cli", "command": "echo {EVAL_ID} | tr a-z A-Z"}
    (project / "targets.yaml").write_text(json.dumps({"targets": [target]}))
    (trace,) = open_run(run(project).run_dir)[0].traces(Trace)
    assert trace.output.final_answer == "GREETS"


MARKED = {"tool": "search", "input": {}, "start_time": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("call", [{**MARKED, "id": [1]}, {**MARKED, "end_time": "2026-01-01T00:00:01"}])
def test_calls_with_odd_ids_and_times_are_calls_all_the_same(project, call):
    said = {"output_messages": [{"role": "assistant", "content": "x", "tool_calls": [call]}]}
    agent(project, f"open(sys.argv[2], 'w').write({json.dumps(said)!r})")
    outcome = run(project, case([{"name": "t", "type": "tool_trajectory", "minimums": {"search": 1}}]))
    assert results(outcome)["a", "t"].score == 1


def test_a_dry_run_tells_the_chosen_cases_that_a_run_could_not_read(project):
    sound = json.loads(case([{"name": "c", "type": "latency", "threshold": 60000}]))["evalcases"]
    (project / "EVAL.yaml").write_text(json.dumps({"evalcases": [*sound, {"id": "b", "input": "hi"}]}))
    suite = load_suite(project / "EVAL.yaml")
    assert not forecast(suite, RunOptions(cases=("a",))).unread
    found = forecast(suite, RunOptions())
    assert (found.cells, "expected_outcome" in found.unread[0].message) == (1, True)
    suite.out = project / "runs"
    for ask in (forecast, run_suite):  # with nothing to run neither does
        with pytest.raises(InputError, match="expected_outcome"):
            ask(suite, RunOptions(cases=("b",)))
    assert not any((project / "runs").glob("*_*"))
