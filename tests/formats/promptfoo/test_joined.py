"""Several configurations as one suite: `-c a.yaml -c b.yaml`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.cli import main
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import run_at

FIRST = """
prompts: ["a {{v}}"]
providers: echo
env: {PLACE: here, TIME: now}
defaultTest: {vars: {v: 0}, assert: [{type: contains, value: a}]}
"""
SECOND = """
prompts: ["a {{v}}", "a b {{v}} {{env.PLACE}} {{env.TIME}}"]
targets: [echo, {id: echo, label: two}]
tests: {vars: {v: 1}}
env: {PLACE: there}
defaultTest: {assert: [{type: regex, value: "$ref"}]}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("a.yaml").write_text(FIRST)
    tmp_path.joinpath("b.yaml").write_text(SECOND.replace('"$ref"', '{$ref: "#/digits"}') + 'digits: "[0-9]"\n')
    return [Path("a.yaml"), Path("b.yaml")]


def test_lists_are_joined_and_of_other_keys_the_last_one_counts(files, tmp_path):
    ran = run_at(files[0], tmp_path, {"add_config": files[1:]})
    assert ran.outputs == ["a 1", "a b 1 there now"] * 2
    assert [name for _, name, _ in ran.verdicts] == [f"{one}@prompt-{k}" for one in ("echo", "two") for k in (0, 1)]
    assert ran.statuses == ["pass"] * 4
    assert {row.evaluator for row in ran.rows} == {"contains#0", "regex#1"}
    assert not [warning for warning in ran.outcome.summary.warnings if "nothing reads" in warning]


def test_mistakes_are_reported_in_the_file_that_has_them(files):
    mistaken = (
        "tests: [{vars: {v: 2}}, {assert: [{type: regexx}]}]\ndefaultTest: {threshold: x}\nproviders: [nosuch:m]\n"
    )
    Path("c.yaml").write_text(mistaken)
    with pytest.raises(InputError) as refused:
        load_suite(files[0], options={"add_config": [files[1], Path("c.yaml")]})
    assert sorted((problem.file, problem.line, problem.key) for problem in refused.value.problems) == [
        ("c.yaml", 1, "tests[1].assert[0].type"),
        ("c.yaml", 2, "defaultTest.threshold"),
        ("c.yaml", 3, "providers[0]"),
    ]


def test_all_files_must_be_in_one_folder(files, tmp_path):
    other = tmp_path / "more" / "c.yaml"
    other.parent.mkdir()
    other.write_text(SECOND)
    with pytest.raises(InputError, match=r"c.yaml.*expected a file in the folder of a.yaml"):
        load_suite(files[0], options={"add_config": [other]})


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "a.yaml", "-c", "b.yaml"],
        ["-c", "a.yaml", "b.yaml"],
        ["-c", "[ab].yaml"],
        ["a.yaml", "--add-config=b.yaml"],
    ],
    ids=" ".join,
)
def test_flags_of_promptfoo_name_the_files_of_one_suite(files, capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(["validate", *words, "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["variants"] == 4


def test_a_result_file_behind_a_configuration_is_not_joined(files, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "-c", "a.yaml", "-c", "b.yaml", "-o", "results.json", "--out", "runs"])
    assert ended.value.code == 0
    with pytest.raises(SystemExit) as ended:
        main(["run", "-c", "a.yaml", "-c", "b.yaml", "-c", "results.json", "--out", "again"])
    assert ended.value.code == 0
    assert "a  1 case × 4 variants" in capsys.readouterr().out
