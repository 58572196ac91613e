"""Suites that are loaded, and evaluated as they are or changed."""

import json

import pytest

import evalwright as ew
from api.evaluations import passes, problems, write_suite


@pytest.fixture
def suite(tmp_path, monkeypatch):
    write_suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    return ew.load("eval.yaml")


def test_a_suite_runs_with_its_own_systems_evaluators_and_folder(suite, tmp_path):
    run = ew.evaluate(suite)
    assert (run.name, run.variants, run.path.parent) == ("suite", ["one", "two"], tmp_path / "own")
    assert [cell.output for cell in run] == ["a -", "a w", "b -", "b w"]


@pytest.mark.parametrize("given", ["absolute", "relative"])
def test_a_suite_keeps_its_cases_when_the_working_directory_changes(tmp_path, monkeypatch, given):
    """Also where a file of that name is in the new one."""
    write_suite(tmp_path)
    monkeypatch.chdir(tmp_path)
    suite = ew.load("eval.yaml" if given == "relative" else tmp_path / "eval.yaml")
    conversations = [{"id": "c", "messages": [{"role": "assistant", "content": "x"}], "expected": {"contains": "x"}}]
    (tmp_path / "conversations.json").write_text(json.dumps(conversations))
    recorded = ew.load("conversations.json")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "cases.yaml").write_text("cases: [{id: z, input: {word: a}}]\n")
    monkeypatch.chdir(tmp_path / "other")
    assert [cell.case_id for cell in ew.evaluate(suite, "one", out=None)] == ["a", "b"]
    assert [cell.status for cell in ew.evaluate(recorded, out=None)] == ["pass"]


def test_mistakes_of_a_suite_are_placed_as_its_path_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval.yaml").write_text("eval: {name: x}\nsystms: []\n")
    with pytest.raises(ew.InputError) as raised:
        ew.load("eval.yaml")
    assert {problem.file for problem in raised.value.problems} == {"eval.yaml"}
    assert str(tmp_path) not in str(raised.value)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for path in ("eval.yaml", tmp_path / "eval.yaml"):
        with pytest.raises(ew.InputError):
            ew.load(path)


def test_a_suite_is_narrowed_and_changed(suite):
    run = ew.evaluate(suite, "two", tags=["smoke"], out=None, name="other", trials=2)
    assert [(cell.case_id, cell.variant, cell.trial) for cell in run] == [("a", "two", 0), ("a", "two", 1)]
    assert run.name == "other"
    run = ew.evaluate(suite, {"mine": lambda text: text["word"]}, evaluators=passes, limit=1, out=None)
    assert [(cell.variant, cell.output, list(cell.results)) for cell in run] == [("mine", "a", ["passes"])]


def test_a_variant_that_a_suite_has_not_is_refused_with_the_nearest(suite):
    assert problems(suite, "tow") == [
        "system: no system 'tow'; did you mean \"two\"?: expected 'module:callable' or one of one, two"
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threshold": 7}, "threshold: expected a number from 0 to 1, found 7"),
        ({"threshold": float("nan")}, "threshold: expected a number from 0 to 1, found nan"),
        ({"agent_timeout": "3"}, "agent_timeout: expected a number from 0.001 to 1e+09, found '3'"),
        ({"workers": 2.5}, "workers: expected a whole number from 1 to 50, found 2.5"),
        ({"max_retries": -1}, "max_retries: expected a whole number of at least 0, found -1"),
        ({"targets": 3, "target": ["a"]}, "targets: expected a path, found 3\ntarget: expected text, found ['a']"),
        ({"allow_tools": "yes"}, "allow_tools: expected True or False, found 'yes'"),
        ({"allow_outside": ["/", 1]}, "allow_outside: expected a path, found 1"),
        ({"trials": 0}, "trials: suites of the format agentv do not have it; `evaluate` takes systems and trials"),
    ],
)
def test_options_of_a_format_are_held_to_what_the_command_line_accepts(tmp_path, options, said):
    (tmp_path / "EVAL.yaml").write_text("tests: [{id: a, criteria: x, input: q}]\n")
    with pytest.raises(ew.InputError) as raised:
        ew.load(tmp_path / "EVAL.yaml", **options)
    assert str(raised.value) == said


def test_a_repeatable_option_takes_a_single_value(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "q.txt").write_text("What?")
    (tmp_path / "suite").mkdir()
    question = "[{role: user, content: [{type: file, value: ../shared/q.txt}]}]"
    (tmp_path / "suite" / "EVAL.yaml").write_text(
        f"tests: [{{id: a, criteria: x, input: {question}, assertions: [{{type: contains, value: x}}]}}]\n"
    )
    (tmp_path / "suite" / "targets.yaml").write_text("targets: [{name: default, provider: mock, response: x}]\n")
    suite = ew.load(tmp_path / "suite" / "EVAL.yaml", allow_outside=str(tmp_path / "shared"))
    assert [cell.status for cell in ew.evaluate(suite, out=None)] == ["pass"]


def test_the_folder_of_a_skill_stands_for_its_evals(tmp_path):
    (tmp_path / "evals").mkdir()
    (tmp_path / "SKILL.md").write_text("---\nname: doctor\ndescription: d\n---\n")
    (tmp_path / "evals" / "evals.json").write_text('{"evals": [{"prompt": "x", "assertions": ["a"]}]}')
    suites = [ew.load(tmp_path, format=name, agent="sh agent.sh", judge_model="m") for name in (None, "skills")]
    assert [suite.name for suite in suites] == ["doctor", "doctor"]


def test_load_says_what_is_wrong(tmp_path):
    (tmp_path / "eval.yaml").write_text("eval: {name: x}\nsystms: []\n")
    with pytest.raises(ew.InputError) as raised:
        ew.load(tmp_path / "eval.yaml")
    assert any("systms" in str(problem) for problem in raised.value.problems)
    with pytest.raises(ew.InputError, match="unknown format 'natve'; did you mean"):
        ew.load(tmp_path / "eval.yaml", format="natve")
