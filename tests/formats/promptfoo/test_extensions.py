"""`extensions`: what a user's functions see before and after the suite and each test, and what they can change."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.run.resumption import retry
from evalwright.session import Session
from evalwright.session.imports import nothing_imported
from formats.promptfoo.runs import Ran, run, write

NOTING = """
import json, pathlib
def note(*said):
    with (pathlib.Path(__file__).parent / "notes.jsonl").open("a") as file:
        file.write(json.dumps(said) + "\\n")
"""
"""What hooks in Python say is kept in a file beside them."""
SAYS = {"prompts": ["{{q}}"], "providers": ["echo"]}


def suite(*tests, extension="file://hooks.py:hook", **more):
    extensions = [extension] if isinstance(extension, str) else extension
    return {**SAYS, "extensions": extensions, "tests": [*tests], **more}


def asks(q, *values, **more):
    return {"vars": {"q": q}, "assert": [{"type": "contains", "value": value} for value in values], **more}


def notes(folder):
    file = folder / "notes.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def failing(folder, config, **files):
    with pytest.raises(InputError) as error:
        run(folder, config, **files)
    return str(error.value)


def test_a_function_of_any_other_name_is_called_at_every_hook(tmp_path):
    hooks = NOTING + "def hook(name, context):\n    note(name, sorted(context))\n"
    config = suite(asks("a", "a"), asks("b", "x"), evaluateOptions={"maxConcurrency": 1})
    ran = run(tmp_path, config, hooks__py=hooks)
    assert ran.statuses == ["pass", "fail"]
    assert ran.outcome.summary.sink_errors == []
    assert notes(tmp_path) == [
        ["beforeAll", ["suite"]],
        *[["beforeEach", ["test"]], ["afterEach", ["result", "test"]]] * 2,
        ["afterAll", ["config", "evalId", "prompts", "results", "suite"]],
    ]


@pytest.mark.parametrize("named", ["afterEach", "after_each"])
def test_a_function_with_the_name_of_a_hook_is_called_there_with_the_context_first(tmp_path, named):
    hooks = NOTING + f"def {named}(context, about):\n    note(context['test']['vars'], about)\n"
    run(tmp_path, suite(asks("a", "a"), extension=f"file://hooks.py:{named}"), hooks__py=hooks)
    assert notes(tmp_path) == [[{"q": "a"}, {"hookName": "afterEach"}]]


def test_a_function_need_not_take_the_name_of_its_hook(tmp_path):
    hooks = NOTING + "def afterAll(context):\n    note([one['success'] for one in context['results']])\n"
    run(tmp_path, suite(asks("a", "a"), asks("a", "b"), extension="file://hooks.py:afterAll"), hooks__py=hooks)
    assert notes(tmp_path) == [[[True, False]]]


def test_hooks_change_the_working_directory_for_each_other_only(tmp_path, monkeypatch):
    hooks = NOTING + "import os\n\ndef hook(name, context):\n    note(name, os.getcwd())\n    os.chdir('/')\n"
    monkeypatch.chdir(tmp_path)
    with Session(owns_process=True, stdout="keep"):
        assert run(tmp_path, suite(asks("a", "a")), hooks__py=hooks).statuses == ["pass"]
        assert Path.cwd() == tmp_path
    later = [[hook, "/"] for hook in ("beforeEach", "afterEach", "afterAll")]
    assert notes(tmp_path) == [["beforeAll", str(tmp_path)], *later]


def test_before_each_changes_the_variables_that_are_asked_judged_and_cleaned_up_with(tmp_path):
    hooks = (
        NOTING
        + """
def beforeEach(context):
    context["test"]["vars"]["sessionId"] = "s-" + context["test"]["vars"]["q"]
    return context
def afterEach(context):
    note(context["test"]["vars"]["sessionId"], context["result"]["metadata"]["sessionId"], context["result"]["score"])
"""
    )
    config = suite(
        asks("a", "{{sessionId}}", "s-a"),
        extension=["file://hooks.py:beforeEach", "file://hooks.py:afterEach"],
        prompts=["{{q}} {{sessionId}}"],
    )
    ran = run(tmp_path, config, hooks__py=hooks)
    assert (ran.statuses, ran.outputs) == (["pass"], ["a s-a"])
    assert notes(tmp_path) == [["s-a", "s-a", 1]]
    assert ran.outcome.summary.warnings == []  # of a variable that is missing


def test_before_each_sees_the_variables_that_the_test_makes(tmp_path):
    hooks = "def beforeEach(context):\n    context['test']['vars']['q'] += '-hook'\n    return context\n"
    test = {**asks("a", "a-made-hook"), "options": {"transformVars": "({q: vars.q + '-made'})"}}
    ran = run(tmp_path, suite(test, extension="file://hooks.py:beforeEach"), hooks__py=hooks)
    assert (ran.statuses, ran.outputs) == (["pass"], ["a-made-hook"])


def test_a_session_is_cleaned_up_after_a_call_that_failed(tmp_path):
    hooks = (
        NOTING
        + """
def hook(name, context):
    if name == "beforeEach":
        return {"test": {**context["test"], "vars": {"sessionId": "s"}}}
    if name == "afterEach":
        note(context["test"]["vars"], context["result"]["failureReason"])
"""
    )
    ran = run(tmp_path, suite(asks("a", "a"), prompts=["{{q | nofilter}}"]), hooks__py=hooks)
    assert ran.statuses == ["error"]
    assert notes(tmp_path) == [[{"sessionId": "s"}, 2]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no server')", "beforeEach of hooks.py: ValueError: no server in hooks.py:2"),
        ("return 5", "beforeEach of hooks.py: expected the context with its test and vars, or nothing; found 5"),
        (
            "return {'test': {'vars': context['test']['vars']}}",
            "it returned a test with another metadata, assert, options: only vars can be changed there",
        ),
    ],
)
def test_a_test_whose_before_each_cannot_be_followed_is_an_error(tmp_path, body, said):
    hooks = f"def beforeEach(context):\n    {body}\n"
    ran = run(tmp_path, suite(asks("a", "a"), extension="file://hooks.py:beforeEach"), hooks__py=hooks)
    assert ran.statuses == ["error"]
    assert said in ran.verdict.reasons[0]


def test_before_all_adds_tests_default_assertions_prompts_and_metrics(tmp_path):
    hooks = """
def beforeAll(context):
    suite = context["suite"]
    suite["tests"].append({"vars": {"q": "b"}, "assert": [{"type": "contains", "value": "b", "metric": "m"}]})
    suite["defaultTest"]["assert"].append({"type": "icontains", "value": "SAID"})
    suite["prompts"] = [{"raw": prompt["raw"] + " said", "label": "p"} for prompt in suite["prompts"]]
    suite["derivedMetrics"].append({"name": "twice", "value": "m * 2"})
    return context
"""
    ran = run(tmp_path, suite(asks("a", "a"), extension="file://hooks.py:beforeAll"), hooks__py=hooks)
    assert (ran.statuses, ran.outputs) == (["pass", "pass"], ["a said", "b said"])
    assert ran.judged().count("icontains#0 pass") == 2
    [column] = ran.native["prompts"]
    assert column["namedScores"]["twice"] == 2


def test_what_before_all_changes_in_place_and_does_not_return_is_not_taken(tmp_path):
    hooks = "def beforeAll(context):\n    context['suite']['tests'].clear()\n"
    ran = run(tmp_path, suite(asks("a", "a"), extension="file://hooks.py:beforeAll"), hooks__py=hooks)
    assert ran.statuses == ["pass"]


def test_mistakes_in_what_before_all_returns_name_the_hook_and_those_in_files_their_lines(tmp_path):
    hooks = """
def beforeAll(context):
    context["suite"]["tests"].append({"vars": {"q": "b"}, "assert": [{"type": "contain", "value": "b"}]})
    return context
"""
    config = suite("tests.yaml", extension="file://hooks.py:beforeAll")
    said = failing(tmp_path, config, hooks__py=hooks, tests__yaml="- vars: {q: a}\n  assert:\n  - type: contian\n")
    assert "hooks.py  suite.tests[1].assert[0].type" in said
    assert "tests.yaml:3  [0].assert[0].type" in said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no database')", "beforeAll of hooks.py: ValueError: no database in hooks.py:2"),
        ("return {'suite': {}}", "it returned a suite without prompts, tests, scenarios, defaultTest"),
        ("return 5", "beforeAll of hooks.py: expected the context with its suite, or nothing; found 5"),
        ("return object()", "beforeAll of hooks.py: it returned what JSON cannot express: context: <object"),
        ("context['suite']['tests'].append(context); return context", "context is nested deeper than 200 levels"),
        (
            "return {'suite': dict.fromkeys(context['suite'], 5)}",
            "suite.nunjucksFilters  expected a mapping of names of files, found 5",
        ),
    ],
)
def test_nothing_is_run_if_before_all_cannot_be_followed(tmp_path, body, said):
    hooks = f"def beforeAll(context):\n    {body}\n"
    assert said in failing(tmp_path, suite(asks("a"), extension="file://hooks.py:beforeAll"), hooks__py=hooks)
    assert not (tmp_path / "runs").exists()


def test_before_all_is_not_called_for_a_suite_with_mistakes(tmp_path):
    hooks = NOTING + "def hook(name, context):\n    note(name)\n"
    assert "vars" in failing(tmp_path, suite({"vars": 5}), hooks__py=hooks)
    assert notes(tmp_path) == []


def test_looking_at_a_suite_calls_nothing_and_says_what_is_missing(tmp_path):
    hooks = NOTING + "note('imported')\ndef hook(name, context):\n    note(name)\n"
    path = write(tmp_path, suite(asks("a", "a")), hooks__py=hooks)
    with nothing_imported():
        found = load_suite(path)
    assert notes(tmp_path) == []
    [warning] = found.warnings
    assert (warning.line, warning.message) == (
        5,
        "beforeAll of hooks.py was not executed: it may change tests and prompts",
    )
    assert len(found.unexecuted) == 1


def test_a_hook_that_fails_after_a_test_is_reported_and_the_run_goes_on(tmp_path):
    hooks = "def afterEach(context):\n    raise ValueError('no dashboard')\n"
    config = suite(asks("a", "a"), asks("b", "b"), extension="file://hooks.py:afterEach")
    ran = run(tmp_path, config, hooks__py=hooks)
    assert ran.statuses == ["pass", "pass"]
    [error] = ran.outcome.summary.sink_errors
    assert "afterEach of hooks.py: ValueError: no dashboard in hooks.py:2" in error["error"]
    assert error["count"] == 2


def test_scores_that_after_each_returns_are_reported_as_not_read(tmp_path):
    hooks = """
def afterEach(context):
    context["result"]["namedScores"] = {"mine": 1}
    return context
"""
    ran = run(tmp_path, suite(asks("a", "a"), extension="file://hooks.py:afterEach"), hooks__py=hooks)
    [error] = ran.outcome.summary.sink_errors
    assert "it returned other namedScores, which are not read here" in error["error"]


def test_tests_that_are_left_out_have_no_hooks(tmp_path):
    hooks = NOTING + "def hook(name, context):\n    note(name, context.get('test', {}).get('vars'))\n"
    config = suite(asks("a", "a", prompts=["one"]), prompts=[{"raw": "{{q}}", "label": one} for one in ("one", "two")])
    ran = run(tmp_path, config, hooks__py=hooks)
    assert sorted(ran.statuses) == ["pass", "skip"]
    assert [name for name, _ in notes(tmp_path)] == ["beforeAll", "beforeEach", "afterEach", "afterAll"]


def test_a_later_session_calls_before_all_again_and_after_all_with_every_result(tmp_path):
    hooks = (
        NOTING
        + """
def hook(name, context):
    note(name, len(context.get("suite", {}).get("tests", [])), [one["success"] for one in context.get("results", [])])
    if name == "beforeEach" and context["test"]["vars"]["q"] == "b" and not pathlib.Path(__file__ + ".up").exists():
        raise ValueError("not up")
"""
    )
    ran = run(tmp_path, suite(asks("a", "a"), asks("b", "b")), hooks__py=hooks)
    assert ran.statuses == ["pass", "error"]
    (tmp_path / "hooks.py.up").touch()
    (tmp_path / "notes.jsonl").unlink()
    assert Ran(retry(ran.outcome.run_dir)).statuses == ["pass", "pass"]
    assert notes(tmp_path) == [
        ["beforeAll", 2, []],
        ["beforeEach", 0, []],
        ["afterEach", 0, []],
        ["afterAll", 2, [True, True]],
    ]


def test_hooks_in_javascript_share_their_variables(tmp_path):
    hooks = """
const fs = require("fs"), path = require("path");
let open = 0, most = [];
module.exports = async function (hookName, context) {
  if (hookName === "beforeAll") open = 10;
  if (hookName === "beforeEach") {
    open += 1;
    return { test: { ...context.test, vars: { ...context.test.vars, sessionId: `s${open}` } } };
  }
  if (hookName === "afterEach") most.push(context.test.vars.sessionId);
  if (hookName === "afterAll") {
    const all = context.results.map((one) => one.success);
    fs.writeFileSync(path.join(__dirname, "notes.jsonl"), JSON.stringify([open, most.sort(), all]));
  }
  return context;
};
"""
    config = suite(asks("a", "s1"), asks("b", "s1"), extension="file://hooks.js:hook", prompts=["{{sessionId}}"])
    ran = run(tmp_path, config, hooks__js=hooks)
    assert ran.statuses == ["pass", "pass"]
    assert ran.outcome.summary.sink_errors == []
    assert notes(tmp_path) == [[12, ["s11", "s12"], [True, True]]]


def test_variables_that_before_all_sets_are_known_and_masked(tmp_path):
    """A hook signs in and leaves its cookie in the environment, for the headers of requests."""
    hooks = """
module.exports = async function (hookName) {
  if (hookName === "beforeAll") process.env.SHOP_COOKIE = ["session", "Zq81xkW0vv2L"].join("=");
};
"""
    config = suite(
        asks("a", "a session="),
        asks("b", "z"),
        extension="file://hooks.js:hook",
        prompts=["{{q}} {{env.SHOP_COOKIE}}"],
        providers=["python:shop.py"],
    )
    shop = "def call_api(prompt, *_): return {'error': 'closed'} if prompt[0] == 'b' else {'output': prompt}\n"
    ran = run(tmp_path, config, hooks__js=hooks, shop__py=shop)
    assert ran.statuses == ["pass", "error"]
    assert ran.outcome.summary.warnings == []
    again = Ran(retry(ran.outcome.run_dir))
    assert "it set SHOP_COOKIE, which a resumed session does not take" in str(again.outcome.summary.sink_errors)
    stored = [file.read_text(errors="replace") for file in ran.outcome.run_dir.rglob("*") if file.is_file()]
    assert not any("Zq81xkW0vv2L" in text for text in stored)


def test_ctrl_c_ends_a_hook(tmp_path):
    hooks = f"""
module.exports = async () => {{
  process.kill({os.getpid()}, "SIGINT");
  await new Promise((done) => setTimeout(done, 3000));
  require("fs").writeFileSync({json.dumps(str(tmp_path / "ended"))}, "");
}};
"""
    path = write(tmp_path, suite(asks("a", "a"), extension="file://hooks.js:beforeAll"), hooks__js=hooks)
    with pytest.raises(KeyboardInterrupt):
        load_suite(path)
    assert not (tmp_path / "ended").exists()


def test_an_extension_is_a_function_in_a_file(tmp_path):
    said = failing(tmp_path, suite(asks("a"), extension=["package:mine", "file://gone.py:hook", 5]))
    for wrong in ("'package:mine'", "5"):
        assert f"expected file://FILE:FUNCTION with a file of Python or JavaScript, found {wrong}" in said
    assert "there is no file 'gone.py'" in said


def test_a_function_that_is_not_there_is_named_before_anything_runs(tmp_path):
    said = failing(tmp_path, suite(asks("a"), extension="file://hooks.py:hok"), hooks__py="def hook(*_): ...\n")
    assert "beforeAll of hooks.py: hooks.py has no function 'hok'" in said
