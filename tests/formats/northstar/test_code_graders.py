"""Graders by pattern and by code, from Python and from a run configuration."""

import json
import re

import pytest

from evalwright.northstar import EvalSuite, PythonCodeGrader, RegexGrader, TypeScriptCodeGrader
from formats.northstar.conversations import case, says

GOOD = "def validate(output, case, run):\n    return 'EUR' in output"


def graded(*graders, **given):
    result = EvalSuite(list(graders)).run([case(says("12.50 EUR"), **given)])
    return result.case_results[0].grades


def test_patterns_and_code_grade_side_by_side():
    grades = graded(RegexGrader("price", r"\d+\.\d\d EUR"), PythonCodeGrader("euros", GOOD, timeout_ms=5000))
    assert [(grade.name, grade.status, grade.score, grade.label) for grade in grades] == [
        ("price", "passed", 1.0, "pass"),
        ("euros", "passed", 1.0, "pass"),
    ]


@pytest.mark.slow("uses the second that a pattern may take")
@pytest.mark.parametrize(
    ("grader", "kind"),
    [
        (RegexGrader("r", "(E|E)*$", target="case.metadata.text"), "Timeout"),
        (PythonCodeGrader("p", "def validate(output, case, run):\n    while True: pass", timeout_ms=100), "Timeout"),
        (PythonCodeGrader("p", "def validate(", timeout_ms=5000), "RuntimeError"),
    ],
    ids=["pattern", "loop", "syntax"],
)
def test_what_could_not_judge_is_a_failed_grade_that_names_the_cause(grader, kind):
    grade = graded(grader, metadata={"text": "E" * 40 + "!"})[0]
    assert (grade.status, grade.score, grade.metadata["error_type"]) == ("failed", 0.0, kind)


@pytest.mark.parametrize("grader", [PythonCodeGrader, TypeScriptCodeGrader])
@pytest.mark.parametrize(
    ("timeout", "error"), [(0, ValueError), (5001, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_limits_of_time_are_checked(grader, timeout, error):
    with pytest.raises(error):
        grader("p", GOOD, timeout_ms=timeout)


@pytest.mark.parametrize(("pattern", "flags"), [("(a", None), ("a{99999999999}", None), ("a", ["verbose"])])
def test_mistakes_of_patterns_are_value_errors(pattern, flags):
    with pytest.raises(ValueError, match="r: "):
        RegexGrader("r", pattern, flags=flags)


def test_a_bad_pattern_is_an_error_of_re_as_well():
    with pytest.raises(re.error, match="unterminated"):
        RegexGrader("r", "(a")


def test_attributes_are_as_given():
    regex = RegexGrader("r", "a+", flags=["DOTALL"])
    assert (regex.target, regex.flags, regex.requires_feedback) == ("final_response", ["DOTALL"], False)
    assert PythonCodeGrader("p", GOOD).timeout_ms == 1000


@pytest.mark.slow("code in a process of its own, twice")
def test_a_run_configuration_runs_from_the_command_line(tmp_path, monkeypatch, capsys):
    from evalwright.cli import main

    monkeypatch.chdir(tmp_path)
    graders = [
        {"type": "python", "name": "euros", "code": GOOD, "timeout_ms": 5000},
        {"type": "regex", "name": "endless", "pattern": "(E|E)*$", "target": "case.metadata.text"},
    ]
    (tmp_path / "graders.json").write_text(json.dumps({"graders": graders}))
    record = {"id": "a", "messages": [says("12 EUR")], "metadata": {"text": "E" * 40 + "!"}}
    (tmp_path / "data.jsonl").write_text(json.dumps(record))
    with pytest.raises(SystemExit) as ended:
        main(["run", "data.jsonl", "--graders", "graders.json"])
    assert ended.value.code == 3
    assert "endless: timeout" in capsys.readouterr().out
