"""The names of letta_evals that programs import, and what the classes behind them do."""

import asyncio
import importlib

import pytest

from evalwright.formats import shims
from evalwright.formats.letta import FORMAT

# `__all__` of letta_evals 0.9.0 and 0.25.1.
PUBLIC = """
AbstractAgentTarget AgentJudgeGrader AgentState Aggregation CustomRewardSpec Error ErrorCategory ErrorSummary GateKind
GateSpec GradeResult Grader GraderKind GraderSpec LLMProvider LettaAgentTarget LettaCodeTarget LettaMessageUnion
LogicalOp
MetricAggregate MetricOp MetricRewardSpec Metrics ModelMetrics ModelRun ModelSummary PerRunSummary PerTurnGrade
ProgressStyle RewardContext RewardKind RewardOutput RewardSpec RubricGrader RunStatistics Runner RunnerResult Sample
SampleResult SuiteSpec Summary TargetError TargetKind TargetResult TargetSpec Timing TimingStats ToolGrader
TurnTokenData Usage agent_factory create_progress_callback extractor grader reward_composer run_suite suite_setup
"""
MODULES = {
    "datasets.loader": "load_dataset load_jsonl load_csv",
    "extractors.registry": "get_extractor extractor_requires_agent_state",
    "graders": "contains exact_match ascii_printable_only ToolGrader",
    "graders.base": "Grader GradeResult Sample",
    "graders.prompt_utils": "build_judge_prompt",
    "graders.builtin": "regex_match",
    "graders.rubric": "RubricGrader",
    "graders.tool": "ToolGrader",
    "models": "Sample SampleId SimpleGateSpec LogicalGateSpec ToolGraderSpec CostMetrics normalize_weights",
    "models.specs": "SandboxSpec ModalSandboxSpec",
    "models.results": "SampleResult Usage",
    "rewards": "RewardContext coerce_reward_output load_reward_composer",
    "runner": "Runner SuiteSpec SampleResult",
    "streaming": "StreamingReader",
    "targets.base": "AbstractAgentTarget",
    "targets.errors": "TargetError",
    "types": "GraderKind MetricOp",
    "utils": "load_object is_per_turn_evaluation build_turn_summary build_turn_symbols calculate_turn_average",
    "visualization.factory": "ProgressStyle create_progress_callback",
    "visualization": "EvalProgress",
    "visualization.noop_progress": "NoOpProgress",
    "visualization.rich_progress": "EvalProgress",
    "visualization.simple_progress": "SimpleProgress",
}
SAID = [[{"message_type": "assistant_message", "content": "It is Paris."}]]


@pytest.fixture
def served(folder):
    shims.serve(FORMAT)
    return importlib.import_module("letta_evals")


def test_every_public_name_of_both_eras_is_there(served):
    assert [name for name in PUBLIC.split() if not hasattr(served, name)] == []


def test_the_modules_below_have_theirs(served):
    for module, names in MODULES.items():
        found = importlib.import_module(f"letta_evals.{module}")
        assert [f"{module}.{name}" for name in names.split() if not hasattr(found, name)] == []


def test_a_tool_grader_grades_what_its_extractor_takes(served):
    sample = served.Sample(id=1, input="?", ground_truth="paris")
    grade, submission = asyncio.run(served.ToolGrader("contains").grade(sample, SAID))
    assert (grade.score, submission) == (1.0, "It is Paris.")
    assert grade.metadata["extraction_time"] >= 0
    grade, submission = asyncio.run(served.ToolGrader("exact_match").grade(sample, [[]]))
    assert (grade.score, grade.rationale.startswith("Empty trajectory"), submission) == (0.0, True, "")


def test_graders_of_a_file_are_found_beside_a_folder(served, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from letta_evals import GradeResult, grader\n\n\n"
        "@grader\nasync def half(sample, submission):\n    return GradeResult(score=0.5)\n"
    )
    grader = served.ToolGrader("mine.py:half", base_dir=tmp_path)
    grade, _ = asyncio.run(grader.grade(served.Sample(input="?"), SAID))
    assert (grade.score, grader.requires_agent_state) == (0.5, False)
    with pytest.raises(FileNotFoundError):
        list(served.load_dataset(tmp_path / "nowhere.jsonl"))
    with pytest.raises(ValueError, match=r"nowhere\.jsonl"):  # as release 0.25 does
        list(served.load_dataset(tmp_path / "nowhere.jsonl"))
    with pytest.raises(FileNotFoundError):
        served.ToolGrader("nowhere.py:half", base_dir=tmp_path)
    with pytest.raises(ValueError, match="no grader 'halve'"):
        served.ToolGrader("halve")


def test_a_target_that_needs_a_server_says_what_answers_here(served):
    with pytest.raises(served.TargetError, match="--target"):
        asyncio.run(served.LettaAgentTarget(client=None, agent_id="a").run(served.Sample(input="?")))


def test_turns_are_described_as_the_original_does(served):
    utils = importlib.import_module("letta_evals.utils")
    assert utils.build_turn_summary([1.0, 0.5]) == "1/2 passed: ✓ ✗"
    assert utils.calculate_turn_average([1.0, None, 0.5]) == 0.75


@pytest.mark.parametrize("given", [0.5, {"score": 0.5}])
def test_what_a_composer_gives_becomes_a_reward(served, given):
    rewards = importlib.import_module("letta_evals.rewards")
    assert rewards.coerce_reward_output(given).score == 0.5
    with pytest.raises(ValueError, match="less than or equal to 1"):
        rewards.coerce_reward_output(2)


def test_a_composer_has_the_parameter_ctx(served):
    with pytest.raises(TypeError, match=r"expected \(ctx\), found \(sample\)"):
        served.reward_composer(lambda sample: 1.0)


def test_a_reward_section_becomes_its_composer(served, tmp_path):
    rewards, models = importlib.import_module("letta_evals.rewards"), importlib.import_module("letta_evals.models")
    (tmp_path / "mine.py").write_text(
        "from letta_evals import reward_composer\n\n\n"
        "@reward_composer\nasync def halved(ctx):\n    return ctx.grades['right'].score / 2\n"
    )
    known = dict.fromkeys(("agent_id", "model_handle", "agent_state", "usage", "timing"))
    grades = {"right": served.GradeResult(score=1.0)}
    context = rewards.RewardContext(served.Sample(input="?"), grades, {}, [], **known)
    metric = rewards.load_reward_composer(models.MetricRewardSpec(kind="metric", metric_key="right"), None)
    custom = models.CustomRewardSpec(kind="custom", function="mine.py:halved")
    composer = rewards.load_reward_composer(custom, tmp_path)
    assert [asyncio.run(one(context)).score for one in (metric, composer)] == [1.0, 0.5]


def test_a_rubric_is_filled_with_what_the_judge_is_asked_about(served):
    build = importlib.import_module("letta_evals.graders.prompt_utils").build_judge_prompt
    sample = served.Sample(input="Q", ground_truth="G", rubric_vars={"tone": "kind"})
    assert build("{input} {ground_truth} {submission} {tone} {{x}}", sample, "S") == "Q G S kind {x}"
    with pytest.raises(KeyError, match="mood"):
        build("{mood}", sample, "S")
    with pytest.raises(ValueError, match="'input'"):
        build("", served.Sample(input="Q", rubric_vars={"input": "other"}), "S")
