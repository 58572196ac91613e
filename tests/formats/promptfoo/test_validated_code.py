"""What code a configuration needs, found without executing any of it."""

from __future__ import annotations

from functools import partial

import pytest

from evalwright.cli.many_suites import runnable_files
from evalwright.formats.loading import load_suite
from evalwright.formats.promptfoo.node_needs import places_for_node
from evalwright.run.options import RunOptions
from formats.promptfoo.runs import ECHO, write


def test_what_needs_node_is_counted(tmp_path):
    config = {
        "prompts": ["file://p.js"],
        "providers": [{"id": "file://p.js", "transform": "output.a.b"}],
        "defaultTest": {"options": {"transform": "output + 1"}},
        "tests": [{"assert": [{"type": "javascript", "value": "true"}, {"type": "python", "value": "True"}]}] * 2,
    }
    suite = load_suite(write(tmp_path, config, **{"p.js": ""}), to_run=False)
    assert places_for_node(suite.variants, list(suite.cases), ()) == 6


def test_code_of_requests_filters_scores_and_providers_of_tests_needs_node_too(tmp_path):
    web = {"url": "http://127.0.0.1:9", "validateStatus": "status < 500", "transformRequest": "({p: prompt})"}
    config = {
        "prompts": ["{{q}}"],
        "providers": [{"id": "http", "config": web}],
        "nunjucksFilters": {"one": "./f.js", "other": "./f.py"},
        "tests": [
            {
                "provider": "file://p.js",
                "assertScoringFunction": "file://p.js",
                "assert": [{"type": "context-recall", "value": "x", "contextTransform": "output.map(String)"}],
                "vars": {"q": "x"},
            }
        ],
    }
    suite = load_suite(write(tmp_path, config, **{"p.js": "", "f.js": "", "f.py": ""}), to_run=False)
    assert places_for_node(suite.variants, list(suite.cases), ()) == 6


@pytest.mark.parametrize(
    ("command", "count"),
    [("node p.mjs", 1), (" /usr/bin/node p.mjs", 1), ("npx tool", 1), ("nodes", 0), ("cat node", 0)],
)
def test_commands_that_are_node_are_counted_too(tmp_path, command, count):
    suite = load_suite(write(tmp_path, {**ECHO, "providers": [f"exec:{command}"]}), to_run=False)
    assert places_for_node(suite.variants, list(suite.cases), ()) == count


def test_a_configuration_named_by_a_flag_may_be_a_pattern_and_is_named_if_it_is_not_there(
    tmp_path, capsys, monkeypatch
):
    from evalwright.cli import main
    from formats.promptfoo.runs import write

    write(tmp_path, ECHO)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["validate", "-c", "*config.yaml"])
    with pytest.raises(SystemExit, match="2"):
        main(["validate", "-c", "gone.yaml"])
    assert "gone.yaml  does not exist" in capsys.readouterr().err


def test_validating_tells_tests_prompts_providers_cells_and_what_needs_node(tmp_path, capsys):
    from evalwright.cli import main
    from formats.promptfoo.runs import write

    config = {
        "prompts": ["a", "b"],
        "providers": ["echo", {"id": "echo", "label": "x", "prompts": ["a"]}],
        "evaluateOptions": {"repeat": 3},
        "tests": [
            {"vars": {"q": ["1", "2"]}, "prompts": ["a"], "assert": [{"type": "javascript", "value": "true"}]},
            {"providers": ["x"], "options": {"repeat": 1}},
        ],
    }
    with pytest.raises(SystemExit, match="0"):
        main(["validate", str(write(tmp_path, config))])
    assert "3 tests, 2 prompts, 2 providers, 13 cells; Node runs 1 place of it" in capsys.readouterr().out
    write(tmp_path, ECHO)
    with pytest.raises(SystemExit, match="0"):
        main(["validate", str(tmp_path)])
    assert "1 test, 1 prompt, 1 provider, 1 cell; nothing needs Node" in capsys.readouterr().out


def test_nothing_is_executed_to_validate(tmp_path):
    from evalwright.formats.loading import load_suite
    from evalwright.session.imports import nothing_imported
    from formats.promptfoo.runs import write

    config = {"prompts": ["file://p.py:f"], "providers": ["python:p.py"], "tests": ["file://p.py:g"]}
    path = write(tmp_path, config, **{"p.py": "raise SystemExit('executed')\n"})
    with nothing_imported():
        suite = load_suite(path)
    assert any("was not executed" in warning.message for warning in suite.warnings)


def test_functions_in_a_configuration_are_refused_by_their_place(tmp_path):
    from evalwright.errors import InputError
    from evalwright.formats.loading import load_suite

    path = tmp_path / "promptfooconfig.js"
    test = "{vars: {q: 'hi'}, options: {transform: o => 'zz'}, assert: [{type: 'contains', value: 'hi'}]}"
    path.write_text(f"module.exports = {{prompts: ['{{{{q}}}}'], providers: ['echo'], tests: [{test}]}};\n")
    with pytest.raises(InputError, match=r"tests\[0\]\.options\.transform is a function: put it into a file"):
        load_suite(path)


@pytest.mark.parametrize(
    ("command", "code"),
    [("plan promptfooconfig.yaml --detect 3pp", 1), ("list runs", 0), ("dataset lint promptfooconfig.yaml", 0)],
)
def test_commands_that_only_read_a_suite_make_no_tests(tmp_path, capsys, monkeypatch, command, code):
    from evalwright.cli import main
    from formats.promptfoo.runs import write

    makes_tests = "open('executed', 'w').close()\ndef tests(*_): return []\n"
    written = {"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "x"}]}
    write(tmp_path, {**ECHO, "tests": [written, "file://gen.py:tests"]}, **{"gen.py": makes_tests})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert (ended.value.code, (tmp_path / "executed").exists()) == (code, False)
    if command != "list runs":
        assert "gen.py was not executed" in capsys.readouterr().err


def test_a_forecast_names_the_code_whose_tests_it_lacks_if_there_are_no_others(tmp_path, capsys):
    from evalwright.cli import main

    write(tmp_path, {**ECHO, "tests": ["file://gen.py:tests"]}, **{"gen.py": "def tests(): return []\n"})
    with pytest.raises(SystemExit, match="2"):
        main(["run", str(tmp_path), "--dry-run"])
    assert "the tests that gen.py makes are missing: it is not executed" in capsys.readouterr().err


@pytest.mark.parametrize("options", [RunOptions(), RunOptions(cases=["test-7"])])
def test_suites_whose_tests_code_makes_are_among_several_that_run(tmp_path, options):
    """What is in them is known once their own processes have executed the code."""
    made = write(tmp_path / "a", {**ECHO, "tests": "file://made.py"}, made__py="def generate_tests():\n    return []\n")
    program = tmp_path / "promptfooconfig.js"
    program.write_text("module.exports = {}")
    load = partial(load_suite, to_run=False)
    assert runnable_files([made, program], load, options) == [(made, options), (program, options)]
