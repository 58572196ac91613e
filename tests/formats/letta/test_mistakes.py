"""Mistakes of Letta suites, and what in them is most likely not meant."""

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.letta.projects import DATA, SUITE, heard, rows, run


@pytest.mark.parametrize(
    ("old", "new"),
    [("agent_id: agent-1", "agent_script: gone.py:f"), ("name: support", "name: support\nsetup_script: gone.py:f")],
)
def test_a_script_that_is_not_there_keeps_a_suite_from_being_run_but_not_from_being_checked(project, old, new):
    (project / "suite.yaml").write_text(SUITE.replace(old, new))
    with pytest.raises(InputError, match=r"there is no file 'gone.py'") as raised:
        load_suite(project / "suite.yaml")
    assert [problem.absent for problem in raised.value.problems] == [True]


def test_mistakes_of_both_scripts_are_told_at_once_where_each_is_named(project):
    suite = SUITE.replace("agent_id: agent-1", "agent_script: agent.py:answers") + "setup_script: agent.py:gone\n"
    (project / "suite.yaml").write_text(suite)
    with pytest.raises(InputError) as raised:
        load_suite(project / "suite.yaml")
    assert sorted(problem.key for problem in raised.value.problems) == ["setup_script", "target.agent_script"]


def test_a_script_without_a_function_is_told_what_to_write(project):
    (project / "suite.yaml").write_text(SUITE + "setup_script: agent.py\n")
    with pytest.raises(InputError, match=r"setup_script  expected file.py:function, found 'agent.py'"):
        load_suite(project / "suite.yaml")


def test_no_grader_is_lost_to_one_of_the_same_name(project):
    (project / "suite.yaml").write_text(SUITE.replace("  plain:", "  1:").replace("  right:", "  '1':"))
    with pytest.raises(InputError, match=r"graders\.1  duplicate key '1'"):
        load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})


@pytest.mark.parametrize("setup", ["broken", "leaves"])
def test_a_setup_that_fails_stops_the_run(project, setup):
    with pytest.raises(InputError, match=r"Setup failed: .*disk full"):
        run(project, SUITE + f"setup_script: agent.py:{setup}\n")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: support", "name: support\nsample_tags: ''", "sample_tags"),
        ("name: support", "name: support\nsetup_script: false", "setup_script"),
        ("agent_id: agent-1", "agent_id: agent-1, agent_script: {}", "target.agent_script"),
        ("function: contains", "function: contains, extractor_config: ''", "graders.right.extractor_config"),
    ],
)
def test_an_empty_value_of_another_type_is_not_taken_for_an_absent_one(project, old, new, key):
    (project / "suite.yaml").write_text(SUITE.replace(old, new))
    with pytest.raises(InputError, match="expected") as raised:
        load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    assert [problem.key for problem in raised.value.problems] == [key]


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
        ("agent_id: agent-1", "agent_id: agent-1, cwd: ./sub"),
        ("agent_id: agent-1", "agent_id: agent-1, image: letta/letta"),
        ("agent_id: agent-1", "agent_id: agent-1, settings: {sandbox: strict}"),
    ],
)
def test_a_key_that_isolates_is_refused(project, old, new):
    with pytest.raises(InputError, match="so nothing is run") as raised:
        run(project, SUITE.replace(old, new))
    assert 'did you mean "sandbox"' not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: support\n", "", "name"),
        ("name: support", 'output: "a\\0b"\nname: support', "output"),
        ("data.jsonl", "gone.jsonl", "dataset"),
        ("name: support", "name: support\nsetup_script: [agent.py]", "setup_script"),
        ("name: support", "name: support\ncleanup: [true]", "cleanup"),
        ("agent_id: agent-1", "agent_id: 7", "target.agent_id"),
        ("agent_id: agent-1", "agent_script: {file: agent.py}", "target.agent_script"),
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
        ("kind: simple, metric_key: right", "kind: simple", "gate.metric_key"),
        (
            "{kind: simple, metric_key: right, op: gte, value: 0.5}",
            "{kind: logical, operator: or, conditions: [{aggregation: min, op: gte, value: 0.5}]}",
            "gate.conditions[0].metric_key",
        ),
        ("op: gte", "op: above", "gate.op"),
        ("value: 0.5", "value: high", "gate.value"),
        ("gate: {kind: simple, metric_key: right, op: gte, value: 0.5}", "reward: {kind: metric}", "reward.metric_key"),
    ],
)
def test_mistakes_are_told_with_their_place(project, old, new, key):
    (project / "suite.yaml").write_text(SUITE.replace(old, new))
    with pytest.raises(InputError) as raised:
        load_suite(project / "suite.yaml", "letta", options={"target": "agent.py:knows_france"})
    assert key in {problem.key for problem in raised.value.problems}


def test_no_more_retries_are_allowed_than_can_be_made(project):
    suite = SUITE.replace("agent_id: agent-1", "agent_id: agent-1, max_retries: 1000")
    suite = suite.replace("kind: tool, function: contains", "kind: model_judge, prompt: x, max_retries: 1000")
    (project / "suite.yaml").write_text(suite)
    with pytest.raises(InputError) as raised:
        load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    expected = "max_retries: expected a whole number from 0 to 999, found 1000"
    assert {(problem.key, problem.message) for problem in raised.value.problems} == {
        ("target.max_retries", expected), ("graders.right.max_retries", expected),
    }  # fmt: skip


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
        ("op: gte, value: 0.5", "aggregation: accuracy, op: gte, value: 101", "gate.value"),
        ("name: support", "name: support\nreward: {kind: metric, metric_key: right}", "reward"),
        ("name: support", "name: support\ngrader: {kind: tool, function: exact_match}", "grader"),
        ("agent_id: agent-1", "agent_id: agent-1, tiemzone: x", "target.tiemzone"),
        ("agent_id: agent-1", "agent_id: agent-1, permission_mode: unrestricted", "target.permission_mode"),
        ("name: support", "name: support\nmax_samples: 0", "max_samples"),
        ("name: support", "name: support\nnum_runs: 0", "num_runs"),
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


JUDGED = SUITE.replace(
    "right: {kind: tool, function: contains}",
    'right: {kind: rubric, prompt: "{topic}: {tone}", rubric_vars: [topic]}',
)
REWARDED = JUDGED.partition("gate:")[0] + "reward: {kind: metric, metric_key: right}\n"


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
    [(JUDGED, "letta_0_9"), (REWARDED, "letta_0_17")],
)
def test_the_form_of_a_suite_decides_what_is_around_its_rubrics(project, suite, wrapper):
    (project / "suite.yaml").write_text(suite)
    loaded = load_suite(project / "suite.yaml", options={"target": "agent.py:knows_france"})
    assert loaded.evaluators[0].config.get("wrapper") == wrapper


def test_a_prompt_of_a_gate_suite_that_would_place_the_answer_is_noticed(project):
    suite = JUDGED.replace("{topic}: {tone}", "{topic}: {submission}")
    ((key, message),) = heard(project, suite, '{"input": "x", "rubric_vars": {"topic": "t"}}\n')
    assert (key, message.startswith("{submission}: in a suite with a gate")) == ("graders.right.prompt", True)


def test_a_name_without_a_value_is_an_error_of_its_samples_where_a_suite_has_a_reward(project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "never used")
    data = '{"input": "x", "rubric_vars": {"topic": "t", "tone": "u"}}\n{"input": "y", "rubric_vars": {"topic": "t"}}\n'
    ((_, message),) = heard(project, REWARDED, data)
    assert "{tone}, which 1 of 2 samples lack: these cannot be judged" in message
    stored_rows = rows(run(project, REWARDED, data.splitlines()[1]))
    assert {row.error.type for (_, name), row in stored_rows.items() if name == "right"} == {"bad_rubric"}


def test_a_prompt_of_a_reward_suite_that_cannot_be_filled_in_is_refused(project):
    with pytest.raises(InputError, match="Single '}'"):
        heard(project, REWARDED.replace("{topic}: {tone}", "{topic} }"), DATA)
