"""Results as letta-evals writes them: what is in the files, and that they are as good as the run they came from."""

import asyncio
import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.letta.written_config import written_config
from evalwright.formats.loading import load_suite
from evalwright.letta.streaming import StreamingReader
from evalwright.run.resumption import retry
from evalwright.run.start import run_suite

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


def converses(message, ctx):
    return [
        {"message_type": "reasoning_message", "reasoning": "hm"},
        {"message_type": "tool_call_message", "tool_call": {"name": "look", "arguments": {"q": 1}}},
        {"message_type": "tool_return_message", "tool_return": {"found": 1}},
        {"message_type": "ours_alone"},
        "It is Paris",
    ]


@reward_composer
def both(ctx):
    return RewardOutput(score=0.5 * ctx.grades["right"].score)


@reward_composer
def told(ctx):
    return RewardOutput(score=0.5, metadata={"because": "half"})


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
    settings = {"target": "agent.py:answers", "output": project / output, **options}
    return run_suite(load_suite(project / "suite.yaml", options=settings))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def results(path):
    return [line["result"] for line in lines(path / "results.jsonl")]


def test_every_sample_is_a_result_in_the_order_of_the_dataset(project):
    run(project)
    samples = [row["sample"] for row in results(project / "out")]
    assert [sample["sample_id"] for sample in samples] == ["fr", 7, 2, 3]
    assert [sample["id"] for sample in samples] == [0, 1, 2, 3]  # 0.9 counts rows and takes no other id


def test_a_result_holds_the_answer_and_every_grade(project):
    run(project)
    row = results(project / "out")[0]
    assert row["submissions"] == {"right": "It is Paris", "plain": "It is Paris"}
    assert [said["content"] for turn in row["trajectory"] for said in turn] == ["It is Paris"]
    assert row["grade"] == row["grades"]["right"]
    assert row["grade"]["score"] == 1.0
    assert row["agent_state"]["blocks"] == [{"label": "asked", "value": "capital of France?"}]
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
    absent = {"per_model": None, "cost": None}  # their keys are there, as the original's readers expect
    assert {**summary["metrics"], "gates_passed": True} == {**(outcome.summary.native or {}), **absent}


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
    rewards = [row["reward"]["score"] if "reward" in row else None for row in rows]
    assert [row["sample_id"] for row in rows] == ["fr", 7, 2, 3]
    assert rewards == [0.5, None, None, 0.25]
    assert (rows[2]["error"]["category"], rows[2]["grades"]["right"]["score"]) == ("extraction", 0.0)


def test_a_folder_is_read_back_as_the_original_reads_it(project):
    run(project, output="older")
    run(project, REWARDED + "num_runs: 2\n", output="newer")
    older, newer = (asyncio.run(StreamingReader.to_runner_result(project / name)) for name in ("older", "newer"))
    assert (older.suite, older.gates_passed, older.metrics.total) == ("support", True, 4)
    assert [row.grade.score for row in older.results] == [1.0, 0.0, 0.0, 0.5]
    assert [(row.sample.input, row.reward and row.reward.score) for row in newer.results[4:6]] == [
        ("capital of France?", 0.5), ("crash", None),
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError):
        asyncio.run(StreamingReader.to_runner_result(project / "nowhere"))


def test_a_reward_is_made_of_the_grades_of_the_graders_only(project):
    run(project, REWARDED.replace("agent.py:both", "agent.py:worst"))
    assert lines(project / "out" / "default.jsonl")[0]["reward"] == {"score": 1.0}


def test_what_a_composer_said_is_kept_with_the_reward(project):
    run(project, REWARDED.replace("agent.py:both", "agent.py:told"))
    row = lines(project / "out" / "default.jsonl")[0]
    assert row["reward"] == {"score": 0.5, "metadata": {"because": "half"}}


OF_LETTA_CODE = REWARDED.replace("kind: letta_agent, agent_id: agent-1", "kind: letta_code, model_handles: [z/1, a/1]")


def test_the_newer_summary_has_an_entry_for_each_model(project):
    run(project, OF_LETTA_CODE)
    summary = json.loads((project / "out" / "summary.json").read_text())
    assert (summary["suite"], [one["model"] for one in summary["models"]]) == ("support", ["a/1", "z/1"])
    model = summary["models"][0]
    assert (model["n_total"], model["n_attempted"], model["reward"]) == (4, 2, 0.375)
    assert model["per_metric"] == {"right": 0.75, "plain": 1.0}
    assert (model["usage"]["prompt_tokens"], model["usage"]["completion_tokens"]) == (9, 6)
    assert model["errors"] == {
        "total_errors": 2,
        "by_category": {"target": 1, "extraction": 1},
        "by_exception_type": {"RuntimeError": 1, "ExtractionError": 1},
    }
    assert {"mean_total", "mean_target", "p50_total", "p95_total"} <= model["timing"].keys()


def test_several_runs_of_a_model_have_a_summary_of_their_own(project):
    run(project, OF_LETTA_CODE + "num_runs: 2\n")
    assert sorted(path.name for path in (project / "out" / "a-1").iterdir()) == [
        "run_1.jsonl", "run_2.jsonl", "summary.json",
    ]  # fmt: skip
    summary = json.loads((project / "out" / "a-1" / "summary.json").read_text())
    assert [part["run"] for part in summary["runs"]] == [1, 2]
    assert (summary["n_total"], summary["n_attempted"], summary["reward_std"]) == (4, 4, 0.0)
    assert "runs" not in json.loads((project / "out" / "summary.json").read_text())["models"][0]


# What letta-evals 0.25.1 requires of a row and a suite, and all that it allows in parts where it rejects the rest.
OF_ROW = {"sample_id": (int, str), "timing": dict, "submissions": dict, "grades": dict, "trajectory": list}
OF_TARGET = {
    "kind", "base_url", "timeout", "project_id", "max_retries", "model_handles", "agent_script", "flags",
    "permission_mode", "memory_workspace", "memory_dir",
}  # fmt: skip
OF_JUDGE = {
    "kind", "display_name", "extractor", "extractor_config", "prompt", "model", "temperature", "provider",
    "max_retries", "timeout", "system_prompt",
}  # fmt: skip


def test_newer_rows_have_the_fields_and_types_of_the_original(project):
    run(project, OF_LETTA_CODE)
    rows = lines(project / "out" / "a-1.jsonl")
    for row in rows:
        assert all(isinstance(row[name], kind) for name, kind in OF_ROW.items())
        assert isinstance(row["timing"]["total"], float)
        assert None not in row.values()
    assert rows[1]["error"].keys() == {"category", "exception_type", "message"}
    assert rows[0]["agent_usage"] == [{"prompt_tokens": 3, "completion_tokens": 2}]


def test_the_newer_suite_is_one_that_the_original_reads(project):
    (project / "rubric.txt").write_text("Is {submission} right?")
    judged = "  judged: {kind: rubric, prompt_path: rubric.txt, rubric_vars: []}\nreward:"
    suite = OF_LETTA_CODE.replace("reward:", judged)
    (project / "suite.yaml").write_text(suite)
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:answers"})
    config = written_config(loaded.document, loaded.document["graders"], loaded.evaluators)
    assert config["target"]["kind"] == "letta_code"
    assert config["target"].keys() <= OF_TARGET
    assert config["graders"]["judged"] == {"kind": "model_judge", "prompt": "Is {submission} right?"}
    assert config["graders"]["judged"].keys() <= OF_JUDGE
    assert config["graders"]["right"].keys() <= {"kind", "function"}
    assert (config["name"], config["dataset"], config["reward"]["kind"]) == ("support", "data.jsonl", "custom")


# What the models of letta_client 1.12 require of a message, by its type.
OF_MESSAGE = {
    "assistant_message": {"content"},
    "reasoning_message": {"reasoning"},
    "tool_call_message": {"tool_call"},
    "tool_return_message": {"status", "tool_call_id", "tool_return"},
}
OF_AGENT = {"id", "agent_type", "blocks", "llm_config", "memory", "name", "sources", "system", "tags", "tools"}


def test_messages_and_agents_have_what_the_client_s_models_require(project):
    run(project, target="agent.py:converses")
    row = results(project / "out")[0]
    [turn] = row["trajectory"]
    assert [said["message_type"] for said in turn] == [
        "reasoning_message", "tool_call_message", "tool_return_message", "assistant_message",
    ]  # fmt: skip
    assert all({"id", "date", *OF_MESSAGE[said["message_type"]]} <= said.keys() for said in turn)
    assert len({said["id"] for said in turn}) == 4
    assert turn[1]["tool_call"] == {"name": "look", "arguments": '{"q": 1}', "tool_call_id": ""}
    assert turn[2]["tool_return"] == '{"found": 1}'
    assert row["agent_state"].keys() >= OF_AGENT
    assert row["agent_state"]["memory"].keys() >= {"blocks"}


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
    with pytest.raises(InputError, match="  output  "):
        run(project, SUITE.replace("dataset: data.jsonl", "dataset: mine/results.jsonl"), output)
    assert (project / "mine" / "results.jsonl").read_text() == DATA
