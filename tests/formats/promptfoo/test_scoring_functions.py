"""Functions that replace the outcome of a cell."""

from __future__ import annotations

import json

import pytest

from formats.promptfoo.runs import ECHO, run


def test_the_parts_of_a_result_are_counted_and_written(tmp_path):
    code = (
        "def get_assert(output, context):\n"
        "    parts = [{'pass_': True, 'score': 1, 'reason': 'a'}, {'pass': False, 'score': 0, 'reason': 'b'}]\n"
        "    return {'pass_': True, 'score': 0.5, 'reason': 'half', 'component_results': parts}\n"
    )
    test = {"vars": {"q": "x"}, "assert": [{"type": "python", "value": "file://c.py"}]}
    out = tmp_path / "out.json"
    found = run(tmp_path, {**ECHO, "tests": [test]}, options={"output": out}, c__py=code)
    [column] = found.native["prompts"]
    assert (column["assertPassCount"], column["assertFailCount"]) == (2, 1)
    [row] = json.loads(out.read_text())["results"]["results"]
    parts = row["gradingResult"]["componentResults"]
    assert [(part["pass"], part["reason"]) for part in parts] == [(True, "half"), (True, "a"), (False, "b")]
    assert {one["assertion"]["type"] for one in parts} == {"python"}


def test_a_scoring_function_replaces_the_outcome(tmp_path):
    config = {
        **ECHO,
        "defaultTest": {"assertScoringFunction": "file://s.py:grade"},
        "tests": [{"vars": {"q": "ab"}, "assert": [{"type": "contains", "value": "z", "metric": "x"}]}],
    }
    code = "def grade(scores, context):\n    return {'pass': scores['x'] == 0, 'score': 0.8, 'reason': 'own'}\n"
    found = run(tmp_path, config, **{"s.py": code})
    assert (found.verdict.status, found.verdict.score) == ("pass", 0.8)


def test_the_named_scores_of_a_scoring_function_replace_those_of_assertions(tmp_path):
    asked = [{"type": "contains", "value": one, "metric": "x", "weight": 2} for one in "az"]
    code = (
        "def grade(scores, context):\n"
        "    return {'pass': True, 'score': 1, 'reason': 'r', 'namedScores': {'x': 0.25, 'y': 0.5}}\n"
    )
    test = {"vars": {"q": "a"}, "assert": asked, "assertScoringFunction": "file://s.py:grade"}
    found = run(tmp_path, {**ECHO, "tests": [test]}, **{"s.py": code})
    assert found.verdict.named_scores == {"x": 0.25, "y": 0.5}
    assert found.native["prompts"][0]["namedScores"] == {"x": 1.0, "y": 0.5}


@pytest.mark.parametrize(
    ("named", "status"), [("s.py:raises", "fail"), ("s.py:gone", "error"), ("s.js:gone", "error"), ("s.js", "fail")]
)
def test_only_a_scoring_function_that_is_there_can_fail_a_cell(tmp_path, named, status):
    test = {"assert": [{"type": "contains", "value": "a"}], "assertScoringFunction": f"file://{named}"}
    files = {"s.py": "def raises(scores, context):\n    raise ValueError('no')\n", "s.js": "module.exports = () => 5;"}
    assert run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}, **test}]}, **files).statuses == [status]


def test_a_python_file_without_a_name_has_its_scoring_function_under_func(tmp_path):
    score = "def func(named, context):\n    return {'pass': True, 'score': 0.25, 'reason': 'r'}\n"
    test = {"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "y"}], "assertScoringFunction": "file://s.py"}
    ran = run(tmp_path, {**ECHO, "tests": [test]}, **{"s.py": score})
    assert (ran.verdict.status, ran.verdict.score) == ("pass", 0.25)


def test_a_scoring_function_sees_every_assertion_as_it_is_written(tmp_path):
    members = [{"type": "contains", "value": "x", "metric": "inner"}, {"type": "contains", "value": "z"}]
    asked = [
        {"type": "assert-set", "assert": members, "threshold": 0.5},
        {"type": "contains", "value": "y", "weight": 3},
    ]
    code = (
        "import json\n"
        "def func(named, context):\n"
        "    parts = [(part['pass'], part['assertion']) for part in context['componentResults']]\n"
        "    return {'pass': True, 'score': 1, 'reason': json.dumps(parts)}\n"
    )
    test = {"vars": {"q": "x"}, "assert": asked, "assertScoringFunction": "file://s.py"}
    ran = run(tmp_path, {**ECHO, "tests": [test]}, **{"s.py": code})
    [own] = [row for row in ran.rows if row.evaluator == "assertScoringFunction"]
    assert json.loads(own.reason) == [[True, asked[0]], [True, members[0]], [False, members[1]], [False, asked[1]]]


def test_a_scoring_function_is_told_the_threshold_of_the_defaults(tmp_path):
    code = "def func(named, context):\n    return {'pass': context['threshold'] == 0.25, 'score': 1, 'reason': 'r'}\n"
    config = {
        **ECHO,
        "defaultTest": {"assertScoringFunction": "file://s.py", "threshold": 0.25},
        "tests": [{"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "x"}]}],
    }
    assert run(tmp_path, config, **{"s.py": code}).statuses == ["pass"]
