"""`validate`, `init`, `demo` and `import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import warm
from acceptance.projects import EVAL, Project, project


def test_validate_counts_what_it_found(tmp_path: Path) -> None:
    ended = project(tmp_path, {"a": "thanks", "b": "no"}).evalwright("validate", "eval.yaml")
    assert (ended.code, ended.out) == (0, "ok: 2 cases, 1 variant, 1 evaluator\n")


def test_validate_runs_nothing(tmp_path: Path) -> None:
    project(tmp_path, {"a": "thanks"}).evalwright("validate", "eval.yaml")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("command", "code", "out"),
    [
        (["validate"], 0, "ok: 1 case"),
        (["plan", "--detect", "90pp"], 1, "To show 90 pp"),
        (["dataset", "lint"], 1, "cases.jsonl"),
    ],
)
def test_commands_that_read_a_suite_take_values_for_its_variables(
    tmp_path: Path, command: list[str], code: int, out: str
) -> None:
    made = project(tmp_path, {"a": "thanks"})
    suite = tmp_path / "eval.yaml"
    suite.write_text(suite.read_text().replace("agent:run", "${MODULE}:run"))
    without = made.evalwright(*command, "eval.yaml")
    assert (without.code, "pass --var MODULE=VALUE" in without.err) == (2, True)
    ended = made.evalwright(*command, "eval.yaml", "--var", "MODULE=agent")
    assert (ended.code, ended.err) == (code, "")
    assert ended.out.startswith(out)


def test_validate_names_every_mistake(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": 3}\n{"input": {}}\n')
    ended = made.evalwright("validate", "eval.yaml")
    assert ended.code == 2
    assert ended.err.endswith("2 problems in cases.jsonl\n")


def test_slices_that_a_gate_names_are_looked_for_with_all_other_mistakes(tmp_path: Path) -> None:
    gate = "gate: {not_worse_than: baseline, slices: [tag, metadata.lnag]}\n"
    made = project(tmp_path, {"a": "thanks"}, EVAL + gate)
    alone = made.evalwright("validate", "eval.yaml")
    assert (alone.code, "no case has 'metadata.lnag' (there are: tag)" in alone.err) == (2, True)
    (tmp_path / "eval.yaml").write_text(EVAL + gate + "metrics: {prices: x}\n")
    ended = made.evalwright("validate", "eval.yaml")
    assert "metadata.lnag" in ended.err
    assert "metrics.prices" in ended.err
    assert ended.err.endswith("2 problems in eval.yaml\n")


def test_validate_gives_mistakes_to_programs(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "cases.jsonl").write_text('{"input": {}}\n')
    document = json.loads(made.evalwright("validate", "eval.yaml", "--json").out)
    assert document["ok"] is False
    assert (document["problems"][0]["line"], document["problems"][0]["key"]) == (1, "id")


def test_validate_warns_of_keys_that_nothing_reads(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}, "expected": {"must_call_tool": []}, "tag": []}\n')
    ended = made.evalwright("validate", "eval.yaml")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        'warning: cases.jsonl:1  tag  nothing reads this key; did you mean "tags"?',
        'warning: cases.jsonl:1  expected.must_call_tool  nothing reads this key; did you mean "must_call_tools"?',
    ]


def test_validate_warns_of_keys_that_come_twice_in_a_line(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "cases.jsonl").write_text(
        '{"id": "a", "input": {}}\n{"id": "b", "input": {"q": 1, "q": 2}, "id": "c"}\n'
        '{"id": "d", "input": {"a\\u003a": 1, "a:": 2}}\n'
    )
    ended = made.evalwright("validate", "eval.yaml")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        "warning: cases.jsonl:2  q  the key 'q' occurs more than once: the last one counts",
        "warning: cases.jsonl:2  id  the key 'id' occurs more than once: the last one counts",
        "warning: cases.jsonl:3  a:  the key 'a:' occurs more than once: the last one counts",
    ]


def test_a_system_that_is_not_on_this_machine_can_be_checked_but_not_run(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"}, EVAL.replace("agent:run", "support.agent:run"))
    checked, refused = made.evalwright("validate", "eval.yaml"), made.evalwright("run", "eval.yaml")
    assert (checked.code, checked.out, refused.code) == (0, "ok: 1 case, 1 variant, 1 evaluator\n", 2)
    for ended in (checked, refused):
        assert "eval.yaml:5  systems[0].target" in ended.err
        assert "No module named 'support'" in ended.err
    assert not (tmp_path / "runs").exists()


def test_a_system_whose_own_imports_fail_is_a_mistake(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "agent.py").write_text("import not_there_at_all\n")
    assert made.evalwright("validate", "eval.yaml").code == 2


def test_a_template_that_no_case_can_fill_is_a_mistake(tmp_path: Path) -> None:
    system = '{name: v, adapter: cli, command: [cat], stdin_template: "{{ input.wrod }}"}'
    text = EVAL.replace('{name: v, adapter: python_function, target: "agent:run"}', system)
    ended = project(tmp_path, {"a": "thanks"}, text).evalwright("validate", "eval.yaml")
    assert (ended.code, "eval.yaml  v.stdin_template  no case has input.wrod" in ended.err) == (2, True)


def test_other_mistakes_are_told_beside_a_missing_system(tmp_path: Path) -> None:
    text = EVAL.replace("agent:run", "support.agent:run").replace("contains_text", "contains_txt")
    ended = project(tmp_path, {"a": "thanks"}, text).evalwright("validate", "eval.yaml")
    assert (ended.code, "2 problems in eval.yaml" in ended.err) == (2, True)


def test_entries_of_a_response_mapping_that_nothing_reads_are_refused_before_a_run_too(tmp_path: Path) -> None:
    system = '{name: v, adapter: http, endpoint: "http://127.0.0.1:1/", response_mapping: {final_anser: $.a}}'
    made = project(
        tmp_path, {"a": "thanks"}, EVAL.replace('{name: v, adapter: python_function, target: "agent:run"}', system)
    )
    for command in ("validate", "run"):
        ended = made.evalwright(command, "eval.yaml")
        assert ended.code == 2
        assert "eval.yaml:5  systems[0].response_mapping.final_anser  " in ended.err
        assert 'did you mean "final_answer"?' in ended.err


def test_a_warning_has_its_line_in_yaml(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"}, EVAL.replace("jsonl, path: cases.jsonl", "yaml, path: cases.yaml"))
    (tmp_path / "cases.yaml").write_text("cases:\n  - id: a\n    input: {do: thanks}\n    notes: hm\n")
    ended = made.evalwright("validate", "eval.yaml")
    assert ended.err == "warning: cases.yaml:4  cases[0].notes  nothing reads this key\n"


def test_init_writes_a_suite_that_runs(tmp_path: Path) -> None:
    made = Project(tmp_path)
    ended = made.evalwright("init", "new project")
    assert ended.out.splitlines()[-1] == "Next: evalwright run 'new project/eval.yaml'"
    assert made.evalwright("run", "new project/eval.yaml").code == 0


def test_init_writes_cases_in_which_lint_finds_nothing(tmp_path: Path) -> None:
    made = Project(tmp_path)
    made.evalwright("init", ".")
    ended = made.evalwright("dataset", "lint", "eval.yaml")
    assert (ended.code, ended.out) == (0, "nothing found\n")


def test_init_leaves_nothing_on_a_full_disk(tmp_path: Path) -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (800, 800))\n"
        "from evalwright.cli import main\n"
        "main(['init', 'mine'])"
    )
    ended = warm.run(["-c", program], cwd=tmp_path)
    assert (ended.returncode, "File too large" in ended.stderr) == (5, True)
    assert [*tmp_path.iterdir()] == []


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("mine")
    ended = Project(tmp_path).evalwright("init", ".")
    assert ended.code == 2
    assert "agent.py  already exists" in ended.err
    assert (tmp_path / "agent.py").read_text() == "mine"
    assert not (tmp_path / "eval.yaml").exists()


def test_demo_writes_and_runs_the_example(tmp_path: Path) -> None:
    ended = Project(tmp_path).evalwright("demo", "--out", "example")
    assert ended.code == 0
    assert (tmp_path / "example" / "eval.yaml").is_file()
    assert (tmp_path / ended.last_line / "traces.jsonl").is_file()
    assert "errors: careful 0, hasty 1 (target 1); all failed" in ended.out


def test_demo_is_not_disturbed_by_files_of_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("raise SystemExit('not this one')")
    (tmp_path / "cases.yaml").write_text("not: this")
    assert Project(tmp_path).evalwright("demo").code == 0


def test_import_writes_a_suite_that_runs(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"task": {"name": "greet"}, "messages": messages}) + "\n")
    made = Project(tmp_path)
    ended = made.evalwright(
        *("import", "log.jsonl", "--format", "openai-messages", "--map", "id=task.name", "--out", "imported")
    )
    assert ended.code == 0
    assert "1 case, 1 recording" in ended.out
    assert made.evalwright(*ended.out.splitlines()[-1].removeprefix("Next: evalwright ").split(), "--quiet").code in (
        0,
        1,
    )


def test_import_takes_a_mapping_from_a_file(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"log": {"name": "greet", "talk": messages}}) + "\n")
    (tmp_path / "map.yaml").write_text("messages: log.talk\nid: log.name\n")
    words = ("import", "log.jsonl", "--format", "openai-messages", "--mapping", "map.yaml", "--out", "imported")
    assert Project(tmp_path).evalwright(*words).code == 0
    assert json.loads((tmp_path / "imported" / "cases.jsonl").read_text())["id"] == "greet"


def test_import_names_the_mistakes_of_a_mapping_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("{}\n")
    (tmp_path / "map.yaml").write_text("mesages: log.talk\nid: 3\ntrial: a b\n")
    ended = Project(tmp_path).evalwright("import", "log.jsonl", "--mapping", "map.yaml")
    assert ended.code == 2
    assert [line.split("  ")[0] for line in ended.err.splitlines()[:3]] == ["map.yaml:1", "map.yaml:2", "map.yaml:3"]
    assert ended.err.endswith("3 problems in map.yaml; nothing was written\n")


def test_import_makes_a_folder_named_after_the_file(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"id": "x", "messages": messages}) + "\n")
    ended = Project(tmp_path).evalwright("import", "log.jsonl", "--format", "openai-messages")
    assert ended.out.endswith("Next: evalwright run log-suite/eval.yaml\n")


def test_import_without_recordings_says_what_is_missing_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "goldens.json").write_text(json.dumps([{"input": "hi", "expected_output": "hello"}]))
    suite = "goldens-suite/eval.yaml"
    last = Project(tmp_path).evalwright("import", "goldens.json").out.splitlines()[-1]
    assert last == f"Next: name your system in {suite}, then evalwright run {suite}"


def test_several_files_are_not_converted_to_a_folder_that_is_called_like_a_file(tmp_path: Path) -> None:
    Project(tmp_path).evalwright("init", ".")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: hi}, assert: [{type: contains, value: hi}]}]\n"
    )
    ended = Project(tmp_path).evalwright("convert", "promptfooconfig.yaml", "--to", "native", "--out", "new.yaml")
    assert (ended.code, (tmp_path / "new.yaml").exists()) == (2, False)
    assert "new.yaml  would be a folder, for cases.jsonl, eval.yaml; name one without .yaml" in ended.err
    assert Project(tmp_path).evalwright("convert", "promptfooconfig.yaml", "--to", "native", "--out", "new").code == 0


def test_import_names_what_it_cannot_use(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"id": "x", "messages": "none"}\n')
    ended = Project(tmp_path).evalwright("import", "log.jsonl", "--format", "openai-messages", "--out", "imported")
    assert ended.code == 2
    assert "log.jsonl:1  messages" in ended.err
    assert ended.err.endswith("nothing was written\n")


def test_validate_refuses_a_suite_without_cases_unless_that_is_allowed(tmp_path: Path) -> None:
    made = project(tmp_path, {})
    ended = made.evalwright("validate", "eval.yaml")
    assert (ended.code, "cases.jsonl" in ended.err) == (2, True)
    assert made.evalwright("validate", "eval.yaml", "--allow-empty").code == 0


def test_what_a_program_reads_of_an_empty_suite_has_a_warning(tmp_path: Path) -> None:
    document = json.loads(project(tmp_path, {}).evalwright("validate", "eval.yaml", "--json").out)
    assert (document["ok"], document["cases"]) == (True, 0)
    assert "cases.jsonl" in document["warnings"][0]["file"]


EVIL = "import pathlib\npathlib.Path(__file__).with_name('CANARY').write_text('x')\n"


def test_nothing_of_a_suite_is_executed_until_it_is_run(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    for name in ("agent", "httpx", "yaml"):  # two have the name of a library
        (tmp_path / f"{name}.py").write_text(EVIL + "def run(case, variant): return 'thanks'\n")
    for words in (["validate"], ["run", "--dry-run"], ["convert", "--to", "native", "--out", "new.yaml"]):
        made.evalwright(words[0], "eval.yaml", *words[1:])
        assert not (tmp_path / "CANARY").exists(), words
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "eval.yaml").write_text((tmp_path / "eval.yaml").read_text())
    assert made.evalwright("validate", ".").code == 0
    assert not (tmp_path / "CANARY").exists()


STRANGE = """
name: s
dataset: data.jsonl
colour: red
target: {kind: http, url: "http://127.0.0.1:1"}
graders: {g: {kind: tool, function: contains}}
gate: {kind: simple, metric_key: g, op: gte, value: 0.5}
"""


@pytest.mark.parametrize("words", [["validate"], ["run", "--dry-run"], ["convert", "--to", "native", "--out", "new"]])
def test_an_option_of_a_format_counts_in_every_command_that_reads_its_suites(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "suite.yaml").write_text(STRANGE)
    (tmp_path / "data.jsonl").write_text('{"input": "hi", "ground_truth": "hi"}\n')
    ended = Project(tmp_path).evalwright(*words, "suite.yaml", "--strict")
    assert (ended.code, "colour  nothing reads this key" in ended.err) == (2, True)


def test_import_executes_the_code_and_says_what(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "agent.py").write_text(EVIL + "globals()['run'] = 3\n")
    assert made.evalwright("validate", "eval.yaml").code == 0
    ended = made.evalwright("validate", "eval.yaml", "--import")
    assert (ended.code, "agent:run" in ended.err, "imported" in ended.err) == (2, True, True)
    assert str(tmp_path / "agent.py") in ended.err
    assert (tmp_path / "CANARY").exists()


def test_validate_names_a_function_that_is_missing(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "agent.py").write_text("def rum(case): ...\n")
    ended = made.evalwright("validate", "eval.yaml")
    assert (ended.code, "agent:run" in ended.err) == (2, True)


@pytest.mark.parametrize("options", [[], ["--import"]])
def test_validate_names_the_function_of_a_judge_that_is_missing(tmp_path: Path, options: list[str]) -> None:
    made = project(tmp_path, {"a": "thanks"})
    judge = "{name: kind, type: llm_judge, config: {nl_assertions: [is kind], model: 'python:agent:%s'}}"
    suite = EVAL.replace("evaluators:\n", f"evaluators:\n  - {judge}\n")
    (tmp_path / "eval.yaml").write_text(suite % "run")
    assert made.evalwright("validate", *options, "eval.yaml").code == 0
    (tmp_path / "eval.yaml").write_text(suite % "gone")
    ended = made.evalwright("validate", *options, "eval.yaml")
    assert (ended.code, "eval.yaml  kind  'agent:gone' cannot be imported" in ended.err) == (2, True)


def test_lint_of_a_dataset_names_what_is_doubtful_and_ends_with_1(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks", "b": "no"})
    ended = made.evalwright("dataset", "lint", "eval.yaml", "--json")
    findings = json.loads(ended.out)["findings"]
    assert ended.code == 1
    assert {finding["kind"] for finding in findings} == {"no expectation"}
    (tmp_path / "d.csv").write_text("id,q,expected.answer_should_include\na,x,y\n")
    ended = made.evalwright("dataset", "lint", "d.csv")
    assert (ended.code, ended.out) == (0, "nothing found\n")
    rows = "".join(f"c{n},y\n" for n in range(23))
    (tmp_path / "d.csv").write_text(f"id,q\na,x\nb,y\n{rows}")
    ended = made.evalwright("dataset", "lint", "d.csv")
    assert (ended.code, ended.out.splitlines()) == (
        1,
        [
            *(f"d.csv:{4 + n}  duplicate: 'c{n}' asks the same as 'b' (line 3)" for n in range(20)),
            "d.csv  no expectation: nothing is expected in any of 25 cases, and none has evaluators of its own",
            "duplicate: 3 more, which --json lists",
            "24 findings",
        ],
    )
    assert len(json.loads(made.evalwright("dataset", "lint", "d.csv", "--json").out)["findings"]) == 24
    ended = made.evalwright("dataset", "lint")
    assert (ended.code, "Missing argument" in ended.err) == (2, True)
