"""Prompts: their texts and files, labels, templates and prefixes."""

from __future__ import annotations

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import format_at, load_suite
from formats.promptfoo.runs import ECHO, run, run_at, write


def test_variables_are_data_in_prompts_of_json_and_templates_in_other_prompts(tmp_path):
    given = {
        "name": "bo",
        "loud": "{{ name | upper }}",
        "both": "{{name}} {{loud}}",
        "data": "{% if ready %}{{ name | upper }}{% endif %}",
        "cut": "{{ name | upper }} {% if",
    }
    text = "{{loud}}; {{both}}; {{data}}; {{cut}}"
    config = {"prompts": [text, json.dumps([text])], "providers": ["echo"], "tests": [{"vars": given}]}
    as_text, as_json = run(tmp_path, config).outputs
    assert as_text == f"BO; bo BO; {given['data']}; {given['cut']}"
    assert json.loads(as_json) == [f"{given['loud']}; bo {given['loud']}; {given['data']}; {given['cut']}"]


def test_keys_of_a_prompt_of_json_are_no_templates(tmp_path):
    ran = run(tmp_path, {**ECHO, "prompts": ['{"{{q}}": "{{q}}"}'], "tests": [{"vars": {"q": "x"}}]})
    assert [json.loads(output) for output in ran.outputs] == [{"{{q}}": "x"}]


def test_whatever_is_json_is_a_prompt_of_json(tmp_path):
    """As promptfoo renders it: what stands in it is escaped, unless a tag does not end on its line."""
    texts = ['"hi {{q}}"', "5.0", "1e3", "null", "NaN", '"cut {{ q {% if"', '["a {% b", "{{q}}"]']
    (tmp_path / "prompts.txt").write_text("\n---\n".join(texts))
    config = {"prompts": ["file://prompts.txt"], "providers": ["echo"], "tests": [{"vars": {"q": 'a "b"\nc'}}]}
    assert run(tmp_path, config).outputs == [
        '"hi a \\"b\\"\\nc"', "5", "1000", "null", "NaN", '"cut {{ q {% if"', '["a {% b", "{{q}}"]',
    ]  # fmt: skip


def test_a_prompt_with_a_tag_that_does_not_end_is_sent_as_it_stands(tmp_path):
    ran = run(tmp_path, {**ECHO, "prompts": ["# Who {#who}\nis {{q}}?"], "tests": [{"vars": {"q": "Ann"}}]})
    assert ran.outputs == ["# Who {#who}\nis {{q}}?"]
    assert any("does not end on its line" in warning for warning in ran.outcome.summary.warnings)


@pytest.mark.parametrize(("filter_file", "missing"), [("f.js", "undefined"), ("f.py", "None")])
def test_a_filter_of_ones_own_gets_what_is_missing(tmp_path, filter_file, missing):
    files = {"f.js": "module.exports = (s) => `<${s}>`;", "f.py": "def filter(s):\n    return f'<{s}>'\n"}
    config = {
        "prompts": ["{{ gone|own }} {{ q|own }} {{ none|own }}\n"],
        "nunjucksFilters": {"own": f"./{filter_file}"},
    }
    tests = [{"vars": {"q": "a", "none": None}}]
    null = "null" if filter_file == "f.js" else "None"
    assert run(tmp_path, {**ECHO, **config, "tests": tests}, **files).outputs == [f"<{missing}> <a> <{null}>\n"]


def test_files_are_known_by_name_and_by_content(tmp_path):
    (tmp_path / "shop.yaml").write_text("prompts: [hi]\nproviders: [echo]\n")
    (tmp_path / "more.json").write_text(json.dumps({"targets": ["echo"], "tests": [{"vars": {}}]}))
    for name in ("shop.yaml", "more.json"):
        assert format_at(tmp_path / name).name == "promptfoo"
    assert format_at(write(tmp_path, "prompts: [hi]\n")).name == "promptfoo"


def test_the_rows_of_a_file_of_prompts_keep_their_own_labels(tmp_path):
    prompts = [{"id": "file://p.csv", "label": "all"}]
    path = write(tmp_path, {**ECHO, "prompts": prompts}, p__csv="prompt,label\none {{q}},first\ntwo {{q}},\n")
    assert [variant.name for variant in load_suite(path).variants] == ["echo@first", "echo@all"]


def test_rows_without_labels_are_numbered(tmp_path):
    files = {"p.csv": "prompt,label\none,first\n  ,blank\ntwo,\n", "q.csv": "Say x\n\nSay y\n"}
    path = write(tmp_path, {**ECHO, "prompts": ["p.csv", "q.csv"]}, **files)
    names = ["first", "Prompt 2 - two", "Prompt 1 - Say x", "Prompt 2 - Say y"]
    assert [variant.name for variant in load_suite(path).variants] == [f"echo@{name}" for name in names]


def test_a_table_without_prompts_is_read_by_lines_with_a_warning(tmp_path):
    suite = load_suite(write(tmp_path, {**ECHO, "prompts": ["p.csv"]}, p__csv="text,label\nhi,A\n"))
    assert [variant.config["prompt"]["raw"] for variant in suite.variants] == ["text,label", "hi,A"]
    assert any("'p.csv' has no column 'prompt'" in str(warning) for warning in suite.warnings)


def test_an_entry_that_is_there_twice_is_read_once(tmp_path):
    """Only texts among prompts, but any provider, as in promptfoo."""
    mapping, own = {"raw": "b", "label": "c"}, {"id": "echo", "label": "own"}
    config = {"prompts": ["a", mapping, "a", mapping], "providers": ["echo", own, own, "echo", {"id": "echo"}]}
    suite = load_suite(write(tmp_path, {**config, "tests": [{"vars": {}}]}))
    columns = [(variant.config["provider"]["label"], variant.config["prompt"]["raw"]) for variant in suite.variants]
    assert columns == [(label, raw) for label in ("echo", "own", "echo") for raw in "abb"]
    places = [warning.key for warning in suite.warnings if "again" in str(warning)]
    assert places == ["prompts[2]", "providers[2]", "providers[3]"]


def test_entries_that_differ_in_the_type_of_a_value_only_are_two(tmp_path):
    providers = [{"id": "echo", "config": {"seed": seed}} for seed in (1, True)]
    suite = load_suite(write(tmp_path, {"prompts": ["a"], "providers": providers, "tests": [{"vars": {}}]}))
    assert [variant.config["provider"]["config"]["seed"] for variant in suite.variants] == [1, True]
    assert not [warning for warning in suite.warnings if "again" in str(warning)]


def test_prompts_may_be_labels_by_their_texts_or_files(tmp_path):
    config = {**ECHO, "prompts": {"short.txt": "brief", "Say {{q}}": "spoken"}, "tests": [{"vars": {"q": "a"}}]}
    ran = run(tmp_path, config, short__txt="{{q}}!")
    assert sorted(ran.outputs) == ["Say a", "a!"]
    assert {trace.extra["promptfoo"]["prompt"] for trace in ran.traces.values()} == {"Say a", "a!"}


def test_a_prompt_may_be_blank(tmp_path):
    """For providers that take everything from the variables."""
    config = {**ECHO, "prompts": [" ", {"raw": "", "label": "none"}], "tests": [{"vars": {"q": "a"}}]}
    assert sorted(run(tmp_path, config).outputs) == ["", " "]


def test_a_test_may_name_its_prompts(tmp_path):
    prompts = [{"raw": "one {{q}}", "label": "a"}, {"raw": "two {{q}}", "label": "b"}]
    config = {"evaluateOptions": {"maxConcurrency": 1}, "prompts": prompts, "providers": ["echo"]}
    found = run(tmp_path, {**config, "tests": [{"vars": {"q": "x"}, "prompts": ["b"]}, {"vars": {"q": "y"}}]})
    assert found.statuses == ["skip", "pass", "pass", "pass"]
    assert (found.native["successes"], found.outcome.exit_code) == (3, 0)


NUNJUCKS = {
    '{{ "a b c" | truncate(3) }} {{ "a b c" | truncate(3, true, "?") }}': "a b... a b?",
    "{{ [1,2,3] | batch(2) | dump }} {{ [1,2,3] | slice(2) | dump }} {{ range(3) }}": "[[1,2],[3]] [[1,2],[3]] 0,1,2",
    '{{ list | groupby("k") | dump }}': '{"1":[{"k":1}],"2":[{"k":2}]}',
    '{{ list | selectattr("k") | length }} {{ list | rejectattr("k") | dump }}': "2 []",
    '{{ 1 == "1" }} {{ 1 === "1" }} {{ 1 !== "1" }} {{ true == 1 }} {{ true === 1 }}': "true false true true false",
    "{{ none === gone }} {{ gone !== none }} {{ none === none }} {{ gone === lost }}": "false true true true",
    "{{ none == missing }} {{ 0 == none }}": "true false",
    '{{ [1] == [1] }} {{ list == list }} {{ "a" != "b" }} {{ 1 < 2 }} {{ "x" == 3 }}': "false true true true false",
    "{{ 'a' ~ none ~ missing ~ true ~ 1.0 }} {{ 1.0 | dump }} {{ {a: 1} | dump }}": 'anullundefinedtrue1 1 {"a":1}',
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{% set y = i %}{% endfor %}{{ x }}{{ y }}": "4",
    "{% if {} %}T{% endif %}{% if [] %}T{% endif %} {{ '3' * 4 }} {{ -7 % 3 }} {{ 3 > '2' }}": "TT 12 -1 true",
    "{{ '7x' | int }} {{ 'x' | int }}|{{ '7.5z' | float }} {{ 'x y\\nz q' | title }}": "7 |7.5 X Y\nz Q",
    "{{ [1, 2, 3] | select('odd') | length }} {{ none is null }} {{ 3.14159.toFixed(2) }}": "2 true 3.14",
    "{% for x in none %}x{% else %}none {% endfor %}{% for k in {'a': 1} %}{{ k }}{% else %}-{% endfor %}": "none -",
    "{{ 'a/b c!' | urlencode }} {{ '3.7' | round }}": "a%2Fb%20c! 4",
    "{{ small.a }} {{ small.b }} {{ small | dump }}": '0.000015 1e-7 {"a":0.000015,"b":1e-7,"c":"x 1e-07"}',
    "{% verbatim %}{{ a }}{% endverbatim %} {{ [1, 'b'] | sum }}": "{{ a }} 01b",
}  # fmt: skip
"""Each with what promptfoo's own Nunjucks gives."""


def test_filters_and_comparisons_are_those_of_nunjucks(tmp_path):
    prompts = [{"raw": template, "label": f"p{i}"} for i, template in enumerate(NUNJUCKS)]
    tests = [{"vars": {"list": [{"k": 2}, {"k": 1}], "small": {"a": 1.5e-05, "b": 1e-07, "c": "x 1e-07"}}}]
    found = run(tmp_path, {"prompts": prompts, "providers": ["echo"], "tests": tests})
    assert sorted(found.outputs) == sorted(NUNJUCKS.values())


@pytest.mark.parametrize(
    "template", ["{{ q | tojson }}", "{{ q | unique }}", "{{ q[0:2] }}", "{{ q is true }}", "{% set a, b = 1, 2 %}"]
)
def test_what_only_jinja_has_is_an_error(tmp_path, template):
    ran = run(tmp_path, {**ECHO, "prompts": [template], "tests": [{"vars": {"q": "abc"}}]})
    assert ran.statuses == ["error"]
    assert any("no cell can have this prompt: " in warning for warning in ran.outcome.summary.warnings)


def test_prompts_that_cannot_be_rendered_are_known_before_anything_runs(tmp_path):
    prompts = ["{{ q | own }}", "{{ q | upper }}", "{% for x in q %}{{x}}", '{"a": "{{ q | nosuch }}", "b": "{{q"}']
    config = {**ECHO, "nunjucksFilters": {"own": "own.py"}, "prompts": prompts, "tests": [{"vars": {"q": "a"}}]}
    suite = load_suite(write(tmp_path, config, own__py="def filter(value):\n    return value\n"))
    reasons = [str(warning) for warning in suite.warnings if "no cell can have this prompt" in str(warning)]
    assert ["endfor" in reason for reason in reasons] == [True, False]


def test_prefixes_are_put_before_texts_and_not_before_what_functions_make(tmp_path):
    config = {
        "prompts": ["{{q}}", "file://p.py"],
        "providers": ["echo"],
        "tests": [{"vars": {"q": "\U0001f600"}, "options": {"prefix": "<", "suffix": ">"}}],
    }
    path = tmp_path / "promptfooconfig.json"
    path.write_text(json.dumps(config))  # with the two escapes that JSON has for such a character
    (tmp_path / "p.py").write_text("def get_prompt(context):\n    return 'own ' + context['vars']['q']\n")
    assert sorted(run_at(path, tmp_path).outputs) == ["<\U0001f600>", "own \U0001f600"]


def test_messages_in_a_file_name_files_of_their_own(tmp_path):
    files = {
        "chat.json": '[{"role": "system", "content": "file://system.txt"}]',
        "chat.yaml": "- {role: user, content: file://parts.yaml}\n",
        "system.txt": "Be {{q}}.\n",
        "parts.yaml": "[{text: '{{q}}'}]\n",
    }
    config = {**ECHO, "prompts": ["file://chat.json", "file://chat.yaml"], "tests": [{"vars": {"q": "kind"}}]}
    assert [json.loads(output) for output in run(tmp_path, config, **files).outputs] == [
        [{"role": "system", "content": "Be kind.\n"}],
        [{"role": "user", "content": [{"text": "kind"}]}],
    ]


def test_a_file_that_messages_name_must_be_there(tmp_path):
    path = write(tmp_path, {**ECHO, "prompts": ["file://chat.json"]}, **{"chat.json": '["file://nope.txt"]'})
    with pytest.raises(InputError, match=r"there is no file 'file://nope\.txt'"):
        load_suite(path)


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        (
            "{% for q in all %}\n- {role: user, content: {{ q }}}\n{% endfor %}\n",
            "\n- {role: user, content: a}\n\n- {role: user, content: b}\n\n",
        ),
        ("- role: user\n  content: {{all[1]}}\n", "- role: user\n  content: b\n"),
    ],
)
def test_a_file_that_is_yaml_only_once_it_is_filled_in_is_a_text_until_then(tmp_path, prompt, sent):
    tests = [{"vars": {"all": [["a"], ["b"]]}}]
    found = run(tmp_path, {**ECHO, "prompts": ["file://p.yaml"], "tests": tests}, **{"p.yaml": prompt})
    assert found.outputs == [sent]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [(["s*"], ["short", "sharp"]), (["long:*"], ["long: x"]), (["long"], ["long: x"]), (["s"], []), ([], [])],
)
def test_a_star_ends_the_beginning_of_the_labels_of_prompts(tmp_path, names, chosen):
    prompts = [{"raw": label, "label": label} for label in ("short", "sharp", "long: x")]
    providers = ["echo", {"id": "exec:printf a", "prompts": names}]
    path = write(tmp_path, {**ECHO, "prompts": prompts, "providers": providers, "tests": [{"vars": {"q": "a"}}]})
    columns = [variant.config for variant in load_suite(path).variants]
    assert [c["prompt"]["label"] for c in columns if c["provider"]["id"] != "echo"] == chosen


def test_the_only_line_of_a_file_of_prompts_is_called_after_the_file(tmp_path):
    path = write(tmp_path, {**ECHO, "prompts": ["file://p.jsonl"], "tests": [{"vars": {"q": "a"}}]}, p__jsonl='["a"]')
    assert load_suite(path).variants[0].config["prompt"]["label"] == "p.jsonl"
