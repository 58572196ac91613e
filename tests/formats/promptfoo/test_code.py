"""Code of the user that judges, transforms and answers: JavaScript, TypeScript and Python, inline and in files."""

from __future__ import annotations

import json
import sys
from shlex import quote

import pytest

from evalwright.formats.loading import load_suite
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.javascript_code import javascript_body, simple_path
from formats.promptfoo.runs import ECHO, asserted, run, write


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("output.length > 3;", "return output.length > 3"),
        ("const a = 'x;y'; a === output", "const a = 'x;y'; return a === output"),
        ("const n = 1;\nreturn n > 0;\n", "const n = 1;\nreturn n > 0;"),
    ],
)
def test_one_line_is_an_expression_and_several_are_a_body(code, body):
    assert javascript_body(code) == body


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("output.a.b[0]", (True, 7)),
        ("JSON.parse(text).a", (False, None)),
        ("output?.['a'].c", (True, None)),
        ("output.length", (False, None)),
        ("output.a + 1", (False, None)),
    ],
)
def test_a_path_to_a_value_needs_no_node(code, found):
    assert simple_path(code, {"output": {"a": {"b": [7]}}}) == found


def test_parsed_outputs_have_paths_too():
    assert simple_path("JSON.parse(output).a", {"output": '{"a": 5.0}'}) == (True, 5)
    assert simple_path("JSON.parse(output)", {"output": 1000}) == (True, 1000)


@pytest.mark.parametrize("output", ["NaN", '{"a": Infinity}', {"a": 1}, ""])
def test_parsing_what_is_no_json_throws(output):
    with pytest.raises(ScriptError, match="SyntaxError"):
        simple_path("JSON.parse(output)", {"output": output})


def test_inline_javascript(tmp_path):
    values = (
        "output.includes('hi')", "0.4", "({pass: true, score: 0.2, reason: 'r', namedScores: {tone: 0.5}})",
        "context.vars.q === 'asked' && context.test.metadata !== undefined", "JSON.parse(output)", "'true'", "{{q}}(",
        "typeof require === 'undefined' && process.mainModule.require('path').basename('/a/b') === 'b'",
        "const n = [1, 2];\nreturn n.length === 2;", "({pass: true})", "({pass: true, score: 1})",
        "({pass: true, score: 1, reason: 'r', comment: 1})", "({pass: true, score: 1, reason: '', assertion: null})",
    )  # fmt: skip
    result = asserted(tmp_path, "hi there", *({"type": "javascript", "value": value} for value in values))
    expected = "pass pass pass pass fail fail fail pass pass fail fail fail pass"
    assert [row.status for row in result.rows] == expected.split()
    assert result.rows[4].detail["threw"]
    assert result.verdict.named_scores == {"tone": 0.5}


def test_javascript_that_hangs_is_an_error_of_its_cell_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.formats.promptfoo.scripts.LIMIT", 0.5)
    tests = [
        {"vars": {"q": q}, "assert": [{"type": "javascript", "value": "output === 'a' || (() => { for (;;); })()"}]}
        for q in ("b", "a")
    ]
    result = run(tmp_path, {**ECHO, "evaluateOptions": {"maxConcurrency": 1}, "tests": tests})
    assert result.statuses == ["error", "pass"]
    assert result.rows[0].error.type == "timeout"


def test_files_of_javascript_judge_transform_and_answer(tmp_path):
    config = {
        "prompts": ["file://prompt.js"],
        "providers": [{"id": "file://prov.mjs", "config": {"end": "!"}}],
        "tests": [
            {
                "vars": {"q": "hi"},
                "options": {"transform": "file://tr.js:shout"},
                "assert": [
                    {"type": "javascript", "value": "file://check.js", "config": {"want": "ASK HI!"}},
                    {"type": "equals", "value": "ask", "transform": "output.split(' ')[0].toLowerCase()"},
                ],
            }
        ],
    }
    files = {
        "prompt.js": "module.exports = async ({ vars }) => `ask ${vars.q}`;",
        "prov.mjs": (
            "export default class { constructor(o) { this.config = o.config; } id() { return 'x'; }\n"
            "  async callApi(prompt) { return { output: prompt + this.config.end, cost: 0.25 }; } }\n"
        ),
        "tr.js": "module.exports = { shout: (output) => output.toUpperCase() };",
        "check.js": "const { same } = require('./same');\nmodule.exports = (o, c) => same(o, c.config.want);",
        "same.js": "exports.same = (a, b) => a === b;",
    }
    result = run(tmp_path, config, **files)
    assert result.judged() == ["javascript#0 pass", "equals#1 pass"], result.rows
    [trace] = result.traces.values()
    assert (trace.output.final_answer, trace.metrics.cost_usd) == ("ASK HI!", 0.25)


def test_python_inline_and_in_files(tmp_path):
    code = (
        "def get_assert(output, context):\n    print('noise')\n    return {'pass_': True, 'score': 0.6, 'reason': ''}\n"
    )
    values = (
        "len(output) > 3", "json.loads(output)", "0.3", "'True'", "import re\nreturn bool(re.match('h', output))",
        "file://c.py", "file://c.py:boom", "(", "{'pass': True}", "len(output) > 3\n", "' true '", "'0.5 of 1'",
        "json.dumps(dict(pass_=True, score=1, reason='r'))",
    )  # fmt: skip
    result = asserted(
        tmp_path, "hi there", *({"type": "python", "value": value} for value in values),
        **{"c.py": code + "def boom(output, context):\n    raise ValueError('no')\n"},
    )  # fmt: skip
    expected = "pass fail pass pass pass pass fail fail fail fail fail pass pass"
    assert [row.status for row in result.rows] == expected.split()
    assert any("returns nothing" in str(warning) for warning in result.outcome.summary.warnings)


@pytest.mark.parametrize("kind", ["javascript", "python"])
def test_a_single_line_that_begins_with_return_is_doubted(tmp_path, kind):
    lines = ["return 5", "returned = 5", "return 5\nreturn 6"]
    asserts = [{"type": kind, "value": line} for line in lines]
    path = write(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}, "assert": asserts}]})
    warnings = load_suite(path).warnings
    assert [warning.key for warning in warnings if "leave that out" in warning.message] == ["tests[0].assert[0].value"]


def test_code_in_files_that_cannot_be_used_is_an_error_in_javascript_and_a_failure_in_python(tmp_path):
    """As in promptfoo."""
    values = ["file://gone.js", "file://c.js:gone", "file://broken.js"]
    tests = [{"vars": {"q": "x"}, "assert": [{"type": "javascript", "value": value}]} for value in values]
    tests += [{"vars": {"q": "x"}, "assert": [{"type": "python", "value": "file://c.py:gone"}]}]
    files = {"c.js": "module.exports = () => true;", "broken.js": "module.exports = (", "c.py": "def get_assert(): ..."}
    result = run(tmp_path, {**ECHO, "tests": tests}, **files)
    assert result.statuses == ["error", "error", "error", "fail"]
    assert {row.error.type for row in result.rows if row.error} == {"unusable"}
    assert any("'gone.js': this assertion is an error" in str(warning) for warning in result.outcome.summary.warnings)


@pytest.mark.parametrize("transform", ["JSON.parse(output)", "undefined"])
def test_a_transform_that_gives_nothing_is_an_error(tmp_path, transform):
    result = run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "bad"}, "options": {"transform": transform}}]})
    assert result.statuses == ["error"]
    assert result.verdict.error.type == "transform_error"


@pytest.mark.parametrize("kind", ["is-json", "equals"])
@pytest.mark.parametrize("made", ["False", "{'pass': True, 'score': 1, 'reason': 'r'}"])
def test_a_function_in_place_of_a_value_gives_no_verdict(tmp_path, kind, made):
    code = f"def f(output, context):\n    return {made}\n"
    result = asserted(tmp_path, '{"pass": true}', {"type": kind, "value": "file://v.py:f"}, v__py=code)
    assert [(row.status, row.error.type) for row in result.rows] == [("error", "bad_value")]


def test_a_prompt_function_knows_the_settings_of_its_prompt(tmp_path):
    code = "def ask(context):\n    return f\"say {context['config'].get('word')}\"\n"
    prompts = ["file://p.py:ask", {"id": "file://p.py:ask", "label": "own", "config": {"word": "hi"}}]
    result = run(tmp_path, {**ECHO, "prompts": prompts, "tests": [{"vars": {"q": "a"}}]}, p__py=code)
    assert result.outputs == ["say None", "say hi"]


def test_tests_and_variables_are_made_by_functions(tmp_path):
    config = {**ECHO, "tests": ["file://gen.py:make", {"vars": {"q": "file://var.py"}}]}
    files = {
        "gen.py": "def make(config=None):\n    return [{'vars': {'q': f'py{i}'}} for i in range(2)]\n",
        "var.py": "def get_var(name, prompt, others):\n    return {'output': name + '!  \\n'}\n",
    }
    assert run(tmp_path, config, **files).outputs == ["py0", "py1", "q!"]


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ({"tokenUsage": {"prompt": 2, "completion": 3}}, {"prompt": 2, "completion": 3, "total": 5}),
        ({"tokenUsage": {"total": 9, "completionDetails": {"reasoning": 1}}}, {"total": 9}),
        ({}, None),
    ],
)
def test_code_sees_the_tokens_of_a_response(tmp_path, said, seen):
    provider = f"def call_api(prompt, options, context):\n    return {{'output': 'x', 'cached': True, **{said}}}\n"
    values = [f"context['providerResponse'].get('tokenUsage') == {seen}", "context['providerResponse']['cached']"]
    test = {"vars": {"q": "a"}, "assert": [{"type": "python", "value": value} for value in values]}
    config = {**ECHO, "providers": ["file://p.py"], "tests": [test]}
    found = run(tmp_path, config, options={"output": tmp_path / "out.json"}, p__py=provider)
    assert found.judged() == ["python#0 pass", "python#1 pass"]
    [result] = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    assert result["response"].get("tokenUsage") == seen


def test_code_sees_the_output_of_a_response_after_the_transforms_of_the_test(tmp_path):
    seen = {"type": "python", "value": "context['providerResponse']['output'] == 'aPT'", "transform": "output"}
    test = {"vars": {"q": "a"}, "options": {"transform": "output.concat('T')"}, "assert": [seen]}
    echo = {"id": "echo", "transform": "output.concat('P')"}
    own = {**seen, "transform": "output.concat('A')"}
    found = run(tmp_path, {**ECHO, "providers": [echo], "tests": [test, {**test, "assert": [own]}]})
    assert found.judged() == ["python#0 pass", "python#0 pass"]


def test_code_sees_what_else_a_provider_returned(tmp_path):
    provider = "def call_api(prompt, options, context):\n    return {'output': 'x', 'steps': ['a'], 'none': None}\n"
    value = "context['providerResponse']['steps'] == ['a']"
    config = {**ECHO, "providers": ["file://p.py"], "tests": [{"assert": [{"type": "python", "value": value}]}]}
    assert run(tmp_path, config, p__py=provider).judged() == ["python#0 pass"]


def test_code_sees_no_keys_that_its_test_does_not_have(tmp_path):
    code = "context['test'].get('threshold', 0.5) == 0.5 and 'description' not in context['test']"
    assert asserted(tmp_path, "x", {"type": "python", "value": code}).judged() == ["python#0 pass"]


def test_code_sees_the_assertions_of_its_test(tmp_path):
    code = "context['test']['assert'][1]['value'] == 'x'"
    result = asserted(tmp_path, "x", {"type": "python", "value": code}, {"type": "contains", "value": "x"})
    assert result.judged() == ["python#0 pass", "contains#1 pass"]


def test_judges_say_yes_only_as_promptfoo_understands_it(tmp_path):
    """The grader is `echo`, so that the reply is what the assertion has as its value."""
    own = {"provider": {"id": "echo", "config": {"replyRetries": 0}}}
    rubric, criteria = {**own, "rubricPrompt": "{{rubric}}"}, {**own, "rubricPrompt": "{{criteria}}"}
    replies = {
        '{"pass": "YES", "score": 0.5}': "pass", '{"pass": 1}': "error", '{"pass": "TRUE "}': "error",
        '{"pass": true, "score": null}': "pass", '{"pass": true, "score": "high"}': "pass",
        '{"pass": "no", "score": "low"}': "fail", '{"score": "high"}': "error",
    }  # fmt: skip
    letters = {"so Y": "pass", "so Y.": "error", "so N": "fail"}
    asserts = [{"type": "llm-rubric", "value": reply, **rubric} for reply in replies]
    for sign in ("", "not-"):
        asserts += [{"type": f"{sign}model-graded-closedqa", "value": letter, **criteria} for letter in letters]
    result = asserted(tmp_path, "x", *asserts)
    assert [row.status for row in result.rows] == [*replies.values(), *letters.values(), *letters.values()]
    assert [row.score for row in result.rows[3:6]] == [0, 1, 0]
    assert any("promptfoo does not turn this type round" in str(warning) for warning in result.outcome.summary.warnings)


def test_judges_that_are_programs_know_the_variables_of_their_question(tmp_path):
    (tmp_path / "judge.py").write_text(
        "import json\n"
        "def call_api(prompt, options, context):\n"
        "    told = {k: context['vars'].get(k) for k in ('q', 'output', 'rubric', 'ideal', 'completion', 'criteria')}\n"
        "    letter = 'Y' if told['criteria'] else ''\n"
        "    return {'output': json.dumps({'pass': True, 'score': 1, 'category': 'C', 'reason': told}) + letter}\n"
    )
    kinds = {"llm-rubric": {"output": "x", "rubric": "v"}, "factuality": {"ideal": "v", "completion": "x"}}
    asserts = [{"type": kind, "value": "v", "provider": "file://judge.py"} for kind in kinds]
    closed = {"type": "model-graded-closedqa", "value": "v", "provider": "file://judge.py"}
    result = asserted(tmp_path, "x", *asserts, closed)
    assert [row.status for row in result.rows] == ["pass"] * 3
    for row, known in zip(result.rows, kinds.values(), strict=False):
        reply = json.loads(row.detail["judge_calls"][0]["reply"])
        assert {key: value for key, value in reply["reason"].items() if value is not None} == {"q": "asked", **known}


@pytest.mark.parametrize(
    ("code", "status"),
    [("const o = output; o", "error"), ("output + 1\n", "error"), ("const o = output;\nreturn o", "pass")],
)
def test_a_transform_is_an_expression_or_a_whole_body(tmp_path, code, status):
    test = {"vars": {"q": "x"}, "options": {"transform": code}}
    assert run(tmp_path, {**ECHO, "tests": [test]}).statuses == [status]


def test_code_sees_the_prompt_as_it_was_written_and_the_variables_as_they_were_made(tmp_path):
    """And a command has its `config`, even if there is none."""
    (tmp_path / "show.py").write_text("import json, sys\nprint(json.loads(sys.argv[2])['config'])\n")
    options = {
        "transformVars": "({q: vars.q + '!', r: 1})",
        "transform": "[output, context.prompt.raw, context.prompt.template, context.vars.q].join(' ')",
    }
    config = {
        **ECHO,
        "providers": [f"exec:{quote(sys.executable)} show.py"],
        "tests": [{"vars": {"q": "x"}, "options": options}],
    }
    [trace] = run(tmp_path, config).traces.values()
    assert trace.extra["promptfoo"]["output"] == "{} {{q}} {{q}} x!"
    assert trace.extra["promptfoo"]["vars"] == {"q": "x!", "r": 1}


def test_typescript_imports_its_files_by_either_name(tmp_path):
    """Without an ending, as bundlers resolve them, or with that of the JavaScript that is made of them."""
    checks = """
import { word } from "./words";
import { mark } from "./marks.js";
import { end } from "./ends";
export function fits(output: string): boolean { return output === word + mark + end; }
"""
    files = {
        "checks__ts": checks,
        "words__ts": 'export const word: string = "it";\n',
        "marks__ts": 'export const mark: string = "!";\n',
        "ends/index__ts": 'export const end: string = "?";\n',
    }
    check = {"type": "javascript", "value": "file://checks.ts:fits"}
    assert asserted(tmp_path / "a", "it!?", check, **files).statuses == ["pass"]
    ran = asserted(tmp_path / "b", "it", {"type": "javascript", "value": "file://checks.ts:fits"}, checks__ts=checks)
    assert "Cannot find module" in ran.rows[0].error.message
