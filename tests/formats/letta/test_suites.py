"""Suites of Letta Evals run as they are: files in, verdicts, gate and numbers out."""

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.trace import Trace
from evalwright.reports.reasons import group_reasons
from evalwright.reports.terminal import failure_lines
from evalwright.reports.text import Paint
from evalwright.run.stored_run import open_run
from formats.letta.projects import AGENT, SUITE, lines_of, rows, run, statuses


def test_a_suite_is_recognised_run_and_gated(project):
    outcome = run(project)
    assert statuses(outcome) == {"0": "pass", "1": "fail"}
    assert (outcome.summary.gate.passed, outcome.exit_code) == (True, 0)
    assert outcome.summary.native["avg_score_attempted"] == 0.5
    assert rows(outcome)["0", "right"].detail["submission"] == "It is Paris"


def test_booleans_have_the_spellings_of_the_originals_yaml(project):
    marked = "extractor: after_marker, extractor_config: {marker: x, include_marker: yes}"
    suite = SUITE.replace("function: contains", f"function: contains, {marked}") + "cleanup: off\n"
    (project / "suite.yaml").write_text(suite)
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    assert loaded.evaluators[0].extractor.config["include_marker"] is True
    assert loaded.variants[0].config["cleanup"] is False


def test_a_gate_that_is_not_reached_fails_the_run(project):
    assert run(project, SUITE.replace("0.5", "0.6")).exit_code == 1


def test_messages_are_asked_in_one_conversation(project):
    data = '{"input": ["I am Ada", "Who am I?"], "ground_truth": "Ada"}\n'
    outcome = run(project, data=data, target="agent.py:remembers")
    assert statuses(outcome) == {"0": "pass"}
    reader, _ = open_run(outcome.run_dir)
    assert [t.extra["blocks"] for t in reader.traces(Trace)] == [{"human": "Ada"}]


def test_turns_with_a_ground_truth_each_are_graded_alone(project):
    data = '{"input": ["capital of France?", "of Italy?"], "ground_truth": ["paris", "Rome"]}\n'
    row = rows(run(project, data=data))["0", "right"]
    assert (row.score, row.detail["turns"], row.passed) == (0.5, [1.0, 0.0], False)


def test_factories_make_an_agent_of_each_sample(project):
    suite = SUITE.replace("agent_id: agent-1", "agent_script: agent.py:stocked")
    data = '{"input": "stock?", "ground_truth": "apples (m)", "agent_args": {"item": "apples"}}\n{"input": "none?"}\n'
    outcome = run(project, suite, data, "agent.py:stock")
    assert statuses(outcome) == {"0": "pass", "1": "error"}


COUNTED = """

@agent_factory
async def counted(client, sample: Sample) -> str:
    others = len(await client.agents.list())
    return (await client.agents.create(memory_blocks=[CreateBlock(label="others", value=str(others))])).id


def knows_italy(message, ctx):
    if "France" in message:
        raise RuntimeError("server hiccup")
    return "Rome, beside " + ctx.blocks["others"]
"""


def test_an_agent_is_also_deleted_if_its_conversation_fails(project):
    with (project / "agent.py").open("a") as file:
        file.write(COUNTED)
    suite = SUITE.replace("agent_id: agent-1", "agent_script: agent.py:counted") + "cleanup: true\nmax_concurrent: 1\n"
    outcome = run(project, suite, target="agent.py:knows_italy")
    assert statuses(outcome)["0"] == "error"
    assert rows(outcome)["1", "right"].detail["submission"] == "Rome, beside 0"


def test_users_graders_and_extractors_are_called_with_letta_types(project):
    suite = SUITE.replace("function: contains}", "function: agent.py:halves, extractor: agent.py:tools}")
    row = rows(run(project, suite, target="agent.py:uses_a_tool"))["0", "right"]
    assert (row.score, row.reason) == (0.5, "0 said find")


def test_a_grader_that_raises_spoils_its_sample(project):
    suite = SUITE.replace("function: contains}", "function: agent.py:explodes}")
    outcome = run(project, suite)
    assert statuses(outcome) == {"0": "error", "1": "error"}
    assert rows(outcome)["0", "plain"].detail["not_counted"] == {"passed": True, "score": 1.0}
    assert (outcome.exit_code, outcome.summary.gate.undecided) == (3, True)


def test_a_judge_is_asked_again_only_where_the_suite_says_so(project):
    judge = "kind: model_judge, prompt: '{submission}'"
    for more, retries in (("", None), (", reply_retries: 2", 2)):
        (project / "suite.yaml").write_text(SUITE.replace("kind: tool, function: contains", judge + more))
        right, _ = load_suite(project / "suite.yaml").evaluators
        assert right.config.get("reply_retries") == retries
    (project / "suite.yaml").write_text(SUITE.replace("kind: tool, function: contains", f"{judge}, reply_retries: 4"))
    with pytest.raises(InputError, match="reply_retries"):
        load_suite(project / "suite.yaml")


@pytest.mark.parametrize(("target", "kind"), [("agent.py:silent", "empty_trajectory"), (None, "not_judged")])
def test_what_cannot_be_judged_is_an_error(project, target, kind):
    outcome = run(project, target=target)
    assert rows(outcome)["0", "right"].error.type == kind
    assert statuses(outcome) == {"0": "error", "1": "error"}


def test_the_share_of_errors_can_fail_a_run(project):
    suite = SUITE.replace("value: 0.5", "value: 0")
    assert run(project, suite, target="agent.py:raises").exit_code == 3
    assert run(project, suite, target="agent.py:raises", max_error_rate=0.5).exit_code == 1


@pytest.mark.parametrize("asks", ["", "reward: {kind: metric, metric_key: right}\n"])
def test_a_gate_or_a_reward_of_samples_that_all_crashed_is_undecided(project, asks):
    suite = SUITE[: SUITE.index("gate:")] + asks if asks else SUITE.replace("value: 0.5", "value: 0")
    outcome = run(project, suite, target="agent.py:raises")
    assert (outcome.exit_code, outcome.summary.gate.undecided) == (3, True)
    assert outcome.summary.gate.parts[0].n == 0


def test_a_suite_passes_when_one_of_its_runs_does(project):
    outcome = run(project, SUITE + "num_runs: 2\n")
    assert outcome.summary.native["statistics"]["runs_passed"] == 2
    assert set(outcome.summary.native) == {"run_1", "run_2", "statistics"}


def test_each_of_several_runs_keeps_what_its_gate_measured_and_its_errors(project):
    (project / "agent.py").write_text(
        AGENT + "\n\ndef worsens(message, ctx):\n"
        "    return knows_france(message, ctx) if ctx.run == 1 or 'Italy' in message else 1 / 0\n"
    )
    gate = run(project, SUITE + "num_runs: 2\n", target="agent.py:worsens").summary.gate
    assert [(r.passed, r.parts[0].value, r.parts[0].n, r.reason) for r in gate.runs] == [
        (True, 0.5, 2, "0 of 2 rows had errors (0.0%)"),
        (False, 0.0, 1, "1 of 2 rows had errors (50.0%)"),
    ]


def test_models_are_variants(project):
    suite = SUITE.replace("agent_id: agent-1", "agent_id: agent-1, model_handles: [z, a]")
    outcome = run(project, suite)
    assert [v.name for v in outcome.summary.variants] == ["z", "a"]
    assert [m["model_name"] for m in outcome.summary.native["per_model"]] == ["a", "z"]


def configured(project, names):
    suite = SUITE.replace("agent_id: agent-1", f"agent_id: agent-1, model_configs: {names}")
    (project / "suite.yaml").write_text(suite)
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    return {variant.name: variant.config["model"] for variant in loaded.variants}


def test_model_configurations_are_those_that_the_original_ships_or_files_of_the_suite(project):
    (project / "own.json").write_text('{"model": "m-1", "context_window": 8000}')
    models = configured(project, "[openai-gpt-4.1, own]")
    assert models == {"gpt-4.1-2025-04-14": "gpt-4.1-2025-04-14", "m-1": "m-1"}


def test_configurations_of_one_model_are_variants_by_their_own_names(project):
    models = configured(project, "[claude-4-sonnet, claude-4-sonnet-extended]")
    assert models == dict.fromkeys(("claude-4-sonnet", "claude-4-sonnet-extended"), "claude-sonnet-4-20250514")


@pytest.mark.parametrize("content", ["[]", "{}", '{"model": 1}', "{"])
def test_a_model_configuration_without_a_model_is_refused(project, content):
    (project / "own.json").write_text(content)
    with pytest.raises(InputError, match=r"own\.json: expected a JSON object with the name of a 'model'"):
        configured(project, "[own]")


@pytest.mark.parametrize("key", ["model_handles", "model_configs"])
def test_an_empty_list_of_models_is_refused(project, key):
    with pytest.raises(InputError, match=f"{key}  expected a list of names, found an empty list"):
        run(project, SUITE.replace("agent_id: agent-1", f"agent_id: agent-1, {key}: []"))


def test_numbers_may_be_texts_as_in_the_original(project):
    target = "agent_id: agent-1, max_retries: '2', timeout: '30'"
    judged = "right: {kind: model_judge, prompt: x, temperature: '0.5', timeout: '9', max_retries: 3.0}"
    suite = SUITE.replace("agent_id: agent-1", target).replace("right: {kind: tool, function: contains}", judged)
    (project / "suite.yaml").write_text(suite + "max_samples: '1'\nnum_runs: '3'\nmax_concurrent: 2.0\n")
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    judge = loaded.evaluators[0].config
    assert (judge["temperature"], judge["timeout"], judge["max_attempts"]) == (0.5, 9.0, 4)
    assert (loaded.run.trials, loaded.run.max_concurrency, loaded.run.retry.max_attempts) == (3, 2, 3)
    assert (len([*loaded.cases]), loaded.variants[0].timeout_seconds) == (1, 30.0)


def test_a_setup_script_without_a_name_is_none(project):
    assert run(project, SUITE + "setup_script: ''\n").exit_code == 0


def test_keys_that_are_numbers_are_their_text(project):
    config = "extractor: pattern, extractor_config: {pattern: Paris, 1: x, b: y}"
    suite = SUITE.replace("right: {kind: tool, function: contains", f"1: {{kind: tool, function: contains, {config}")
    outcome = run(project, suite.replace("metric_key: right", "metric_key: '1'"))
    assert rows(outcome)["0", "1"].score == 1.0


@pytest.mark.parametrize(
    ("grader", "told"),
    [
        ("boasts", "score: expected less than or equal to 1, found 2.0"),
        ("forgets", "score: the key is missing, found {'rationale': 'fine'}"),
        ("says_nothing", "expected a GradeResult, found None"),
    ],
)
def test_what_is_no_score_is_an_error_however_it_came_about(project, grader, told):
    outcome = run(project, SUITE.replace("function: contains}", f"function: agent.py:{grader}}}"))
    error = rows(outcome)["0", "right"].error
    assert (error.type, error.message) == ("grader_error", f"the grader returned no GradeResult: {told}")


def test_a_grade_that_cannot_be_created_is_told_on_one_line(project):
    outcome = run(project, SUITE.replace("function: contains}", "function: agent.py:overrates}"))
    assert rows(outcome)["0", "right"].error.message == (
        "the grader raised ValidationError: GradeResult: score: expected less than or equal to 1, found 1.5; "
        "rationale: expected a string, found 3"
    )


def test_a_truth_value_is_a_score_as_in_the_original(project):
    outcome = run(project, SUITE.replace("function: contains}", "function: agent.py:agrees}"))
    assert [rows(outcome)[case, "right"].score for case in "01"] == [1.0, 0.0]


def test_a_suite_without_a_pass_mark_shows_scores(project):
    outcome = run(project, SUITE)
    lines = lines_of(outcome)
    assert "evaluator scores score per result" in lines
    assert "right 2 0.500" in lines
    assert not any("pass rate" in line for line in lines)
    reader, _ = open_run(outcome.run_dir)
    lines = failure_lines(*group_reasons(reader, outcome.summary), outcome.plan, outcome.summary, "run", Paint(False))
    reader.close()
    assert (lines[0], lines[2]) == ("Scores below 1 (1 cell)", "      · 1")


@pytest.mark.parametrize("gate", ["pass_threshold: 0.5, kind: simple", "metric: avg_score"])
def test_a_suite_with_a_pass_mark_shows_passes(project, gate):
    outcome = run(project, SUITE.replace("kind: simple", gate))
    assert any(line.startswith("variant pass rate") for line in lines_of(outcome))


def test_a_suite_is_run_from_python(project, monkeypatch):
    import asyncio

    from evalwright.letta import run_suite as run_letta

    monkeypatch.chdir(project)
    found = asyncio.run(
        run_letta(project / "suite.yaml", 2, output_path=project / "out", num_runs=2, target="agent.py:knows_france")
    )
    assert (found.gates_passed, found.run_statistics["runs_passed"]) == (True, 2)
    assert found.results[0]["grades"]["right"]["score"] == 1.0
    assert json.loads((project / "out" / "aggregate_stats.json").read_text())["num_runs"] == 2


def test_a_callback_beside_a_style_is_refused(project):
    import asyncio

    from evalwright.letta import run_suite as run_letta

    with pytest.raises(ValueError, match="found both"):
        asyncio.run(run_letta(project / "suite.yaml", custom_progress_callback=object(), progress_style="rich"))
