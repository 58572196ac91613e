"""Providers: their names, settings and templates, and what those in Python get."""

from __future__ import annotations

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.formats.promptfoo.file import with_environment
from formats.promptfoo.runs import ECHO, run, run_at, write


@pytest.mark.parametrize(
    ("provider", "warned"),
    [("echo", True), ({"id": "http://127.0.0.1:1/a"}, True),
     ({"id": "http://127.0.0.1:1/b", "config": {"transformResponse": "json"}}, False)],
)  # fmt: skip
def test_guardrails_of_a_provider_that_says_only_its_output_are_warned_of(tmp_path, provider, warned):
    config = {**ECHO, "providers": [provider], "tests": [{"vars": {"q": "hi"}, "assert": [{"type": "guardrails"}]}]}
    warnings = run(tmp_path, config).outcome.summary.warnings
    assert any("guardrails passes whatever the output of" in warning for warning in warnings) == warned


def test_a_script_of_node_needs_no_scheme(tmp_path):
    """Its TypeScript may be more than types: Node alone refuses enums and parameter properties."""
    provider = """
enum End { Mark = "!" }
export default class {
  constructor(private options: { config: { start: string } }) {}
  async callApi(prompt: string) { return { output: this.options.config.start + prompt + End.Mark }; }
}
"""
    providers = [{"id": "agents/agent.ts", "config": {"start": "> "}}]
    ran = run(
        tmp_path, {**ECHO, "providers": providers, "tests": [{"vars": {"q": "a"}}]}, **{"agents/agent__ts": provider}
    )
    assert ran.outputs == ["> a!"]


def test_a_provider_in_python_has_prompt_options_and_context(tmp_path):
    provider = (
        "def call_api(prompt, options, context):\n"
        "    if context['vars']['q'] == 'boom':\n        return {'error': 'overloaded'}\n"
        "    return {'output': prompt + options['config']['end'], 'cost': 0.5, 'tokenUsage': {'prompt': 3}}\n"
    )
    config = {
        "prompts": ["Q {{q}}"],
        "providers": [{"id": "file://p.py", "config": {"end": "!"}}],
        "tests": [{"vars": {"q": "hi"}, "assert": [{"type": "cost", "threshold": 0.1}]}, {"vars": {"q": "boom"}}],
    }
    found = run(tmp_path, config, **{"p.py": provider})
    assert found.statuses == ["fail", "error"]
    first, second = found.traces.values()
    assert (first.output.final_answer, first.metrics.token_input) == ("Q hi!", 3)
    assert (second.error.message, found.outcome.exit_code) == ("overloaded", 3)
    assert found.native["errors"] == 1


def test_providers_have_the_names_that_promptfoo_gives_them(tmp_path):
    named = [
        "file://p.py",
        "python:p.py",
        {"id": "file://p.py"},
        {"id": "python:p.py"},
        "file://p.py:ask",
        "exec:echo a",
    ]
    code = "def call_api(prompt, options, context):\n    return {'output': prompt}\nask = call_api\n"
    path = write(tmp_path, {**ECHO, "providers": named, "tests": [{"vars": {"q": "a"}}]}, p__py=code)
    assert [variant.name for variant in load_suite(path).variants] == [
        "python:p.py:default", "python:p.py:default#2", "file://p.py", "python:p.py", "python:p.py:ask", "exec:echo a",
    ]  # fmt: skip
    assert run_at(path, tmp_path).statuses == ["pass"] * 6


def test_settings_of_a_prompt_are_in_the_context_of_a_function_and_not_in_its_options(tmp_path):
    code = "def call_api(p, o, c):\n    return {'output': [o['config'], o['env'], c['prompt']['config']]}\n"
    config = {
        "prompts": [{"raw": "{{q}}", "label": "a", "config": {"mood": "calm"}}],
        "providers": [{"id": "python:p.py", "config": {"place": "here"}}],
        "tests": [{"vars": {"q": "a"}}],
    }
    assert run(tmp_path, config, p__py=code).outputs == [[{"place": "here"}, {}, {"mood": "calm"}]]


def test_a_command_that_writes_nothing_but_errors_has_failed(tmp_path):
    programs = ("echo why >&2", "echo why >&2; echo out", "true")
    config = {**ECHO, "providers": [f"exec:sh -c '{program}'" for program in programs]}
    found = run(tmp_path, {**config, "tests": [{"vars": {"q": "a"}}]})
    assert found.statuses == ["error", "pass", "pass"]
    errors = [trace.error.message for trace in found.traces.values() if trace.error is not None]
    assert errors == ["the command wrote no output; stderr: why"]


def test_a_provider_that_is_a_key_may_have_an_id_of_its_own(tmp_path):
    second = {"exec:sh -c 'echo b'": {"id": "second", "label": "s"}}
    providers = [{"echo": {"id": "first"}}, second, {"echo": {"id": "echo"}}]
    tests = [{"vars": {"q": "a"}, "providers": [name]} for name in ("first", "second", "echo")]
    found = run(tmp_path, {**ECHO, "providers": providers, "tests": tests})
    chosen = {key[1]: trace.extra["promptfoo"] for key, trace in found.traces.items() if trace.output.final_answer}
    assert {name: (seen["output"], seen["provider"]["id"]) for name, seen in chosen.items()} == {
        "first": ("a", "first"), "s": ("b", "second"), "echo": ("a", "echo"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "unset", "set_"),
    [
        ("{{env.WHO}}", "{{env.WHO}}", "exec:cat"),
        ("{{ env.WHO | default('echo') }}", "echo", "exec:cat"),
        ("{{ env['WHO'] | default(\"echo\") }}", "echo", "exec:cat"),
        ("{{ env.WHO or 'echo' }}", "echo", "exec:cat"),
        ("{{- env.WHO | lower -}}", "", "exec:cat"),
        ("{{ env.WHO if prompt else 'echo' }}", "{{ env.WHO if prompt else 'echo' }}", "echo"),
        ("{{ envelope | default('a') }}", "{{ envelope | default('a') }}", "{{ envelope | default('a') }}"),
    ],
)
def test_templates_of_the_environment_are_filled_in_when_the_file_is_read(written, unset, set_):
    """As by promptfoo: any template of a variable that is set, and those with a filter, such as its default."""
    assert with_environment({"id": [written]}, {}) == {"id": [unset]}
    assert with_environment({"id": [written]}, {"WHO": "exec:cat"}) == {"id": [set_]}


def test_a_provider_may_be_a_variable_with_a_default(tmp_path):
    template = "{{ env.EVALWRIGHT_TEST_WHO | default('echo') }}"
    config = {
        "prompts": ["{{q}}"],
        "providers": [template, {"id": template, "label": "b"}],
        "tests": [{"vars": {"q": "a"}}],
    }
    assert run(tmp_path, config).outputs == ["a", "a"]
    warnings = load_suite(tmp_path / "promptfooconfig.yaml").warnings
    assert not any("is not set" in warning.message for warning in warnings)


def test_an_address_may_have_an_id_of_its_own(tmp_path):
    provider = {"id": "https:company/model", "label": "m", "config": {"url": "http://127.0.0.1:{{env.PORT}}/ask"}}
    config = {"prompts": ["{{q}}"], "providers": [provider], "tests": [{"vars": {"q": "a"}}]}
    assert [variant.name for variant in load_suite(write(tmp_path, config)).variants] == ["m"]
    del provider["config"]
    with pytest.raises(InputError, match="the address is missing"):
        load_suite(write(tmp_path, config))


def test_the_provider_of_a_test_leaves_the_transform_of_its_column(tmp_path):
    providers = [{"id": "echo", "transform": "output.prompt"}]
    own = {"id": "file://p.py", "transform": "output.nothing"}
    code = "def call_api(prompt, options, context):\n    return {'output': {'prompt': prompt + '!'}}\n"
    config = {**ECHO, "providers": providers, "tests": [{"vars": {"q": "a"}, "provider": own}]}
    assert run(tmp_path, config, p__py=code).outputs == ["a!"]


@pytest.mark.parametrize("returned", ["'an answer'", "''", "42", "['an answer']", "undefined", "{text: 'an answer'}"])
def test_what_a_provider_in_javascript_returns_without_an_output_is_no_answer(tmp_path, returned):
    code = f"module.exports = class {{ async callApi() {{ return {returned}; }} }};"
    test = {"vars": {"q": "a"}, "assert": [{"type": "not-contains", "value": "nothing"}]}
    found = run(tmp_path, {**ECHO, "providers": ["file://p.js"], "tests": [test]}, **{"p.js": code})
    [trace] = found.traces.values()
    assert (found.statuses, found.rows) == (["error"], [])
    assert "expected a mapping with output or error" in trace.error.message or "neither output" in trace.error.message


def test_a_provider_in_javascript_may_log(tmp_path):
    code = (
        "module.exports = class { async callApi(prompt, context) {"
        "  for (const level of ['debug', 'info', 'warn', 'error']) context.logger[level](prompt);"
        "  return {output: prompt};"
        "} };"
    )
    config = {**ECHO, "providers": ["file://p.js"], "tests": [{"vars": {"q": "a"}}]}
    assert run(tmp_path, config, **{"p.js": code}).outputs == ["a"]


@pytest.mark.parametrize("ending", ["'error': 'overloaded'", "'output': 'x'"])
def test_what_a_call_has_cost_is_kept_if_its_cell_is_an_error(tmp_path, ending):
    reply = f"{{{ending}, 'cost': 0.5, 'tokenUsage': {{'prompt': 3}}}}"
    test = {"vars": {"q": "hi"}, "options": {"transform": "file://gone.py:shorten"}}
    files = {
        "p.py": f"def call_api(*_):\n    return {reply}\n",
        "gone.py": "def shorten(output, context):\n    raise ValueError('no')\n",
    }
    result = run(tmp_path, {**ECHO, "providers": ["file://p.py"], "tests": [test]}, **files)
    [trace] = result.traces.values()
    assert result.statuses == ["error"]
    assert (trace.metrics.cost_usd, trace.metrics.token_input) == (0.5, 3)
