"""Results as letta-evals writes them: what is in the files, and that they are as good as the run they came from."""

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.run.start import retry, run_suite

SUITE = """\
name: support
dataset: data.jsonl
target: {kind: letta_agent, agent_id: agent-1, api_key: sk-of-the-server}
graders:
  right: {kind: tool, function: contains}
  plain: {kind: tool, function: ascii_printable_only}
gate: {kind: simple, metric_key: right, op: gte, value: 0.3}
"""
DATA = """\
{"id": "fr", "input": "capital of France?", "ground_truth": "Paris", "tags": ["geo"]}
{"id": 7, "input": "crash", "ground_truth": "Paris"}
{"input": "be quiet", "ground_truth": "Paris"}
{"input": ["of Italy?", "of France?"], "ground_truth": ["Rome", "Paris"]}
"""
AGENT = """\
from letta_evals import RewardOutput, grader, reward_composer

LEFT = []


def answers(message, ctx):
    if message == "crash":
        raise RuntimeError("no server")
    ctx.usage = {"prompt_tokens": 3, "completion_tokens": 2}
    ctx.blocks["asked"] = message
    return "It is Paris" if "France" in message else None if "quiet" in message else "No idea"


def recovers(message, ctx):
    if message == "crash" and not LEFT:
        LEFT.append(message)
        raise RuntimeError("no server")
    return "Paris"


@grader
def picky(sample, submission):
    raise ValueError("cannot read it")


@reward_composer
def both(ctx):
    return RewardOutput(score=0.5 * ctx.grades["right"].score)


@reward_composer
def worst(ctx):
    return min(grade.score for grade in ctx.grades.values())
"""


@pytest.fixture
def project(folder):
    (folder / "agent.py").write_text(AGENT)
    (folder / "data.jsonl").write_text(DATA)
    return folder


def run(project, suite=SUITE, output="out", **options):
    (project / "suite.yaml").write_text(suite)
    given = {"target": "agent.py:answers", "output": project / output, **options}
    return run_suite(load_suite(project / "suite.yaml", options=given))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def results(path):
    return [line["result"] for line in lines(path / "results.jsonl")]


def test_every_sample_is_a_result_in_the_order_of_the_dataset(project):
    run(project)
    assert [row["sample"]["id"] for row in results(project / "out")] == ["fr", 7, 2, 3]


def test_a_result_holds_the_answer_and_every_grade(project):
    run(project)
    row = results(project / "out")[0]
    assert row["submissions"] == {"right": "It is Paris", "plain": "It is Paris"}
    assert row["trajectory"] == [[{"message_type": "assistant_message", "content": "It is Paris"}]]
    assert row["grade"] == row["grades"]["right"]
    assert row["grade"]["score"] == 1.0
    assert row["agent_state"] == {"blocks": [{"label": "asked", "value": "capital of France?"}]}
    assert (row["prompt_tokens"], row["completion_tokens"]) == (3, 2)


def test_a_failed_sample_has_no_grades(project):
    run(project)
    row = results(project / "out")[1]
    assert (row["grades"], row["trajectory"], row["grade"]["score"]) == (None, [], 0.0)
    assert row["grade"]["rationale"].startswith("Error: RuntimeError: no server")
    assert row["error"]["category"] == "target"


def test_a_failure_of_grading_keeps_the_conversation(project):
    run(project, SUITE.replace("function: ascii_printable_only", "function: 'agent.py:picky'"))
    row = results(project / "out")[0]
    assert (row["grades"], row["error"]["category"], len(row["trajectory"])) == (None, "grading", 1)


def test_turns_keep_their_grades(project):
    run(project)
    turns = results(project / "out")[3]["grades"]["right"]["per_turn_grades"]
    assert [(turn["turn"], turn["score"], turn["ground_truth"]) for turn in turns] == [
        (0, 0.0, "Rome"),
        (1, 1.0, "Paris"),
    ]


def test_the_summary_has_the_numbers_and_the_gate(project):
    outcome = run(project)
    summary = json.loads((project / "out" / "summary.json").read_text())
    assert summary["gates_passed"] is True
    assert {**summary["metrics"], "gates_passed": True} == outcome.summary.native


def test_keys_are_not_written_down(project):
    run(project)
    header = (project / "out" / "header.json").read_text()
    assert json.loads(header)["config"]["target"] == {"kind": "letta_agent", "agent_id": "agent-1"}
    assert "sk-of-the-server" not in header


def test_secrets_of_the_environment_are_not_written_down(project, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "k-3141592653")
    (project / "data.jsonl").write_text('{"input": "use k-3141592653", "ground_truth": "Paris"}\n')
    run(project)
    assert "k-3141592653" not in (project / "out" / "results.jsonl").read_text()


def test_what_is_written_gives_the_same_verdicts_again(project):
    first = run(project)
    again = run(project, output="again", target=None, cached=project / "out")
    assert again.summary.native == first.summary.native
    assert again.summary.gate == first.summary.gate


def test_every_run_has_a_folder_and_all_have_statistics(project):
    run(project, SUITE + "num_runs: 2\n")
    assert sorted(path.name for path in (project / "out").iterdir()) == ["aggregate_stats.json", "run_1", "run_2"]
    statistics = json.loads((project / "out" / "aggregate_stats.json").read_text())
    assert (statistics["runs_passed"], len(statistics["individual_run_metrics"])) == (2, 2)


def test_one_of_several_runs_is_replayed_and_all_of_them_are_refused(project):
    run(project, SUITE + "num_runs: 2\n")
    assert run(project, output="again", target=None, cached=project / "out" / "run_2").exit_code == 3
    with pytest.raises(InputError, match="several runs, expected one of them: run_1, run_2"):
        run(project, target=None, cached=project / "out")


def test_a_single_run_replaces_several(project):
    run(project, SUITE + "num_runs: 2\n")
    run(project)
    assert sorted(path.name for path in (project / "out").iterdir()) == ["header.json", "results.jsonl", "summary.json"]


def test_models_are_ordered_by_name(project):
    run(project, SUITE.replace("agent_id: agent-1", "agent_id: agent-1, model_handles: [z/1, a/1]"))
    assert [row["model_name"] for row in results(project / "out")] == ["a/1"] * 4 + ["z/1"] * 4


REWARDED = SUITE[: SUITE.index("gate:")] + "reward: {kind: custom, function: 'agent.py:both'}\n"


def test_suites_with_a_reward_have_the_newer_files(project):
    run(project, REWARDED.replace("agent_id: agent-1", "agent_id: agent-1, model_handles: [z/1, a/1]"))
    assert sorted(path.name for path in (project / "out").iterdir()) == [
        "a-1.jsonl", "suite.json", "summary.json", "z-1.jsonl",
    ]  # fmt: skip
    rows = lines(project / "out" / "a-1.jsonl")
    assert [(row["sample_id"], row["reward"]) for row in rows] == [("fr", 0.5), (7, None), (2, 0.0), (3, 0.25)]


def test_a_reward_is_made_of_the_grades_of_the_graders_only(project):
    run(project, REWARDED.replace("agent.py:both", "agent.py:worst"))
    assert lines(project / "out" / "default.jsonl")[0]["reward"] == 1.0


def test_the_newer_files_give_the_same_rewards_again(project):
    first = run(project, REWARDED)
    again = run(project, REWARDED, output="again", target=None, cached=project / "out")
    assert again.summary.native == first.summary.native


def test_a_suite_can_name_the_folder_itself(project):
    (project / "suite.yaml").write_text(SUITE + "output: mine\n")
    run_suite(load_suite(project / "suite.yaml", options={"target": "agent.py:answers"}))
    assert len(results(project / "mine")) == 4


def test_cells_that_are_run_again_replace_their_results(project):
    outcome = run(project, target="agent.py:recovers")
    retry(outcome.run_dir)
    assert [row.get("error") for row in results(project / "out")] == [None] * 4


@pytest.mark.parametrize("output", ["data.jsonl", "mine"])
def test_a_folder_that_cannot_get_the_results_is_refused_before_the_run(project, output):
    (project / "mine").mkdir()
    (project / "mine" / "results.jsonl").write_text(DATA)
    with pytest.raises(InputError, match="output: "):
        run(project, SUITE.replace("dataset: data.jsonl", "dataset: mine/results.jsonl"), output)
    assert (project / "mine" / "results.jsonl").read_text() == DATA
