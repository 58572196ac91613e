"""What is said of newer suites: what cannot be done, what nothing reads, what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.cli import main
from evalwright.convert.losses import unread_keys
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from formats.agentv.newer_suites import ECHO, HI, load, one, problems


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"type": "skill-trigger"}, "skill"),
        ({"type": "contains", "value": "x", "min_score": 2}, "min_score"),
        ({"type": "llm-grader", "prompt": {"config": {}}}, "prompt.command"),
        ({"type": "rubrics", "criteria": [{"outcome": "x", "operator": "maybe"}]}, "operator"),
        ({"type": "rubrics", "criteria": [{"outcome": "x", "required": "yes"}]}, "texts in YAML 1.2"),
        ({**HI, "required": "yes"}, "found 'yes' (yes, no, on and off are texts in YAML 1.2); write true"),
        ({**HI, "negate": "no"}, "true or false, found 'no' (yes, no, on and off are texts in YAML 1.2); write false"),
        ({**HI, "negate": "true"}, "negate: expected true or false, found 'true' (in quotes it is a text); write true"),
        ({**HI, "negate": 1}, "negate: expected true or false, found 1; write true"),
        ({**HI, "negate": []}, "negate: expected true or false, found []"),
        ({"type": "regex", "value": "(?i)hi"}, "'value' is not a regular expression of JavaScript: invalid group at 0"),
        ({"type": "regex", "value": "hi", "flags": "zz"}, "flags: expected some of d, g, i, m, s, u, v and y"),
        ({"type": "regex", "value": "hi", "flags": 3}, "flags"),
        ({"type": "regex", "value": ["hi"]}, "value"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, check: dict[str, Any], said: str) -> None:
    assert said in problems(load(folder, tests=[one(criteria="x", assertions=[check])]))[0]


def test_defaults_are_left_out_only_by_a_boolean(folder: Path) -> None:
    for value, said in ((True, ""), ("yes", "skip_defaults: expected true or false, found 'yes' (yes, no, on")):
        case = one(assertions=[HI], execution={"skip_defaults": value})
        assert said in problems(load(folder, tests=[case], assertions=[HI]))[0]


@pytest.mark.parametrize("key", ["provider_batching", "keepTempFiles", "verbose"])
def test_settings_of_targets_that_are_booleans_are_nothing_else(folder: Path, key: str) -> None:
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, key: "yes"}]}))
    with pytest.raises(InputError, match=rf"'default': {key}: expected true or false, found 'yes' \(yes, no, on"):
        list(load(folder, tests=[one(assertions=[HI])]).cases)


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({"a": ["B", "c"]}, ["tests[0].depends_on", "'B'; did you mean \"b\"?", "'c'"]),
        ({"a": ["a"]}, ["tests[0].depends_on", "itself"]),
        ({"a": ["b"], "b": ["a"]}, ["depends_on", "circle"]),
    ],
)
def test_dependencies_that_cannot_be_met_are_refused(
    folder: Path, needs: dict[str, list[str]], said: list[str]
) -> None:
    tests = [{**one(assertions=[HI]), "id": case_id, "depends_on": needs.get(case_id)} for case_id in ("a", "b")]
    with pytest.raises(InputError) as raised:
        load(folder, tests=tests)
    assert [words for words in said if words not in str(raised.value)] == []


def test_dependencies_on_a_case_that_is_not_chosen_are_met(folder: Path) -> None:
    load(
        folder,
        tests=[
            {**one(assertions=[HI]), "description": "first"},
            {**one(depends_on=["a"], assertions=[HI]), "id": "b", "description": "second"},
        ],
    )
    suite = load_suite(folder / "suite.eval.yaml", "agentv", options={"description": "second"})
    assert [case.id for case in suite.cases] == ["b"]


def test_mistakes_in_rubrics_are_placed_at_the_keys_of_the_file(folder: Path) -> None:
    check = {"type": "rubrics", "criteria": [{"outcome": "ok", "weight": -1}], "temperature": "hot"}
    (said,) = problems(load(folder, tests=[one(assertions=[check])]))
    assert " assertions[0].criteria[0].weight: " in said
    assert " assertions[0].temperature: " in said


@pytest.mark.parametrize(("wrong", "found"), [("b", "'b'"), ([3], "3 in it")])
def test_a_case_that_depends_on_others_is_said_to_run_like_any_other(folder: Path, wrong: object, found: str) -> None:
    first = {**one(assertions=[HI]), "id": "a", "depends_on": wrong}
    case = {**one(assertions=[HI]), "id": "b", "depends_on": ["a"], "on_dependency_failure": "fail"}
    suite = load(folder, tests=[first, case])
    assert [(problem.key, problem.message) for problem in unread_keys(suite)] == [
        ("tests[0].depends_on", f"tests[0] (a): no effect: expected a list of ids, found {found}"),
        ("tests[1].depends_on", "tests[1] (b): no effect: the case does not wait for 'a', nor is it skipped"),
        ("tests[1].on_dependency_failure", "tests[1] (b): no effect: the case runs whatever became of others"),
    ]


def test_hooks_are_turned_off_only_by_a_boolean(folder: Path) -> None:
    with pytest.raises(InputError, match=r"enabled  expected true or false, found 'no' \(yes, no, on"):
        load(folder, workspace={"hooks": {"enabled": "no"}}, tests=[one(assertions=[HI])])


def test_what_has_an_effect_is_not_said_to_have_none(folder: Path) -> None:
    (folder / "template").mkdir()
    head = {"workspace": {"template": "template"}, "execution": {"threshold": 0.5, "workers": 1}, "version": "1.0"}
    suite = load(folder, **head, tests=[one(assertions=[HI], execution={"threshold": 0.5})])
    assert [problem.key for problem in unread_keys(suite)] == ["version"]


@pytest.mark.parametrize("key", ["prompts", "providers", "default_test"])
def test_files_of_agentv_5_are_refused_by_name(folder: Path, key: str) -> None:
    with pytest.raises(InputError, match=f"{key}.*AgentV 5"):
        load(folder, **{key: ["x"]}, tests=[one(assertions=[HI])])
    with pytest.raises(InputError, match="AgentV 5"):
        load(folder, **{key: ["x"]})


def test_several_targets_are_not_silently_one(folder: Path) -> None:
    suite = load(folder, execution={"targets": ["default", "other"], "workers": 7}, tests=[one(assertions=[HI])])
    assert (suite.variants[0].name, suite.run.max_concurrency) == ("default", 7)
    assert any("one target is evaluated at a time" in problem.message for problem in suite.warnings)


@pytest.mark.parametrize(
    ("case", "key"),
    [
        ({"input": [{"role": "user", "content": "hi", "contnt": "x"}]}, "input[0].contnt"),
        (
            {"input": [{"role": "user", "content": [{"type": "text", "value": "hi", "vlue": 1}]}]},
            "input[0].content[0].vlue",
        ),
        ({"input": [{"role": "user", "content": [{"type": "json", "value": "{}"}]}]}, "input[0].content[0].value"),
        ({"input_messages": [{"role": "user", "content": "hi"}]}, "input"),
        ({"assertions": [{"type": "code-grader", "command": ["true"], "target": True}]}, "assertions[0].target"),
        ({"assertions": [{"type": "llm-grader", "prompt": "{{ answer }} {{ anser }}"}]}, "assertions[0].prompt"),
    ],
)
def test_what_nothing_reads_is_said(folder: Path, case: dict[str, Any], key: str) -> None:
    suite = load(folder, tests=[one(**{"criteria": "x", **case})])
    assert [problem.key for problem in suite.warnings] == [f"tests[0].{key}"]


def test_a_file_without_targets_says_so(folder: Path) -> None:
    (folder / "targets.yaml").unlink()
    assert any(
        "no targets.yaml in" in problem.message for problem in load(folder, tests=[one(assertions=[HI])]).warnings
    )


@pytest.mark.parametrize(
    ("conversations", "said"),
    [
        (["x"] * 3, "3 cases of 1 conversation: not independent"),
        (["x", "x", "y", ""], "3 cases of 2 conversations: not independent"),
        ([""], ""),
    ],
)
def test_the_end_of_a_run_says_of_how_many_conversations_its_cases_are(
    folder: Path, conversations: list[str], said: str
) -> None:
    tests = [
        one(assertions=[HI], **{"conversation_id": name} if name else {}) | {"id": f"c{i}"}
        for i, name in enumerate(conversations)
    ]
    outcome = run_suite(load(folder, tests=tests), RunOptions(out=folder / "runs"))
    told = "\n".join(run_lines(outcome.plan, outcome.summary, Paint()))
    assert said in told
    assert bool(said) == ("conversation" in told)


def test_a_notice_of_several_files_is_told_once(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(6):
        text = json.dumps({"name": f"Suite {number}", "tests": [one(assertions=[HI])]})
        (folder / f"s{number}.eval.yaml").write_text(text)
    (folder / "s0.eval.yaml").write_text(json.dumps({"name": "Suite", "strange": 1, "tests": [one(assertions=[HI])]}))
    with pytest.raises(SystemExit) as ended:
        main(["validate", str(folder), "--format", "agentv"])
    assert ended.value.code == 0
    told = capfd.readouterr().err
    assert told.count("the standard wants 2 to 64") == 1
    named = ", ".join(str(folder / f"s{number}.eval.yaml") for number in (1, 2, 3))
    assert f"(also in {named}, 2 more files)" in told
    assert told.count("also in") == 1, "what one file alone has names no other"


def test_a_checked_targets_file_is_said_to_have_targets_not_cases(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "targets.yaml").write_text(json.dumps({"targets": [ECHO, {**ECHO, "name": "other"}]}))
    with pytest.raises(SystemExit) as ended:
        main(["validate", str(folder / "targets.yaml")])
    assert (ended.value.code, capfd.readouterr().out) == (0, "ok: 2 targets\n")


@pytest.mark.parametrize(
    ("head", "key", "said"),
    [
        ({"name": None}, "name", "the suite is called suite.eval, like its file"),
        ({"dataset": "big"}, "dataset", "there is name, too"),
        ({"metadata": ["x"]}, "metadata", "expected a mapping, found a list"),
        ({"metadata": {"tags": "x"}}, "metadata.tags", "expected a list of texts, found 'x'"),
        ({"metadata": {"tags": ["x", 5]}}, "metadata.tags[1]", "5 is not used: expected a text"),
        ({"metadata": {"tags": ["x"]}, "tags": ["y"]}, "tags", "there is metadata.tags, too"),
        ({"target": "other", "execution": {"target": "default"}}, "target", "there is execution.target, too"),
        ({"target": 5}, "target", "expected the name of a target, found 5"),
        ({"evaluator": "code_judge"}, "evaluator", "cases without evaluators have an llm_judge, found 'code_judge'"),
        ({"description": 5}, "description", "expected a text, found 5"),
        ({"assert": [HI], "assertions": [HI]}, "assert", "there is assertions, too"),
        ({"tests": []}, "tests", "nothing reads the key 'tests' beside the other cases"),
    ],
)
def test_what_has_no_effect_at_the_top_of_a_file_is_said(
    folder: Path, head: dict[str, Any], key: str, said: str
) -> None:
    suite = load(folder, **{"evalcases": [one(expected_outcome="x", evaluators=[{"name": "h", **HI}])], **head})
    assert [(problem.key, said in problem.message) for problem in suite.warnings] == [(key, True)]


def test_files_of_newer_releases_need_no_name(folder: Path) -> None:
    assert load(folder, name=None, tests=[one(assertions=[HI])]).warnings == []


@pytest.mark.parametrize(
    ("case", "key", "said"),
    [
        ({"expected_outcome": "x", "criteria": "y"}, "criteria", "there is expected_outcome, too"),
        ({"expected_output": "x", "expected_messages": []}, "expected_output", "there is expected_messages, too"),
        ({"assert": [HI], "assertions": [HI]}, "assert", "there is assertions, too"),
        ({"evaluators": [], "execution": {"evaluators": []}}, "evaluators", "there is execution.evaluators, too"),
        ({"tags": ["x", 5]}, "tags[1]", "5 is not used: expected a text"),
        ({"vars": ["x"]}, "vars", "expected a mapping, found a list"),
    ],
)
def test_what_has_no_effect_in_a_case_is_said(folder: Path, case: dict[str, Any], key: str, said: str) -> None:
    suite = load(folder, tests=[one(**{"criteria": "x", **case})])
    assert problems(suite) == [""]
    assert [(problem.key, said in problem.message) for problem in suite.warnings] == [(f"tests[0].{key}", True)]


def test_an_outcome_that_is_null_leaves_the_place_to_another(folder: Path) -> None:
    assert problems(load(folder, tests=[one(expected_outcome=None, criteria="x")])) == [""]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ({"evalcases": None}, "evalcases: expected a list, found null"),
        ({"cases": []}, "evalcases: expected a list, it is missing: cases has none"),
        ({"eval_cases": {"a": 1}}, r"evalcases \(here eval_cases\): expected a list, found a mapping"),
        ({"evalcase": []}, "evalcases: expected a list, it is missing; should 'evalcase' be 'evalcases'"),
    ],
)
def test_a_list_of_cases_that_is_none_is_named_as_what_it_is(folder: Path, head: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(folder, **head)
