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


def test_load_says_what_is_wrong(tmp_path):
    (tmp_path / "eval.yaml").write_text("eval: {name: x}\nsystms: []\n")
    with pytest.raises(ew.InputError) as raised:
        ew.load(tmp_path / "eval.yaml")
    assert any("systms" in str(problem) for problem in raised.value.problems)
    with pytest.raises(ew.InputError, match="unknown format 'natve'; did you mean"):
        ew.load(tmp_path / "eval.yaml", format="natve")
