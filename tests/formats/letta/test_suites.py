"""Suites of Letta Evals run as they are: files in, verdicts, gate and numbers out."""

import json
import sys
from contextlib import nullcontext

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.reports.reasons import group_reasons
from evalwright.reports.terminal import failure_lines, run_lines
from evalwright.reports.text import Paint
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

SUITE = """\
name: support
dataset: data.jsonl
target: {kind: letta_agent, agent_id: agent-1}
graders:
  right: {kind: tool, function: contains}
  plain: {kind: tool, function: ascii_printable_only}
gate: {kind: simple, metric_key: right, op: gte, value: 0.5}
"""
DATA = '{"input": "capital of France?", "ground_truth": "Paris"}\n{"input": "of Italy?", "ground_truth": "Rome"}\n'
AGENT = """\
from letta_evals.decorators import agent_factory, extractor, grader, reward_composer, suite_setup
from letta_evals.models import GradeResult, Sample
from letta_client import CreateBlock
from letta_client.types import ToolCallMessage

SEEN = []


def knows_france(message, ctx):
    SEEN.append((message, ctx.turn, ctx.run))
    return "It is Paris" if "France" in message else "No idea"


async def remembers(message, ctx):
    if message.startswith("I am "):
        ctx.blocks["human"] = message.removeprefix("I am ")
        return None
    return f"You are {ctx.blocks.get('human', 'unknown')}"


def uses_a_tool(message, ctx):
    call = {"name": "find", "arguments": '{"q": 1}', "tool_call_id": "c"}
    return [
        {"message_type": "tool_call_message", "tool_call": call},
        {"message_type": "tool_return_message", "tool_call_id": "c", "tool_return": "found", "status": "success"},
        "done",
    ]


def silent(message, ctx):
    return None


def raises(message, ctx):
    raise RuntimeError("server hiccup")


@agent_factory
async def stocked(client, sample: Sample) -> str:
    item = sample.agent_args["item"]
    return (await client.agents.create(memory_blocks=[CreateBlock(label="item", value=item)], model="m")).id


def stock(message, ctx):
    return f"I have {ctx.blocks['item']} ({ctx.model})"


@grader
def halves(sample: Sample, submission: str) -> "GradeResult":
    return GradeResult(score=0.5, rationale=f"{sample.id} said {submission}", metadata={"x": 1})


@grader
async def explodes(sample, submission):
    raise ValueError("no")


@extractor
def tools(trajectory, config):
    return " ".join(m.tool_call.name for turn in trajectory for m in turn if isinstance(m, ToolCallMessage))


@grader
def boasts(sample, submission):
    grade = GradeResult(score=0.5)
    grade.score = 2.0
    return grade


@grader
def affirms(sample, submission):
    return {"score": True}


@grader
def affirms(sample, submission):
    return {"score": True}


@grader
def forgets(sample, submission):
    return {"rationale": "fine"}


@grader
def says_nothing(sample, submission):
    return None


@reward_composer
def twice(ctx):
    return 2


@reward_composer
def praises(ctx):
    return {"x": 1}


@reward_composer
def halved(ctx):
    return 0.5 + ctx.grades["right"].score / 2


@suite_setup
def broken():
    raise ValueError("disk full")


@suite_setup
def leaves():
    raise SystemExit("disk full")
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "data.jsonl").write_text(DATA)
    (tmp_path / "suite.yaml").write_text(SUITE)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("evalwright_user_")]:
        del sys.modules[name]


def run(project, suite=SUITE, data=DATA, target="agent.py:knows_france", **options):
    (project / "suite.yaml").write_text(suite)
    (project / "data.jsonl").write_text(data)
    given = {**({"target": target} if target else {}), **options}
    loaded = load_suite(project / "suite.yaml", options=given)
    loaded.out = project / "runs"
    return run_suite(loaded)


def rows(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {(row.case_id, row.evaluator): row for row in reader.results(EvaluationResult)}


def statuses(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {v.case_id: v.status for v in reader.verdicts(CaseVerdict)}


def test_a_suite_is_recognised_run_and_gated(project):
    outcome = run(project)
    assert statuses(outcome) == {"0": "pass", "1": "fail"}
    assert (outcome.summary.gate.passed, outcome.exit_code) == (True, 0)
    assert outcome.summary.native["avg_score_attempted"] == 0.5
    assert rows(outcome)["0", "right"].detail["submission"] == "It is Paris"


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


def test_a_run_of_ours_is_replayed(project):
    first = run(project)
    again = run(project, target=None, cached=first.run_dir)
    assert statuses(again) == statuses(first)


FINE = {"sample_id": 0, "trajectory": [[{"message_type": "assistant_message", "content": "Paris"}]]}


def test_every_damaged_line_of_a_recording_is_told_with_its_place(project):
    (project / "old").mkdir()
    lines = [
        FINE,
        {**FINE, "trajectory": ["Paris"]},
        {**FINE, "sample_id": None},
        {"type": "result"},
        {"type": "header"},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + '\n{"sample_id": 1, "traj'
    (project / "old" / "results.jsonl").write_text(text)
    with pytest.raises(InputError) as raised:
        run(project, target=None, cached=project / "old")
    assert [(p.file.endswith("results.jsonl"), p.line) for p in raised.value.problems] == [
        (True, n) for n in (2, 3, 4, 6)
    ]


def test_recordings_of_another_input_are_refused(project):
    (project / "old").mkdir()
    result = {"sample": {"id": 0, "input": "other"}, "trajectory": [], "agent_id": "a", "model_name": None}
    (project / "old" / "results.jsonl").write_text(json.dumps({"type": "result", "result": result}) + "\n")
    with pytest.raises(InputError, match="recorded with 'other'"):
        run(project, target=None, cached=project / "old")


def test_stored_conversations_are_judged_again_without_the_agent(project):
    outcome = run(project)
    (project / "agent.py").unlink()
    assert re_evaluate(outcome.run_dir).summary.native == outcome.summary.native


@pytest.mark.parametrize(
    ("old", "new"),
    [("agent_id: agent-1", "agent_script: gone.py:f"), ("name: support", "name: support\nsetup_script: gone.py:f")],
)
def test_a_script_that_is_not_there_keeps_a_suite_from_being_run_but_not_from_being_checked(project, old, new):
    (project / "suite.yaml").write_text(SUITE.replace(old, new))
    with pytest.raises(InputError, match=r"there is no file 'gone.py'") as raised:
        load_suite(project / "suite.yaml")
    assert [problem.absent for problem in raised.value.problems] == [True]


@pytest.mark.parametrize(("in_suite", "asked", "refused"), [(1, 3, True), (3, 1, False), (3, None, True)])
def test_recordings_are_replayed_once_whatever_the_suite_or_the_command_line_asks(project, in_suite, asked, refused):
    recorded = run(project).run_dir
    told = pytest.raises(InputError, match="replayed once only") if refused else nullcontext()
    with told:
        run(project, SUITE + f"num_runs: {in_suite}\n", target=None, cached=recorded, trials=asked)


def test_mistakes_of_both_scripts_are_told_at_once_where_each_is_named(project):
    suite = SUITE.replace("agent_id: agent-1", "agent_script: agent.py:answers") + "setup_script: agent.py:gone\n"
    (project / "suite.yaml").write_text(suite)
    with pytest.raises(InputError) as raised:
        load_suite(project / "suite.yaml")
    assert sorted(problem.key for problem in raised.value.problems) == ["setup_script", "target.agent_script"]


@pytest.mark.parametrize("setup", ["broken", "leaves"])
def test_a_setup_that_fails_stops_the_run(project, setup):
    with pytest.raises(InputError, match=r"Setup failed: .*disk full"):
        run(project, SUITE + f"setup_script: agent.py:{setup}\n")


@pytest.mark.parametrize(
    ("grader", "told"),
    [
        ("boasts", "score: expected less than or equal to 1, found 2.0"),
        ("affirms", "score: expected a number from 0 to 1, found True"),
        ("forgets", "score: the key is missing, found {'rationale': 'fine'}"),
        ("says_nothing", "expected a mapping or object to extract fields from, found None"),
    ],
)
def test_what_is_no_score_is_an_error_however_it_came_about(project, grader, told):
    outcome = run(project, SUITE.replace("function: contains}", f"function: agent.py:{grader}}}"))
    error = rows(outcome)["0", "right"].error
    assert (error.type, error.message) == ("grader_error", f"the grader returned no GradeResult: {told}")


REWARDED = SUITE.partition("gate:")[0] + "reward: {kind: custom, function: agent.py:NAME}\n"


@pytest.mark.parametrize(
    ("composer", "told"),
    [
        ("twice", "score: expected less than or equal to 1, found 2"),
        ("praises", "score: the key is missing, found {'x': 1}"),
    ],
)
def test_what_is_no_reward_is_an_error(project, composer, told):
    error = rows(run(project, REWARDED.replace("NAME", composer)))["0", "reward composer"].error
    assert (error.type, error.message) == ("grader_error", f"the reward composer returned no reward: {told}")


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
        assert composed.error.message == "no reward without the grades that are missing: 'right'"


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


def lines_of(outcome):
    return [" ".join(line.split()) for line in run_lines(outcome.plan, outcome.summary, Paint(False))]


def test_a_suite_without_a_pass_mark_shows_scores(project):
    outcome = run(project, SUITE)
    lines = lines_of(outcome)
    assert "evaluator scores score per result" in lines
    assert "right 2 0.500" in lines
    assert not any("pass rate" in line for line in lines)
    reader, _ = open_run(outcome.run_dir)
    lines = failure_lines(*group_reasons(reader, outcome.summary), outcome.summary, "run", Paint(False))
    reader.close()
    assert (lines[0], lines[2]) == ("Scores below 1 (1 cell)", "      · 1")


@pytest.mark.parametrize("gate", ["pass_threshold: 0.5, kind: simple", "metric: avg_score"])
def test_a_suite_with_a_pass_mark_shows_passes(project, gate):
    outcome = run(project, SUITE.replace("kind: simple", gate))
    assert any(line.startswith("variant pass rate") for line in lines_of(outcome))


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


def test_a_key_that_an_extractor_does_not_read_is_a_warning_and_a_mistake_with_strict(project):
    suite = SUITE.replace("function: contains", "function: contains, extractor_config: {note: x}")
    assert [key for key, _ in heard(project, suite, DATA)] == ["graders.right.extractor_config.note"]
    with pytest.raises(InputError, match="does not read 'note'"):
        run(project, suite, strict=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: support", "sandbox: true\nname: support"),
        ("agent_id: agent-1", "agent_id: agent-1, isolation: docker"),
        ("agent_id: agent-1", "agent_id: agent-1, timout: 3"),
        ("agent_id: agent-1", "agent_id: agent-1, settings: {sandbox: strict}"),
    ],
)
def test_a_key_that_isolates_is_refused(project, old, new):
    with pytest.raises(InputError, match="so nothing is run"):
        run(project, SUITE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: support\n", "", "name"),
        ("data.jsonl", "gone.jsonl", "dataset"),
        ("letta_agent", "robot", "target.kind"),
        (", agent_id: agent-1", "", "target"),
        ("kind: letta_agent, agent_id: agent-1", "kind: http", "target"),
        ("kind: letta_agent, agent_id: agent-1", "kind: replay, path: 3", "target"),
        ("function: contains", "function: fuzzy", "graders.right.function"),
        ("function: contains", "function: agent.py:raises", "graders.right.function"),
        ("function: contains", "function: contains, extractor: middle", "graders.right.extractor"),
        ("function: contains", "function: contains, extractor: pattern", "graders.right.extractor_config.pattern"),
        ("kind: tool, function: contains", "kind: oracle", "graders.right.kind"),
        ("kind: tool, function: contains", "kind: model_judge", "graders.right.prompt"),
        ("metric_key: right", "metric_key: wrong", "gate.metric_key"),
        ("op: gte", "op: above", "gate.op"),
        ("value: 0.5", "value: high", "gate.value"),
    ],
)
def test_mistakes_are_told_with_their_place(project, old, new, key):
    (project / "suite.yaml").write_text(SUITE.replace(old, new))
    with pytest.raises(InputError) as raised:
        load_suite(project / "suite.yaml", "letta", options={"target": "agent.py:knows_france"})
    assert key in {problem.key for problem in raised.value.problems}


def test_other_formats_refuse_options_of_this_one(project):
    (project / "eval.yaml").write_text("eval: {name: x}\n")
    with pytest.raises(InputError, match="--cached: not an option of the format native"):
        load_suite(project / "eval.yaml", options={"cached": project})


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: support", "name: support\nnam: x", "nam"),
        ("function: contains", "function: contains, extractr: x", "graders.right.extractr"),
        ("metric_key: right", "metric_key: right, aggregation: accuracy", "gate.value"),
        ("metric_key: right", "metric_key: right, pass_treshold: 0.5", "gate.pass_treshold"),
        ("agent_id: agent-1", "agent_id: agent-1, tiemzone: x", "target.tiemzone"),
        ("name: support", "name: support\nmax_samples: 0", "max_samples"),
        ("agent_id: agent-1", "agent_id: agent-1, model_handles: [m/1, m/2, m/1]", "target.model_handles"),
    ],
)
def test_what_is_most_likely_not_meant_is_a_warning(project, old, new, key):
    (project / "suite.yaml").write_text(SUITE.replace(old, new))
    suite = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    assert [problem.key for problem in suite.warnings] == [key]


def test_unknown_keys_are_mistakes_when_that_is_asked_for(project):
    (project / "suite.yaml").write_text(SUITE + "nam: x\n")
    with pytest.raises(InputError, match='did you mean "name"'):
        load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france", "strict": True})


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


JUDGED = SUITE.replace(
    "right: {kind: tool, function: contains}",
    'right: {kind: rubric, prompt: "{topic}: {submission} {tone}", rubric_vars: [topic]}',
)


def heard(project, suite, data, **options):
    """What is noticed of a suite by the time that its samples are read."""
    (project / "suite.yaml").write_text(suite)
    (project / "data.jsonl").write_text(data)
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france", **options})
    for _ in loaded.cases:
        pass
    return [(warning.key, warning.message) for warning in loaded.warnings]


def test_samples_without_a_ground_truth_are_noticed_where_a_grader_wants_one(project):
    ((key, message),) = heard(project, SUITE, DATA + '{"input": "and Spain?"}\n')
    assert (key, message) == ("dataset", "1 of 3 samples have no ground truth, without which 'right' scores 0")


def test_names_in_a_rubric_are_noticed_where_a_sample_lacks_them(project):
    data = '{"input": "x", "rubric_vars": {"topic": "t"}}\n'
    knows = '{"input": "y", "rubric_vars": {"topic": "t", "tone": "u"}}\n'
    ((key, message),) = heard(project, JUDGED, data + knows)
    assert (key, "{tone}, which 1 of 2 samples lack" in message) == ("graders.right", True)
    assert heard(project, JUDGED, knows) == []
    assert heard(project, JUDGED, knows, strict_rubric=True) == []


def test_names_in_a_rubric_that_a_sample_does_not_know_are_mistakes_when_that_is_asked_for(project):
    data = '{"input": "x", "rubric_vars": {"topic": "t", "tone": "u"}}\n{"input": "y", "rubric_vars": {"topic": "t"}}\n'
    with pytest.raises(InputError) as raised:
        heard(project, JUDGED, data, strict_rubric=True)
    assert [(p.line, "unknown tone" in p.message) for p in raised.value.problems] == [(2, True)]


def test_a_rubric_of_a_sample_is_looked_at_in_place_of_the_graders(project):
    data = '{"input": "x", "rubric": "{topic} {other}", "rubric_vars": {"topic": "t"}}\n'
    with pytest.raises(InputError, match="unknown other"):
        heard(project, JUDGED, data, strict_rubric=True)


@pytest.mark.parametrize(
    ("suite", "wrapper"),
    [(JUDGED, "letta_0_9"), (JUDGED.partition("gate:")[0] + "reward: {kind: metric, metric_key: right}\n", None)],
)
def test_the_form_of_a_suite_decides_what_is_around_its_rubrics(project, suite, wrapper):
    (project / "suite.yaml").write_text(suite)
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    assert loaded.evaluators[0].config.get("wrapper") == wrapper
