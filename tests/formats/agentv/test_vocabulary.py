"""What AgentV's releases up to 4.42 call things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.snapshot import snapshot
from evalwright.model.suite import Suite
from formats.agentv.newer_suites import ECHO, HI, load, one, problems, statuses


@pytest.mark.parametrize(
    "case", [one(assertions=[HI]), one(**{"assert": [HI]}), one(expected_output="hi"), one(criteria="greets")]
)
def test_a_case_may_say_in_any_way_what_is_good(folder: Path, case: dict[str, Any]) -> None:
    assert problems(load(folder, tests=[case])) == [""]


def test_a_case_that_says_nothing_of_it_is_an_error(folder: Path) -> None:
    assert "expected_outcome" in problems(load(folder, tests=[one()]))[0]
    assert "expected_outcome" in problems(load(folder, evalcases=[one(expected_output="hi")]))[0]
    assert problems(load(folder, tests=[one()], assertions=[HI])) == [""]


def test_a_case_may_name_the_targets_that_it_is_for(folder: Path) -> None:
    other = {"name": "other", "provider": "mock", "response": "other"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [ECHO, other]}))
    check = {"type": "contains", "value": "other"}
    cases = [one(assertions=[check], execution={"targets": ["other"]}), one(id="b", assertions=[HI])]
    assert statuses(folder, tests=cases) == {"a": "pass", "b": "pass"}
    several = load(folder, tests=[one(assertions=[check], execution={"targets": ["other", "default"]})])
    assert ["execution.targets" in str(problem.key) for problem in several.warnings] == [True]


def test_cases_may_stand_in_other_files(folder: Path) -> None:
    (folder / "cases").mkdir()
    (folder / "cases" / "one.yaml").write_text(json.dumps([one(id="b", assertions=[HI])]))
    (folder / "cases" / "two.jsonl").write_text(json.dumps(one(id="c", assertions=[HI], metadata={"k": 1})))
    (folder / "single.yaml").write_text(json.dumps(one(id="d", assertions=[HI])))
    entries = [one(assertions=[HI]), "file://cases/*", "file://single.yaml"]
    assert statuses(folder, tests=entries) == dict.fromkeys("abcd", "pass")
    assert statuses(folder, tests="./cases/one.yaml") == {"b": "pass"}
    assert statuses(folder, tests=["file://cases/{one,t*}.{yaml,jsonl}"]) == {"b": "pass", "c": "pass"}


def test_cases_may_be_folders(folder: Path) -> None:
    for name in ("b", "a"):
        (folder / "cases" / name).mkdir(parents=True)
        (folder / "cases" / name / "case.yaml").write_text(json.dumps({"input": "hi", "assertions": [HI]}))
    (folder / "cases" / "none").mkdir()
    assert statuses(folder, tests="./cases/") == {"a": "pass", "b": "pass"}
    with pytest.raises(InputError, match=r"case\.yaml"):
        load(folder, tests="./cases/a")


@pytest.mark.parametrize(
    ("call", "loaded"),
    [
        ({"tool": "Skill", "input": {"skill": "csv"}}, True),
        ({"tool": "Skill", "input": {"skill": "other"}}, False),
        ({"tool": "readFile", "input": {"path": ".claude/skills/csv/SKILL.md"}}, True),
        ({"tool": "Read", "input": {"file_path": "data.csv"}}, False),
        ({"tool": "Using skill: csv"}, True),
        ({"tool": "Bash", "input": {"command": "ls"}, "output": {"found": "skills/csv/SKILL.md"}}, True),
    ],
)
def test_a_skill_is_seen_by_the_calls_that_load_it(folder: Path, call: dict[str, Any], loaded: bool) -> None:
    message = {"output_messages": [{"role": "assistant", "content": "done", "tool_calls": [call]}]}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "command": "cat said.json"}]}))
    (folder / "said.json").write_text(json.dumps(message))
    checks = [{"type": "skill-trigger", "skill": "csv", "should_trigger": wanted} for wanted in (True, False)]
    cases = [one(id=str(check["should_trigger"]), assertions=[check]) for check in checks]
    expected = {"True": "pass" if loaded else "fail", "False": "fail" if loaded else "pass"}
    assert statuses(folder, tests=cases) == expected


def test_variables_of_the_environment_stand_in_newer_cases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREETING", "hi there")
    monkeypatch.setenv("LEAST", "0.5")
    asked = {"input": "say ${{ GREETING }}${{ NOT_SET_HERE }}"}
    check = {**HI, "required": True, "min_score": "${{ LEAST }}"}
    suite = load(folder, tests=[one(**asked, assertions=[check])])
    case = next(iter(suite.cases))
    assert (case.extra["prompt"], case.evaluators[0]["required"]) == ("say hi there", 0.5)
    assert [problem.message for problem in suite.warnings if "NOT_SET_HERE" in problem.message]
    older = load(folder, evalcases=[one(**asked, expected_outcome="x")])
    assert "${{ GREETING }}" in next(iter(older.cases)).extra["prompt"]
    assert any("stays as it is" in problem.message for problem in older.warnings)


def test_variables_of_the_environment_stand_in_what_cases_share(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANTED", "hi")
    monkeypatch.setenv("CHOSEN", "default")
    (folder / "shared.yaml").write_text(json.dumps({"assertions": [{"type": "equals", "value": "${{ WANTED }}"}]}))
    shared = [{"type": "contains", "value": "${{ WANTED }}"}, {"include": "./shared.yaml"}]
    suite = load(folder, tests=[one(criteria="x")], assertions=shared, execution={"target": "${{ CHOSEN }}"})
    values = [spec["config"]["value"] for case in suite.cases for spec in case.evaluators or ()]
    assert (values, suite.variants[0].name) == (["hi", "hi"], "default")


def test_texts_among_assertions_count_like_other_assertions(folder: Path) -> None:
    weights = {}
    for key in ("assert", "assertions"):
        case = next(iter(load(folder, tests=[one(**{key: ["kind", HI, "brief"]})], governance={"tier": 1}).cases))
        weights[key] = [spec["weight"] for spec in case.evaluators or () if "weight" in spec]
        assert case.metadata == {"governance": {"tier": 1}}
    assert weights == {"assert": [1.0], "assertions": [2.0, 1.0]}


def test_blank_texts_among_assertions_do_not_count(folder: Path) -> None:
    suite = load(folder, tests=[one(assertions=["kind", " ", HI]), one(id="b", assertions=["", HI])])
    weights = [[spec["weight"] for spec in case.evaluators or ()] for case in suite.cases]
    assert weights == [[1.0, 1.0], [1.0]]
    blank = [problem.key for problem in suite.warnings if "without text" in problem.message]
    assert blank == ["tests[0].assertions[1]", "tests[1].assertions[0]"]


def test_mistakes_in_other_files_name_these(folder: Path) -> None:
    (folder / "cases.yaml").write_text("- id: b\n  input: hi\n  assertions:\n  - {type: strange}\n- {id: 5}\n")
    suite = load(folder, tests="cases.yaml")
    assert all(problems(suite))
    by_name = {(Path(problem.file).name, problem.line, problem.key) for problem in suite.cases.problems}  # type: ignore[attr-defined]
    assert ("cases.yaml", 4, "[0].assertions[0].type") in by_name
    assert ("cases.yaml", 5, "[1].id") in by_name
    for wrong in ("nowhere.yaml", "../outside.yaml"):
        (folder.parent / "outside.yaml").write_text("[]")
        with pytest.raises(InputError, match=r"nowhere|outside"):
            load(folder, tests=wrong)
    (folder / "cases.csv").write_text("id,input\n")
    with pytest.raises(InputError, match=r"cases are read from \.yaml, \.yml, \.json, \.jsonl, not from cases\.csv"):
        load(folder, tests="cases.csv")


def test_input_and_files_of_the_suite_come_first(folder: Path) -> None:
    (folder / "rules.md").write_text("be kind")
    (folder / "more.md").write_text("be brief")
    system = [{"role": "system", "content": "you greet"}]
    cases = [
        one(assertions=[HI]),
        one(id="b", execution={"skip_defaults": True}, assertions=[HI]),
        one(id="c", input_files=["more.md"], assertions=[HI]),
    ]
    suite = load(folder, input=system, input_files=["rules.md"], tests=cases)
    prompts = {case.id: case.extra["prompt"] for case in suite.cases}
    places = [prompts["a"].index(text) for text in ("you greet", "be kind", "hi")]
    assert places == sorted(places)
    assert prompts["b"] == "hi"
    assert ("be kind" in prompts["c"], "be brief" in prompts["c"]) == (False, True)  # those of the case replace them


def test_variables_of_a_case_stand_in_its_texts(folder: Path) -> None:
    variables = {"name": "Ann", "shape": {"a": [1, 2]}}
    texts = {"input": "Hi {{ name }}, {{ vars.shape.a }} {{ unknown }}", "criteria": "{{name}}"}
    case = one(vars=variables, assertions=[HI], **texts)
    read = next(iter(load(folder, tests=[case]).cases))
    assert (read.extra["prompt"], read.extra["expected_outcome"]) == ("Hi Ann, [1,2] {{ unknown }}", "Ann")
    shared = load(folder, input=[{"role": "system", "content": "for {{ name }}"}], tests=[case])
    assert "for Ann" in next(iter(shared.cases)).extra["prompt"]


@pytest.mark.parametrize(
    ("check", "passes"),
    [
        ({"mode": "superset", "expected": [{"tool": "f"}]}, True),
        ({"mode": "superset", "expected": [{"tool": "f"}, {"tool": "f"}]}, False),
        ({"mode": "subset", "expected": [{"tool": "f"}, {"tool": "g"}]}, True),
        ({"mode": "subset", "expected": [{"tool": "g"}]}, False),
        ({"mode": "exact", "args_match": "exact", "expected": [{"tool": "f", "args": {"a": 1, "b": {"c": 2}}}]}, True),
        ({"mode": "exact", "args_match": "exact", "expected": [{"tool": "f", "args": {"a": 1}}]}, False),
        ({"mode": "exact", "args_match": "subset", "expected": [{"tool": "f", "args": {"a": 1}}]}, False),
        ({"mode": "exact", "args_match": "ignore", "expected": [{"tool": "f", "args": {"z": 1}}]}, True),
        ({"mode": "exact", "args_match": ["b.c"], "expected": [{"tool": "f", "args": {"a": 9, "b": {"c": 2}}}]}, True),
        ({"mode": "in_order", "expected": [{"tool": "f", "args": {"a": 9}, "args_match": ["b.c"]}]}, True),
        ({"mode": "in_order", "argsMatch": "superset", "expected": [{"tool": "f", "args": {"a": 1}}]}, True),
        ({"mode": "in_order", "expected": [{"tool": "f", "args": {"a": 1}, "argsMatch": "superset"}]}, True),
        ({"mode": "exact", "args_match": ["a"], "expected": [{"tool": "f", "args": {"a": None}}]}, False),
        ({"mode": "superset", "expected": [{"tool": "f", "args": {"a": 1}}]}, False),
        ({"mode": "superset", "expected": [{"tool": "f", "args": {"a": 1}, "args_match": "superset"}]}, True),
    ],
)
def test_newer_ways_to_compare_calls(folder: Path, check: dict[str, Any], passes: bool) -> None:
    message = {
        "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "f", "input": {"a": 1, "b": {"c": 2}}}]}]
    }
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "command": "cat said.json"}]}))
    (folder / "said.json").write_text(json.dumps(message))
    by_case = statuses(folder, tests=[one(assertions=[{"type": "tool-trajectory", **check}])])
    assert (by_case["a"] == "pass") is passes


@pytest.mark.parametrize(
    ("cases", "key", "default"),
    [
        ("tests", "assertions", "exact"),
        ("tests", "evaluators", "exact"),
        ("evalcases", "assert", "exact"),
        ("evalcases", "evaluators", "superset"),
    ],
)
def test_the_words_of_a_file_tell_how_arguments_are_compared(folder: Path, cases: str, key: str, default: str) -> None:
    check = {"name": "t", "type": "tool-trajectory", "mode": "exact", "expected": [{"tool": "f", "args": {"a": 1}}]}
    suite = load(folder, **{cases: [one(criteria="calls f", **{key: [check]})]})
    assert problems(suite) == [""]
    specs = snapshot(next(iter(suite.cases))).evaluators
    assert specs is not None
    assert specs[0].config.get("args_match", "superset") == default


def test_types_of_the_repository_are_programs(folder: Path) -> None:
    (folder / ".agentv" / "assertions").mkdir(parents=True)
    program = "import json, sys; print(json.dumps({'score': json.load(sys.stdin)['config']['wanted']}))"
    (folder / ".agentv" / "assertions" / "is-kind.py").write_text(program)
    cases = [one(id=str(score), assertions=[{"type": "is-kind", "wanted": score}]) for score in (0, 1)]
    assert statuses(folder, tests=cases) == {"0": "fail", "1": "pass"}
    assert "unknown type" in problems(load(folder, tests=[one(assertions=[{"type": "is-mean"}])]))[0]


@pytest.mark.parametrize(
    "check",
    [
        {"type": "latency", "max_ms": 60000},
        {"type": "composite", "assertions": [HI, {"type": "latency", "max_ms": 60000}]},
        {"type": "rubrics", "criteria": [{"outcome": "x", "operator": "contradiction"}]},
        {"type": "cost", "max_usd": 1},
        {"type": "token-usage", "max_total_tokens": 1},
        {"type": "llm-grader", "temperature": 0, "max_steps": 3},
        {"type": "rubrics", "criteria": "is kind"},
        {"type": "composite", "assertions": [HI], "aggregator": {"type": "code-grader", "path": "true"}},
        {"type": "composite", "assertions": [HI], "aggregator": {"type": "llm-grader"}},
        {"type": "contains", "value": "hi", "required": True, "min_score": 0.5},
    ],
)
def test_newer_words_of_evaluators_are_read(folder: Path, check: dict[str, Any]) -> None:
    suite = load(folder, tests=[one(criteria="x", assertions=[check])])
    assert problems(suite) == [""]
    assert [problem for problem in suite.warnings if "nothing reads" in problem.message] == []


CALLED: list[dict[str, Any]] = [
    {"role": "user", "content": "find it"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "found"},
]


def test_calls_of_tools_and_their_results_reach_systems(folder: Path) -> None:
    extra = next(iter(load(folder, tests=[one(input=CALLED, assertions=[HI])]).cases)).extra
    for text in (extra["prompt"], extra["bare_prompt"], json.dumps(extra["chat"])):
        assert all(
            word in text.replace("\\", "")
            for word in ('name="f" id="c1">{}', '<tool_result name="f" id="c1">', "found")
        )
    assert extra["input_messages"] == CALLED


@pytest.mark.parametrize("calls", [5, ["f"], [{"function": {"arguments": "{}"}}], [{"id": "c1"}]])
def test_calls_that_cannot_be_read_are_refused(folder: Path, calls: Any) -> None:
    message = {"role": "assistant", "content": "x", "tool_calls": calls}
    assert "tool_calls" in problems(load(folder, tests=[one(input=[message], assertions=[HI])]))[0]


def test_commands_get_the_paths_of_guidelines_too(folder: Path) -> None:
    (folder / ".agentv").mkdir()
    (folder / ".agentv" / "config.yaml").write_text('guideline_patterns: ["*.rules.md"]')
    for name in ("a.rules.md", "b.txt"):
        (folder / name).write_text("hi")
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "command": "echo {FILES}"}]}))
    checks = [{"type": "contains", "value": str(folder / name)} for name in ("a.rules.md", "b.txt")]
    assert statuses(folder, tests=[one(input_files=["a.rules.md", "b.txt"], assertions=checks)]) == {"a": "pass"}


def test_absolute_paths_stay_absolute(folder: Path) -> None:
    (folder / "note.md").write_text("hi")
    prompts = [
        next(iter(load(folder, tests=[one(input_files=[name], assertions=[HI])]).cases)).extra["bare_prompt"]
        for name in (str(folder / "note.md"), "/note.md")
    ]
    assert [f'"{folder / "note.md"}"' in prompts[0], '"note.md"' in prompts[1]] == [True, True]


def test_cases_are_chosen_by_what_they_say_of_themselves(folder: Path) -> None:
    described = {"description": "greets people", "conversation_id": "c1"}
    tests = [one(assertions=[HI]), one(id="b", assertions=[{"type": "strange"}], **described), one(id="c")]
    load(folder, tests=tests, assertions=[HI])
    for options in ({"description": "greets*"}, {"conversation": "c?"}):
        suite = load_suite(folder / "suite.eval.yaml", "agentv", options=options)
        assert [case.id for case in suite.cases] == ["b"]
        problem = suite.cases.problems[0]  # type: ignore[attr-defined]
        assert (problem.line, "b" in problem.message) == (1, True)
    with pytest.raises(InputError, match=r"there are: c1"):
        load_suite(folder / "suite.eval.yaml", "agentv", options={"conversation": "x"})


@pytest.mark.parametrize(
    "assertion",
    [{"type": "cost", "budget": 1, "negate": True}, {"type": "not-tool-trajectory", "minimums": {"search": 1}}],
)
def test_only_checks_of_a_text_can_be_negated(tmp_path: Path, assertion: dict[str, Any]) -> None:
    listed = problems(load(tmp_path, tests=[one(criteria="x", assertions=[assertion])]))
    assert "negate" in listed[0]
    assert "no check of a text" in listed[0]


def warnings(suite: Suite) -> list[str]:
    return [str(problem) for problem in suite.warnings]


def test_counts_of_calls_in_another_mode_are_left_unread_as_in_the_original(folder: Path) -> None:
    ordered = {"name": "t", "type": "tool-trajectory", "mode": "in_order", "minimums": {"a": 1}, "expected": []}
    suite = load(folder, tests=[one(assertions=[HI, ordered])])
    assert problems(suite) == [""]
    assert any("minimums" in warning and "in_order" in warning for warning in warnings(suite))
    assert statuses(folder, tests=[one(assertions=[HI, ordered])]) == {"a": "pass"}


@pytest.mark.parametrize(
    "mode", [{}, {"mode": "any_order"}, {"mode": "exact"}, {"mode": "subset", "minimums": {"a": 1}}]
)
def test_a_trajectory_that_names_no_calls_is_left_out(folder: Path, mode: dict[str, Any]) -> None:
    empty = {"name": "t", "type": "tool-trajectory", **mode}
    suite = load(folder, tests=[one(assertions=[HI, empty])])
    assert [spec["name"] for case in suite.cases for spec in case.evaluators or ()] == ["contains-hi"]
    assert any("left out: 't' names no calls" in warning for warning in warnings(suite))
    assert "'t' names no calls" in problems(load(folder, tests=[one(criteria="x", assertions=[empty])]))[0]


@pytest.mark.parametrize(
    ("file", "case", "required"),
    [(None, None, 0.8), (0.4, None, 0.4), (0.4, 0.6, 0.6), (None, 0, None)],
)
def test_what_is_required_must_reach_the_threshold(
    folder: Path, file: float | None, case: float | None, required: float | None
) -> None:
    execution = {} if case is None else {"execution": {"threshold": case}}
    tests = [
        one(assertions=[{**HI, "required": True}, {**HI, "name": "b", "required": True, "min_score": 0.9}], **execution)
    ]
    suite = load(folder, tests=tests, **({} if file is None else {"execution": {"threshold": file}}))
    specs = [spec for read in suite.cases for spec in read.evaluators or ()]
    assert [spec.get("required") for spec in specs] == [required, 0.9]
