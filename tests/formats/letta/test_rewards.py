"""Rewards of Letta suites: measured, composed, and undecided where a grade is missing."""

import pytest

import warm
from evalwright.decisions.comparison import regressions
from evalwright.decisions.runs import two_runs
from evalwright.decisions.sides import CaseTotal, SideCounts
from evalwright.decisions.terms import Terms
from evalwright.run.stored_run import open_run
from formats.letta.projects import DATA, SUITE, lines_of, rows, run

REWARDED = SUITE.partition("gate:")[0] + "reward: {kind: custom, function: agent.py:NAME}\n"


@pytest.mark.parametrize(
    ("composer", "told"),
    [
        ("twice", "score: expected less than or equal to 1, found 2"),
        ("praises", "score: the key is missing, found {'x': 1}"),
        ("spelt", "expected a RewardOutput, found '0.5'"),
    ],
)
def test_what_is_no_reward_is_an_error(project, composer, told):
    error = rows(run(project, REWARDED.replace("NAME", composer)))["0", "reward composer"].error
    assert (error.type, error.message) == ("grader_error", f"the reward composer returned no reward: {told}")


READERS = """

@reward_composer
def reads_grades(ctx):
    assert ctx.grades["plain"].metadata == {"x": 1}
    return ctx.grades["plain"].score


@reward_composer
def reads_turns(ctx):
    return sum(turn.score for turn in ctx.grades["right"].per_turn_grades) / 4


@reward_composer
def reads_usage(ctx):
    assert (ctx.usage.completion_tokens, ctx.usage.cached_input_tokens) == (2, 0)
    return ctx.usage.prompt_tokens / 10


@reward_composer
def reads_timing(ctx):
    assert ctx.timing.total >= ctx.timing.target >= 0 and ctx.timing.extraction is None
    return len(ctx.timing.per_grader) / 4


def counts_tokens(message, ctx):
    ctx.usage = {"token_input": 5, "token_output": 2}
    return "It is Paris"
"""


GRADED = """

@grader
def graded(sample, submission):
    from pathlib import Path

    return GradeResult(score=float(Path(__file__).with_name("grade.txt").read_text()))
"""


@pytest.mark.parametrize("composer", ["reads_grades", "reads_turns", "reads_usage", "reads_timing"])
def test_a_composer_reads_what_the_original_gives_it(project, composer):
    suite = REWARDED.replace("NAME", composer).replace("ascii_printable_only", "agent.py:halves")
    (project / "agent.py").write_text((project / "agent.py").read_text() + READERS)
    data = '{"input": "of France?", "ground_truth": "Paris"}\n'
    if composer == "reads_turns":
        data = '{"input": ["a", "b"], "ground_truth": ["Paris", "Paris"]}\n'
    row = rows(run(project, suite, data, target="agent.py:counts_tokens"))["0", "reward composer"]
    assert (row.error, row.score) == (None, 0.5)


@pytest.mark.parametrize("grader", ["kind: tool, function: 'agent.py:explodes'", "kind: model_judge, prompt: '?'"])
@pytest.mark.parametrize("reward", ["kind: custom, function: 'agent.py:halved'", "kind: metric, metric_key: right"])
def test_a_grade_that_was_not_measured_enters_no_reward(project, monkeypatch, grader, reward):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    suite = SUITE.replace(
        "kind: tool, function: contains", f"{grader}, max_retries: 0" if "judge" in grader else grader
    )
    outcome = run(project, suite.partition("gate:")[0] + f"reward: {{{reward}}}\n")
    assert (outcome.exit_code, outcome.summary.gate.undecided, outcome.summary.gate.parts[0].n) == (3, True, 0)
    assert set(outcome.summary.native["reward_per_case"].values()) == {None}
    composed = rows(outcome).get(("0", "reward composer"))
    if "custom" in reward:
        assert (composed.error.type, composed.score) == ("not_measured", None)
        assert composed.error.message == "no reward, because grades are missing: 'right'"


REPORTS = """

@grader
def reports(sample, submission):
    return GradeResult(score=0.8, rationale="?", metadata={"error": "the database is away"})
"""


def test_a_grade_with_an_error_enters_a_gate_by_its_score_and_no_reward(project):
    (project / "agent.py").write_text((project / "agent.py").read_text() + REPORTS)
    suite = SUITE.replace("function: contains", "function: agent.py:reports")
    outcome = run(project, suite.partition("gate:")[0] + "reward: {kind: metric, metric_key: right}\n")
    row = rows(outcome)["0", "right"]
    assert (row.error.message, row.detail["metadata"]) == (
        "the grader reported an error: the database is away",
        {"error": "the database is away"},
    )
    assert (outcome.exit_code, outcome.summary.native["n_attempted"]) == (3, 0)
    assert run(project, suite).summary.gate.parts[0].value == 0.8


@pytest.mark.parametrize("reward", ["kind: custom, function: 'agent.py:halved'", "kind: metric, metric_key: right"])
def test_a_sample_without_anything_to_grade_has_no_reward(project, reward):
    suite = SUITE.partition("gate:")[0] + f"reward: {{{reward}}}\n"
    (project / "agent.py").write_text(
        (project / "agent.py").read_text()
        + "\n\ndef half_silent(message, ctx):\n    return None if ctx.sample.id else 'Paris'\n"
    )
    outcome = run(project, suite, target="agent.py:half_silent")
    gate, native = outcome.summary.gate, outcome.summary.native
    assert (gate.parts[0].n, gate.undecided, native["n_attempted"], native["n_total"]) == (1, False, 1, 2)
    assert [value is None for value in native["reward_per_case"].values()] == [False, True]
    outcome = run(project, suite, target="agent.py:silent")
    assert (outcome.exit_code, outcome.summary.gate.undecided, outcome.summary.gate.parts[0].n) == (3, True, 0)


def test_the_mean_reward_stands_where_a_gate_would(project):
    suite = SUITE.partition("gate:")[0] + "reward: {kind: metric, metric_key: right}\n"
    gate = run(project, suite).summary.gate
    assert [(part.name, part.value, part.n) for part in gate.parts] == [("reward(right)", 0.5, 2)]
    assert gate.reason == "a reward, no gate; 0 of 2 rows had errors (0.0%)"


def test_a_reward_is_measured_and_passes_nothing(project):
    lines = lines_of(run(project, SUITE.partition("gate:")[0] + "reward: {kind: metric, metric_key: right}\n"))
    assert [line.split("  ")[0] for line in lines[-2:]] == [
        "reward measured a reward, no gate; 0 of 2 rows had errors (0.0%)", "mean reward(right) 0.5 [0, 1] (2 scores)",
    ]  # fmt: skip


def test_a_reward_of_a_grader_that_is_not_there_is_a_warning_and_not_measured(project):
    suite = SUITE.partition("gate:")[0] + "reward: {kind: metric, metric_key: rihgt}\n"
    outcome = run(project, suite)
    assert "no grader 'rihgt'; did you mean \"right\"" in "".join(outcome.summary.warnings)
    assert (outcome.exit_code, outcome.summary.gate.undecided) == (3, True)


def test_a_reward_over_nothing_measured_is_undecided(project):
    suite = SUITE.partition("gate:")[0] + "reward: {kind: metric, metric_key: right}\n"
    outcome = run(project, suite, target="agent.py:raises")
    assert (outcome.exit_code, outcome.summary.gate.undecided) == (3, True)


def test_a_key_of_a_reward_that_nothing_reads_is_a_warning(project):
    outcome = run(project, REWARDED.replace("NAME}", "halved, functon: other}"))
    [warning] = [line for line in outcome.plan.warnings if "reward" in line]
    assert warning.endswith('reward.functon  nothing reads this key; did you mean "function"?')


@pytest.mark.parametrize(
    ("gate", "warned"),
    [
        ("reward: {kind: metric, metric_key: right}", True),
        ("gate: {metric_key: right, metric: accuracy, op: gte, value: 50, pass_op: gte, pass_value: 0.5}", False),
    ],
)
def test_a_comparison_of_rewards_says_what_its_pass_rate_is(project, gate, warned):
    reader, plan = open_run(run(project, SUITE.partition("gate:")[0] + gate).run_dir)
    for metric, expected in (("pass_rate", warned), ("right", False)):
        runs = two_runs(reader, plan, reader, plan, Terms(metric=metric))
        [variant] = runs.a
        lines = [line for line in runs.decision(variant, variant).warnings if "only scores" in line]
        assert bool(lines) is expected
        assert not lines or lines[0].endswith("compares a mean score (NAME: plain, right)")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"plain": 1.0, "right": 0.9}, {"plain": 1.0, "right": 0.1}, {"plain": False, "right": True}),
        ({"plain": 1.0, "right": 0.1}, {"plain": 0.9, "right": 0.9}, {"plain": False, "right": False}),
        ({"plain": 1.0, "right": 0.9}, {"plain": 1.0, "right": None}, {"plain": False, "right": None}),
        ({"plain": 1.0, "right": 1.0}, {"plain": 1.0, "right": 0.0}, {"pass_rate": True}),
        ({"plain": 1.0, "right": 1.0}, {"plain": 1.0, "right": 1.0}, {"pass_rate": False}),
    ],
)
def test_means_tell_whether_scores_got_worse_unless_all_are_passes_or_failures(project, before, after, found):
    reader, plan = open_run(run(project, SUITE).run_dir)
    runs = two_runs(reader, plan, reader, plan, Terms())
    [variant] = runs.a
    for sides, scores in ((runs.a, before), (runs.b, after)):
        sides[variant] = SideCounts(variant, _cases(int(None not in scores.values() and min(scores.values()))))
        sides[variant].scores = {name: _cases(score) for name, score in scores.items()}
    tested = regressions(runs, [runs.decision(variant, variant)], 0.2)
    assert {one.decision.metric: one.is_worse for one in tested} == found


def _cases(score):
    """Forty, of the same score; None: their grader broke."""
    measured = CaseTotal(evaluator_errors=1) if score is None else CaseTotal(float(score), 1, passed=int(score))
    return {f"c{i}": measured for i in range(40)}


def test_a_comparison_of_scores_ends_with_the_code_of_their_means_and_names_the_worse_one(project):
    (project / "agent.py").write_text((project / "agent.py").read_text() + GRADED)
    suite, data, runs = SUITE.replace("function: contains", "function: agent.py:graded"), DATA * 20, []
    for grade in ("0.9", "0.4"):
        (project / "grade.txt").write_text(grade)
        runs.append(str(run(project, suite, data).run_dir))
    ended = [
        warm.run(["-m", "evalwright", *words, "--fail-on-regression"], cwd=project)
        for words in (["compare", *runs], ["drift", runs[1], "--baseline", runs[0]], ["compare", *runs[::-1]])
    ]
    assert [one.returncode for one in ended] == [1, 1, 0]
    assert ["mean score of right: worse beyond noise, −0.500" in one.stderr for one in ended] == [True, True, False]
