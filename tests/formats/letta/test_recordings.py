"""Recorded conversations of Letta suites, replayed and graded without the agent."""

import json
from contextlib import nullcontext

import pytest

from evalwright.errors import InputError
from evalwright.model.result import CaseVerdict
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.stored_run import open_run
from formats.letta.projects import SUITE, rows, run, statuses


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


@pytest.mark.parametrize(("in_suite", "asked", "refused"), [(1, 3, True), (3, 1, False), (3, None, True)])
def test_recordings_are_replayed_once_whatever_the_suite_or_the_command_line_asks(project, in_suite, asked, refused):
    recorded = run(project).run_dir
    told = pytest.raises(InputError, match="replayed once only") if refused else nullcontext()
    with told:
        run(project, SUITE + f"num_runs: {in_suite}\n", target=None, cached=recorded, trials=asked)


def test_a_sample_without_any_turn_was_not_attempted_also_when_turns_are_graded(project):
    sample = {"input": ["capital of France?", "of Italy?"], "ground_truth": ["Paris", "Rome"]}
    recordings = [
        {"sample": {"id": i, **sample}, "trajectory": trajectory, "agent_id": "a"}
        for i, trajectory in enumerate(([], [[], []], [[{"message_type": "assistant_message", "content": "Paris"}]]))
    ]
    (project / "old").mkdir()
    (project / "old" / "results.jsonl").write_text(
        "".join(json.dumps({"type": "result", "result": row}) + "\n" for row in recordings)
    )
    outcome = run(project, data=3 * (json.dumps(sample) + "\n"), target=None, cached=project / "old")
    assert statuses(outcome) == {"0": "error", "1": "fail", "2": "fail"}
    assert outcome.summary.native["total_attempted"] == 2
    assert outcome.summary.native["by_metric"]["right"]["avg_score_attempted"] == 0.5 / 3


def test_a_sample_without_a_recording_names_the_recordings_that_lack_it(project):
    (project / "old").mkdir()
    (project / "old" / "results.jsonl").write_text(json.dumps(FINE) + "\n")
    outcome = run(project, data='{"input": "a"}\n{"input": "b"}\n', target=None, cached=project / "old")
    reader, _ = open_run(outcome.run_dir)
    (reasons,) = [verdict.reasons for verdict in reader.verdicts(CaseVerdict) if verdict.status == "error"]
    assert f"{project / 'old'} has no result of this sample" in reasons[0]


CUSTOM = """\
from letta_evals.decorators import extractor


@extractor
def nothing(trajectory, config):
    return None


@extractor
def state(trajectory, config, agent_state):
    return repr(agent_state)


@extractor
def memory(trajectory, config, agent_state):
    return agent_state.memory.blocks[0].value + agent_state.blocks[0].label
"""


def recorded(project, suite, **more):
    """The results of two graders of one recorded sample, and the lines in the original's form."""
    (project / "custom.py").write_text(CUSTOM)
    (project / "old").mkdir()
    result = {"sample": {"id": 0}, "agent_id": "a", "trajectory": FINE["trajectory"], **more}
    (project / "old" / "results.jsonl").write_text(json.dumps({"type": "result", "result": result}) + "\n")
    sample = '{"input": "capital of France?", "ground_truth": "Paris"}\n'
    outcome = run(project, suite, sample, target=None, cached=project / "old", output=project / "out")
    line = json.loads((project / "out" / "results.jsonl").read_text())
    return rows(outcome), line["result"]


def extracted(name):
    return SUITE.replace("plain: {kind: tool,", f"plain: {{kind: tool, extractor: custom.py:{name},")


def test_an_extractor_that_returns_none_has_found_nothing_and_spoils_no_other_grade(project):
    found, line = recorded(project, extracted("nothing"))
    assert found["0", "plain"].error.type == "empty_submission"
    assert {key: grade["score"] for key, grade in line["grades"].items()} == {"right": 1.0, "plain": 0.0}


def test_extractors_get_no_state_if_none_was_recorded(project):
    _, line = recorded(project, extracted("state"))
    assert line["submissions"]["plain"] == "None"


def test_extractors_find_memory_blocks_in_both_places_of_an_agent(project):
    state = {"blocks": [{"label": "human", "value": "Ada"}]}
    _, line = recorded(project, extracted("memory"), agent_state=state)
    assert line["submissions"]["plain"] == "Adahuman"


def test_tokens_of_other_kinds_are_found_wherever_a_provider_reports_them(project):
    told = {"prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 4}}
    _, line = recorded(project, SUITE, agent_usage=[{"reasoning_tokens": 0, **told}, {"cached_input_tokens": 1}])
    counts = line["cached_input_tokens"], line["cache_write_tokens"], line["reasoning_tokens"]
    assert counts == (3, None, 4)


def test_the_recorded_model_is_that_of_the_result(project):
    _, line = recorded(project, SUITE, model_name="m")
    assert line["model_name"] == "m"
