"""Assertions, transforms and providers in JavaScript and Python."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from shlex import quote
from threading import Thread

import pytest

from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.javascript_code import javascript_body, simple_path
from evalwright.formats.promptfoo.node_needs import places_for_node
from formats.promptfoo.runs import ECHO, asserted, run


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
    found = asserted(tmp_path, "hi there", *({"type": "javascript", "value": value} for value in values))
    expected = "pass pass pass pass fail fail fail pass pass fail fail fail pass"
    assert [row.status for row in found.rows] == expected.split()
    assert found.rows[4].detail["threw"]
    assert found.verdict.named_scores == {"tone": 0.5}


def test_javascript_that_hangs_is_an_error_of_its_cell_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.formats.promptfoo.scripts.LIMIT", 0.5)
    tests = [
        {"vars": {"q": q}, "assert": [{"type": "javascript", "value": "output === 'a' || (() => { for (;;); })()"}]}
        for q in ("b", "a")
    ]
    found = run(tmp_path, {**ECHO, "evaluateOptions": {"maxConcurrency": 1}, "tests": tests})
    assert found.statuses == ["error", "pass"]
    assert found.rows[0].error.type == "timeout"


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
    found = run(tmp_path, config, **files)
    assert found.judged() == ["javascript#0 pass", "equals#1 pass"], found.rows
    [trace] = found.traces.values()
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
    found = asserted(
        tmp_path, "hi there", *({"type": "python", "value": value} for value in values),
        **{"c.py": code + "def boom(output, context):\n    raise ValueError('no')\n"},
    )  # fmt: skip
    expected = "pass fail pass pass pass pass fail fail fail fail fail pass pass"
    assert [row.status for row in found.rows] == expected.split()
    assert any("returns nothing" in str(warning) for warning in found.outcome.summary.warnings)


def test_code_in_files_that_cannot_be_used_is_an_error_in_javascript_and_a_failure_in_python(tmp_path):
    """As in promptfoo."""
    values = ["file://gone.js", "file://c.js:gone", "file://broken.js"]
    tests = [{"vars": {"q": "x"}, "assert": [{"type": "javascript", "value": value}]} for value in values]
    tests += [{"vars": {"q": "x"}, "assert": [{"type": "python", "value": "file://c.py:gone"}]}]
    files = {"c.js": "module.exports = () => true;", "broken.js": "module.exports = (", "c.py": "def get_assert(): ..."}
    found = run(tmp_path, {**ECHO, "tests": tests}, **files)
    assert found.statuses == ["error", "error", "error", "fail"]
    assert {row.error.type for row in found.rows if row.error} == {"unusable"}
    assert any("'gone.js': this assertion is an error" in str(one) for one in found.outcome.summary.warnings)


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
    assert [(one["pass"], one["reason"]) for one in parts] == [(True, "half"), (True, "a"), (False, "b")]
    assert {one["assertion"]["type"] for one in parts} == {"python"}


@pytest.mark.parametrize("transform", ["JSON.parse(output)", "undefined"])
def test_a_transform_that_gives_nothing_is_an_error(tmp_path, transform):
    found = run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "bad"}, "options": {"transform": transform}}]})
    assert found.statuses == ["error"]
    assert found.verdict.error.type == "transform_error"


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


@pytest.mark.parametrize("kind", ["is-json", "equals"])
@pytest.mark.parametrize("made", ["False", "{'pass': True, 'score': 1, 'reason': 'r'}"])
def test_a_function_in_place_of_a_value_gives_no_verdict(tmp_path, kind, made):
    code = f"def f(output, context):\n    return {made}\n"
    found = asserted(tmp_path, '{"pass": true}', {"type": kind, "value": "file://v.py:f"}, v__py=code)
    assert [(row.status, row.error.type) for row in found.rows] == [("error", "bad_value")]


def test_a_prompt_function_knows_the_settings_of_its_prompt(tmp_path):
    code = "def ask(context):\n    return f\"say {context['config'].get('word')}\"\n"
    prompts = ["file://p.py:ask", {"id": "file://p.py:ask", "label": "own", "config": {"word": "hi"}}]
    found = run(tmp_path, {**ECHO, "prompts": prompts, "tests": [{"vars": {"q": "a"}}]}, p__py=code)
    assert found.outputs == ["say None", "say hi"]


@pytest.mark.parametrize(
    ("named", "status"), [("s.py:raises", "fail"), ("s.py:gone", "error"), ("s.js:gone", "error"), ("s.js", "fail")]
)
def test_only_a_scoring_function_that_is_there_can_fail_a_cell(tmp_path, named, status):
    test = {"assert": [{"type": "contains", "value": "a"}], "assertScoringFunction": f"file://{named}"}
    files = {"s.py": "def raises(scores, context):\n    raise ValueError('no')\n", "s.js": "module.exports = () => 5;"}
    assert run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}, **test}]}, **files).statuses == [status]


def test_tests_and_variables_are_made_by_functions(tmp_path):
    config = {**ECHO, "tests": ["file://gen.py:make", {"vars": {"q": "file://var.py"}}]}
    files = {
        "gen.py": "def make(config=None):\n    return [{'vars': {'q': f'py{i}'}} for i in range(2)]\n",
        "var.py": "def get_var(name, prompt, others):\n    return {'output': name + '!  \\n'}\n",
    }
    assert run(tmp_path, config, **files).outputs == ["py0", "py1", "q!"]


def test_what_needs_node_is_counted(tmp_path):
    from evalwright.formats.loading import load_suite
    from formats.promptfoo.runs import write

    config = {
        "prompts": ["file://p.js"],
        "providers": [{"id": "file://p.js", "transform": "output.a.b"}],
        "defaultTest": {"options": {"transform": "output + 1"}},
        "tests": [{"assert": [{"type": "javascript", "value": "true"}, {"type": "python", "value": "True"}]}] * 2,
    }
    suite = load_suite(write(tmp_path, config, **{"p.js": ""}), to_run=False)
    assert places_for_node(suite.variants, list(suite.cases), ()) == 6


def test_code_of_requests_filters_scores_and_providers_of_tests_needs_node_too(tmp_path):
    from evalwright.formats.loading import load_suite
    from formats.promptfoo.runs import write

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
    from evalwright.formats.loading import load_suite
    from formats.promptfoo.runs import write

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


def test_code_sees_the_assertions_of_its_test(tmp_path):
    code = "context['test']['assert'][1]['value'] == 'x'"
    found = asserted(tmp_path, "x", {"type": "python", "value": code}, {"type": "contains", "value": "x"})
    assert found.judged() == ["python#0 pass", "contains#1 pass"]


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
    found = asserted(tmp_path, "x", *asserts)
    assert [row.status for row in found.rows] == [*replies.values(), *letters.values(), *letters.values()]
    assert [row.score for row in found.rows[3:6]] == [0, 1, 0]
    assert any("promptfoo does not turn this type round" in str(one) for one in found.outcome.summary.warnings)


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
    found = asserted(tmp_path, "x", *asserts, closed)
    assert [row.status for row in found.rows] == ["pass"] * 3
    for row, known in zip(found.rows, kinds.values(), strict=False):
        reply = json.loads(row.detail["judge_calls"][0]["reply"])
        assert {key: value for key, value in reply["reason"].items() if value is not None} == {"q": "asked", **known}


@contextmanager
def service(answer=lambda method, path, body: b'{"a": "b"}', headers=None, status=201, sends=("X-Part", "7")):
    """The address of a service on this machine, and the requests that it got; `headers` gets theirs, and it `sends`
    one itself."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            requests.append((self.command, self.path, body, self.headers.get("Content-Type")))
            if headers is not None:
                headers.append(dict(self.headers))
            self.send_response(status)
            self.send_header(*sends)
            self.end_headers()
            self.wfile.write(answer(self.command, self.path, body))

        do_GET = do_POST = answer

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()


def test_what_makes_the_output_of_a_response_sees_its_status_and_headers(tmp_path):
    with service() as (address, asked):
        code = "[json.a, context.response.status, context.response.headers['x-part'], context.vars.q].join(' ')"
        provider = {"id": f"{address}/p?x={{{{q}}}}", "config": {"transformResponse": code}}
        found = run(tmp_path, {**ECHO, "providers": [provider], "tests": [{"vars": {"q": "hi there"}}]})
    assert (found.outputs, [path for _, path, *_ in asked]) == (["b 201 7 hi there"], ["/p?x=hi%20there"])


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("[json.a].map(one => one + '!')[0]", "b!"),
        ("[json.a]\n  .concat('c')\n  .join('')\n", "bc"),
        ("{\n  output: json.a,\n  metadata: {n: 1},\n}", "b"),
        ("(json, text) => text", '{"a": "b"}'),
        ("json => json.a", "b"),
    ],
)
def test_the_output_of_a_response_is_an_expression_or_a_function(tmp_path, code, output):
    with service() as (address, _):
        provider = {"id": address, "config": {"transformResponse": code}}
        assert run(tmp_path, {**ECHO, "providers": [provider], "tests": [{"vars": {"q": "x"}}]}).outputs == [output]


@pytest.mark.parametrize(
    ("code", "status"),
    [("const o = output; o", "error"), ("output + 1\n", "error"), ("const o = output;\nreturn o", "pass")],
)
def test_a_transform_is_an_expression_or_a_whole_body(tmp_path, code, status):
    test = {"vars": {"q": "x"}, "options": {"transform": code}}
    assert run(tmp_path, {**ECHO, "tests": [test]}).statuses == [status]


JSON = {"Content-Type": "application/json"}
SAID = 'say "é"\nnow'
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("config", "body"),
    [
        ({"headers": JSON, "body": '{"p": {{prompt | dump}}, "o": {{o | dump}}}'}, {"p": SAID, "o": [1]}),
        ({"headers": JSON, "body": '{"p": "{{prompt}}", "n": {{n}}}'}, {"p": SAID, "n": 5}),
        ({"headers": JSON, "body": "not JSON: {{prompt}}"}, f"not JSON: {SAID}"),
        ({"body": "p={{prompt}}"}, f"p={SAID}"),
        ({"headers": JSON, "body": {"k": 1}, "transformRequest": "({p: prompt})"}, {"k": 1, "p": SAID}),
        ({"headers": JSON, "body": {"p": "{{prompt}}"}, "transformRequest": "return prompt[0]"}, {"p": SAID[0]}),
        ({"headers": JSON, "body": {"k": 1}, "transformRequest": "file://request.js"}, {"k": 1, "n": 5}),
    ],
)
def test_bodies_of_requests_are_those_of_promptfoo(tmp_path, config, body):
    with service() as (address, asked):
        provider = {"id": "http", "config": {"url": address, "method": "POST", **config}}
        test = {"vars": {"q": SAID, "o": [1], "n": 5}}
        script = "module.exports = (prompt, vars, context) => ({n: context.vars.n})"
        run(tmp_path, {**ECHO, "providers": [provider], "tests": [test]}, **{"request.js": script})
    [(_, _, sent, kind)] = asked
    assert (json.loads(sent) if isinstance(body, dict) else sent) == body
    assert kind == config.get("headers", {"Content-Type": FORM})["Content-Type"]


def test_an_address_has_no_line_breaks_of_its_variables(tmp_path):
    with service() as (address, asked):
        provider = {"id": f"{address}?q={{{{q}}}}"}
        run(tmp_path, {**ECHO, "providers": [provider], "tests": [{"vars": {"q": "a\nb"}}]})
    assert [path.partition("?")[2] for _, path, _, _ in asked] == ["q=ab"]


def test_a_request_by_get_has_no_body_and_null_is_the_text_of_a_response(tmp_path):
    with service(lambda *_: b"null") as (address, asked):
        provider = {"id": address, "config": {"headers": JSON, "body": {"a": 1}}}
        assert run(tmp_path, {**ECHO, "providers": [provider], "tests": [{"vars": {"q": "x"}}]}).outputs == ["null"]
    assert [(method, body) for method, _, body, _ in asked] == [("GET", "")]


def test_an_endless_nesting_in_a_response_is_a_text(tmp_path):
    with service(lambda *_: b"[" * 100_000) as (address, _):
        found = run(tmp_path, {**ECHO, "providers": [address], "tests": [{"vars": {"q": "x"}}]})
    assert found.outputs == ["[" * 100_000]


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
