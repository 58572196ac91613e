"""What AgentV's releases up to 4.42 call things."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.cli import main
from evalwright.convert.losses import unread_keys
from evalwright.errors import InputError
from evalwright.formats.agentv.report import AgentvResults
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.suite import Suite
from evalwright.model.trace import Trace
from evalwright.reports.inspection import cell_lines
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

HI = {"type": "contains", "value": "hi"}
ECHO = {"name": "default", "provider": "cli", "command": "echo {PROMPT}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [ECHO]}))
    return tmp_path


def load(folder: Path, **head: Any) -> Suite:
    (folder / "suite.eval.yaml").write_text(json.dumps({"name": "suite", **head}))
    return load_suite(folder / "suite.eval.yaml", "agentv")


def statuses(folder: Path, **head: Any) -> dict[str, str]:
    reader, _ = open_run(run_suite(load(folder, **head), RunOptions(out=folder / "runs")).run_dir)
    return {verdict.case_id: verdict.status for verdict in reader.verdicts(CaseVerdict)}


def one(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "input": "hi", **fields}


def problems(suite: Suite) -> list[str]:
    return [str(case.extra.get("load_error") or "") for case in suite.cases]


@pytest.mark.parametrize(
    "case", [one(assertions=[HI]), one(**{"assert": [HI]}), one(expected_output="hi"), one(criteria="greets")]
)
def test_a_case_may_say_in_any_way_what_is_good(folder: Path, case: dict[str, Any]) -> None:
    assert problems(load(folder, tests=[case])) == [""]


def test_a_case_that_says_nothing_of_it_is_an_error(folder: Path) -> None:
    assert "expected_outcome" in problems(load(folder, tests=[one()]))[0]
    assert "expected_outcome" in problems(load(folder, evalcases=[one(expected_output="hi")]))[0]
    assert problems(load(folder, tests=[one()], assertions=[HI])) == [""]


def test_cases_may_stand_in_other_files(folder: Path) -> None:
    (folder / "cases").mkdir()
    (folder / "cases" / "one.yaml").write_text(json.dumps([one(id="b", assertions=[HI])]))
    (folder / "cases" / "two.jsonl").write_text(json.dumps(one(id="c", assertions=[HI], metadata={"k": 1})))
    (folder / "single.yaml").write_text(json.dumps(one(id="d", assertions=[HI])))
    entries = [one(assertions=[HI]), "file://cases/*", "file://single.yaml"]
    assert statuses(folder, tests=entries) == dict.fromkeys("abcd", "pass")
    assert statuses(folder, tests="./cases/one.yaml") == {"b": "pass"}


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
    said = {"output_messages": [{"role": "assistant", "content": "done", "tool_calls": [call]}]}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "command": "cat said.json"}]}))
    (folder / "said.json").write_text(json.dumps(said))
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


def test_texts_among_assertions_count_like_other_assertions(folder: Path) -> None:
    weights = {}
    for key in ("assert", "assertions"):
        case = next(iter(load(folder, tests=[one(**{key: ["kind", HI, "brief"]})], governance={"tier": 1}).cases))
        weights[key] = [spec["weight"] for spec in case.evaluators or () if "weight" in spec]
        assert case.metadata == {"governance": {"tier": 1}}
    assert weights == {"assert": [1.0], "assertions": [2.0, 1.0]}


def test_mistakes_in_other_files_name_these(folder: Path) -> None:
    (folder / "cases.yaml").write_text("- id: b\n  input: hi\n  assertions:\n  - {type: strange}\n- {id: 5}\n")
    suite = load(folder, tests="cases.yaml")
    assert all(problems(suite))
    found = {(Path(problem.file).name, problem.line, problem.key) for problem in suite.cases.problems}  # type: ignore[attr-defined]
    assert ("cases.yaml", 4, "[0].assertions[0].type") in found
    assert ("cases.yaml", 5, "[1].id") in found
    for wrong in ("nowhere.yaml", "../outside.yaml"):
        (folder.parent / "outside.yaml").write_text("[]")
        with pytest.raises(InputError, match=r"nowhere|outside"):
            load(folder, tests=wrong)


def test_input_and_files_of_the_suite_come_first(folder: Path) -> None:
    (folder / "rules.md").write_text("be kind")
    (folder / "more.md").write_text("be brief")
    system = [{"role": "system", "content": "you greet"}]
    alone = {"id": "b", "execution": {"skip_defaults": True}}
    cases = [one(input_files=["more.md"], assertions=[HI]), one(**alone, assertions=[HI])]
    suite = load(folder, input=system, input_files=["rules.md"], tests=cases)
    prompts = {case.id: case.extra["prompt"] for case in suite.cases}
    assert [prompts["a"].index(text) for text in ("you greet", "be kind", "be brief", "hi")] == sorted(
        prompts["a"].index(text) for text in ("you greet", "be kind", "be brief", "hi")
    )
    assert prompts["b"] == "hi"


def test_variables_of_a_case_stand_in_its_texts(folder: Path) -> None:
    variables = {"name": "Ann", "shape": {"a": [1]}}
    texts = {"input": "Hi {{ name }}, {{ vars.shape.a }} {{ unknown }}", "criteria": "{{name}}"}
    case = one(vars=variables, assertions=[HI], **texts)
    read = next(iter(load(folder, tests=[case]).cases))
    assert (read.extra["prompt"], read.extra["expected_outcome"]) == ("Hi Ann, [1] {{ unknown }}", "Ann")
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
    ],
)
def test_newer_ways_to_compare_calls(folder: Path, check: dict[str, Any], passes: bool) -> None:
    said = {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "f", "input": {"a": 1, "b": {"c": 2}}}]}]}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "command": "cat said.json"}]}))
    (folder / "said.json").write_text(json.dumps(said))
    found = statuses(folder, tests=[one(assertions=[{"type": "tool-trajectory", **check}])])
    assert (found["a"] == "pass") is passes


def test_types_of_the_repository_are_programs(folder: Path) -> None:
    (folder / ".agentv" / "assertions").mkdir(parents=True)
    program = "import json, sys; print(json.dumps({'score': json.load(sys.stdin)['config']['wanted']}))"
    (folder / ".agentv" / "assertions" / "is-kind.py").write_text(program)
    cases = [one(id=str(score), assertions=[{"type": "is-kind", "wanted": score}]) for score in (0, 1)]
    assert statuses(folder, tests=cases) == {"0": "fail", "1": "pass"}
    assert "unknown type" in problems(load(folder, tests=[one(assertions=[{"type": "is-mean"}])]))[0]


def test_a_program_may_print_the_prompt_of_a_judge(folder: Path) -> None:
    program = "import json, sys; d = json.load(sys.stdin); print(d['config']['word'], d['output'], d['criteria'])"
    command = "echo '{\"score\": 1}'; echo {PROMPT} > asked.txt"
    judge = {"name": "judge", "provider": "cli", "command": command}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "grader_target": "judge"}, judge]}))
    prompt = {"command": [sys.executable, "-c", program], "config": {"word": "Judge"}}
    case = one(criteria="greets", assertions=[{"type": "llm-grader", "prompt": prompt}])
    assert statuses(folder, tests=[case]) == {"a": "pass"}
    assert (folder / "asked.txt").read_text().rstrip().endswith("Judge hi greets")


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


def test_hooks_are_turned_off_only_by_a_boolean(folder: Path) -> None:
    with pytest.raises(InputError, match=r"enabled: expected true or false, found 'no' \(yes, no, on"):
        load(folder, workspace={"hooks": {"enabled": "no"}}, tests=[one(assertions=[HI])])


def test_what_has_an_effect_is_not_said_to_have_none(folder: Path) -> None:
    (folder / "template").mkdir()
    head = {"workspace": {"template": "template"}, "execution": {"threshold": 0.5, "workers": 1}, "version": "1.0"}
    suite = load(folder, **head, tests=[one(assertions=[HI], execution={"threshold": 0.5})])
    assert [problem.key for problem in unread_keys(suite)] == ["version"]


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


def test_prompts_know_what_a_case_says_of_itself(folder: Path) -> None:
    judge = {"name": "judge", "provider": "cli", "command": "echo '{\"score\": 1}'; echo {PROMPT} > asked.txt"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "judge_target": "judge"}, judge]}))
    prompt = "{{ answer }} {{ description }} {{ conversation_id }}"
    case = one(
        description="of greetings",
        conversation_id="c7",
        criteria="x",
        assertions=[{"type": "llm-judge", "prompt": prompt}],
    )
    assert statuses(folder, tests=[case]) == {"a": "pass"}
    assert "hi of greetings c7" in (folder / "asked.txt").read_text()


def gated(folder: Path, reply: Any, **item: Any) -> tuple[str, str, str]:
    """The verdict of a case with one rubric, its reason, and what the judge was asked."""
    command = f"echo '{json.dumps({'checks': [{'id': 'r', **reply}]})}'; echo {{PROMPT}} > asked.txt"
    targets = [{**ECHO, "judge_target": "judge"}, {"name": "judge", "provider": "cli", "command": command}]
    (folder / "targets.yaml").write_text(json.dumps({"targets": targets}))
    suite = load(folder, evalcases=[one(expected_outcome="x", rubrics=[{"id": "r", "outcome": "kind", **item}])])
    reader, _ = open_run(run_suite(suite, RunOptions(out=folder / "runs")).run_dir)
    row = next(iter(reader.results(EvaluationResult)))
    return next(iter(reader.verdicts(CaseVerdict))).status, row.reason, (folder / "asked.txt").read_text()


def test_the_judge_knows_what_is_required_and_the_gate_is_named(folder: Path) -> None:
    status, reason, asked = gated(folder, {"satisfied": False}, required=True)
    assert (status, "required and not met: r" in reason, "weight 1, required" in asked) == ("fail", True, True)
    ranges = {"score_ranges": {0: "bad", 5: "good"}, "min_score": 0.9}
    status, reason, asked = gated(folder, {"score": 8.0}, **ranges)
    assert (status, "required and not met: r" in reason, "at least 9 of 10 required" in asked) == ("fail", True, True)
    assert gated(folder, {"score": 9.0}, **ranges)[0] == "pass"


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


def test_a_file_without_targets_says_so(folder: Path) -> None:
    (folder / "targets.yaml").unlink()
    assert any(
        "there is no targets.yaml" in problem.message for problem in load(folder, tests=[one(assertions=[HI])]).warnings
    )


def test_a_prompt_without_names_is_the_criterion_of_its_judge(folder: Path) -> None:
    judge = {"name": "judge", "provider": "cli", "command": "echo '{\"score\": 1}'; echo {PROMPT} > asked.txt"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**ECHO, "judge_target": "judge"}, judge]}))
    check = {"type": "llm-grader", "prompt": "Is the tone kind?"}
    assert statuses(folder, tests=[one(input="hello there", criteria="greets", assertions=[check])]) == {"a": "pass"}
    asked = (folder / "asked.txt").read_text()
    assert ["Is the tone kind?" in asked, "hello there" in asked, "greets" in asked] == [True, True, False]
    (folder / "kind.md").write_text('Reply with {"score": 1.0 | 0.0}: is it kind?')
    of_file = {**check, "prompt": "./kind.md"}
    assert statuses(folder, tests=[one(input="hello there", criteria="greets", assertions=[of_file])]) == {"a": "pass"}
    asked = (folder / "asked.txt").read_text()
    assert ["is it kind?" in asked, "hello there" in asked, "kind.md" in asked] == [True, True, False]
    for told in ({**of_file, "prompt": "file://kind.md"}, {**of_file, "name": "old", "type": "llm_judge"}):
        assert "uses neither" in problems(load(folder, tests=[one(criteria="greets", assertions=[told])]))[0]


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


def test_the_evaluator_that_is_required_is_named_where_it_decides(folder: Path) -> None:
    judge = {"type": "code-grader", "command": [sys.executable, "-c", "print('{\"score\": 0.85}')"], "name": "strict"}
    suite = load(folder, tests=[one(assertions=[HI, {**judge, "required": True, "min_score": 0.9}])])
    outcome = run_suite(suite, RunOptions(out=folder / "runs"))
    reader, _ = open_run(outcome.run_dir)
    verdict = next(iter(reader.verdicts(CaseVerdict)))
    assert (verdict.status, verdict.reasons[0].startswith("strict: required, at least 0.9")) == ("fail", True)
    assert verdict.reasons[0].count("required") == 1
    trace, rows = next(iter(reader.traces(Trace))), list(reader.results(EvaluationResult))
    shown = "\n".join(cell_lines(trace, rows, verdict.status, Paint(), 200))
    assert "strict 0.85  required, at least 0.9; " in shown
    assert shown.count("required") == 1, "what reached its score, or needs none, says nothing of it"
    line = json.loads(AgentvResults().render(reader, outcome.summary))
    strict = next(row for row in line["evaluator_results"] if row["name"] == "strict")
    assert strict["reasoning"].startswith("required, at least 0.9; ")
    assert "strict: required, at least 0.9; " in line["reasoning"]


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


def test_what_is_expected_is_text_for_judges_without_places_on_this_machine(folder: Path) -> None:
    (folder / "note.md").write_text("from a file\n")
    blocks = [{"type": "text", "value": "first"}, {"type": "file", "value": "note.md"}]
    for content, seen in (
        (blocks[:1] * 2, "first\nfirst"),
        (blocks, 'first\n<file path="note.md">\nfrom a file\n</file>'),
    ):
        case = one(criteria="x", expected_output=[{"role": "assistant", "content": content}])
        (read,) = load(folder, tests=[case]).cases
        assert read.extra["reference_answer"] == seen
    (folder / "targets.yaml").write_text(
        json.dumps({"targets": [ECHO, {**ECHO, "name": "judge", "command": "echo {PROMPT} > asked"}]})
    )
    prompt = "{{expected_messages}} {{input_messages}} {{candidate_answer}}"
    judge = {"name": "j", "type": "llm_judge", "prompt": prompt, "target": "judge"}
    statuses(folder, tests=[{**case, "assert": [judge]}])
    assert "from a file" in (asked := (folder / "asked").read_text())
    assert str(folder) not in asked


def test_judges_are_shown_what_the_system_called_and_changed(folder: Path) -> None:
    (folder / "template").mkdir()
    said = {"text": "done", "output_messages": [{"role": "assistant", "content": "done", "tool_calls": [
        {"tool": "Read", "input": {"file_path": "notes.txt"}}]}]}  # fmt: skip
    command = f"echo made > made.txt; echo '{json.dumps(said)}' > {{OUTPUT_FILE}}"
    system = {"name": "default", "provider": "cli", "command": command, "workspace_template": "template"}
    judge = {"name": "judge", "provider": "cli", "command": "echo '{\"score\": 1}'; echo {PROMPT} >> asked.txt"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{**system, "judge_target": "judge"}, judge]}))
    prompt = "{{ output }} called {{ tool_calls }}."
    checks = [{"type": "agent-judge", "max_steps": 3}, {"type": "llm-grader", "prompt": prompt}]
    suite = load(folder, tests=[one(criteria="x", assertions=checks)])
    assert statuses(folder, tests=[one(criteria="x", assertions=checks)]) == {"a": "pass"}
    assert [str(found) for found in suite.warnings if "opens no files" in found.message] != []
    asked = (folder / "asked.txt").read_text()
    assert 'Tool calls:\n- Read: {"file_path": "notes.txt"}' in asked
    assert "Changes of files:" in asked
    assert "+made" in asked
    assert 'done called - Read: {"file_path": "notes.txt"}.' in asked
