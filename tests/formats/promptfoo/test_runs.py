"""Configurations of promptfoo run as they are: prompts × providers × tests in, verdicts and counters out."""

from __future__ import annotations

import asyncio
import json

import pytest

from evalwright.cli import main
from evalwright.errors import InputError
from evalwright.formats.loading import format_at, load_suite
from evalwright.formats.promptfoo.file import with_environment
from evalwright.formats.promptfoo.target import PromptfooTarget
from evalwright.run.resumption import resume
from evalwright.session import Session
from formats.promptfoo.runs import ECHO, Ran, asserted, run, run_at, write


def test_every_prompt_is_asked_of_every_provider(tmp_path):
    found = run(
        tmp_path,
        {
            "evaluateOptions": {"maxConcurrency": 1},
            "prompts": ["Hello {{name}}.", {"raw": "Bye {{ name }}", "label": "bye"}],
            "providers": ["echo", {"id": "echo", "label": "second"}],
            "tests": [{"vars": {"name": "Ann"}, "assert": [{"type": "contains", "value": "{{name}}"}]}],
        },
    )
    assert [name for _, name, _ in found.verdicts] == ["echo@prompt-0", "echo@bye", "second@prompt-0", "second@bye"]
    assert found.outputs == ["Hello Ann.", "Bye Ann"] * 2
    assert (found.native["successes"], found.outcome.exit_code) == (4, 0)


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


def test_lists_of_texts_are_multiplied_out_and_other_lists_are_values(tmp_path):
    test = {"vars": {"a": ["x", "y"], "b": ["1", "2"], "c": [{"k": 1}]}}
    found = run(tmp_path, {"prompts": ["{{a}}{{b}}{{ c | dump }}"], "providers": ["echo"], "tests": [test]})
    assert found.outputs == [f'{a}{b}[{{"k":1}}]' for a in "xy" for b in "12"]


def test_a_list_within_a_list_of_texts_is_one_of_its_values(tmp_path):
    cases = load_suite(write(tmp_path, {**ECHO, "tests": [{"vars": {"q": ["a", ["b", "c"], 3]}}]})).cases
    assert [case.input["q"] for case in cases] == ["a", ["b", "c"], 3]


def test_only_line_feeds_end_the_lines_of_files(tmp_path):
    """JSON may contain the line separators of Unicode as they are."""
    odd = "a\u2028b\x85c"
    files = {
        "prompts.txt": f"{odd} {{{{q}}}}\n---\nsecond",
        "prompts.jsonl": f'["{odd}"]\n',
        "tests.jsonl": f'{{"vars": {{"q": "{odd}"}}}}\n',
    }
    config = {"prompts": ["file://prompts.txt", "file://prompts.jsonl"], "providers": ["echo"], "tests": "tests.jsonl"}
    first, second, third = run(tmp_path, config, **files).outputs
    assert (first, second, json.loads(third)) == (f"{odd} {odd}", "second", [odd])


def test_a_cell_of_a_table_may_be_as_long_as_it_likes_and_contain_quotation_marks(tmp_path):
    rows = [["x" * 200_000, "no"], ['"5"" pipe, ""iron"""', "quoted"], ['5" pipe', "bare"], ['"a"b', "bare"]]
    text = "q,__description\n" + "".join(",".join(row) + "\n" for row in rows)
    cases = load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": text})).cases
    assert [case.input["q"] for case in cases] == ["x" * 200_000, '5" pipe, "iron"', '5" pipe', '"a"b']


def test_a_quotation_mark_that_is_never_closed_is_named_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"t.csv:3: a quotation mark is never closed"):
        load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": 'q,r\na,b\nc,"d\ne,f\n'}))


def test_the_tests_of_files_come_in_order(tmp_path):
    files = {
        "a.yaml": "- {vars: {q: yaml}}\n",
        "b.json": '[{"vars": {"q": "json"}}]',
        "c.jsonl": '{"vars": {"q": "jsonl"}}\n',
        "d.csv": "q,__expected,__description,__threshold\ncsv,contains: v,named,\ncsv,no,,0\n",
    }
    path = write(tmp_path, {**ECHO, "tests": ["file://a.yaml", "b.json", "c.jsonl", "d.csv"]}, **files)
    cases = list(load_suite(path).cases)
    assert [case.input["q"] for case in cases] == ["yaml", "json", "jsonl", "csv", "csv"]
    assert [case.description for case in cases][-2:] == ["named", "Row #2"]
    assert [spec.called for case in cases for spec in case.evaluators] == ["contains", "equals"]
    assert cases[-1].extra["promptfoo"]["threshold"] == 0


def test_a_pattern_finds_files_by_its_alternatives(tmp_path):
    files = {f"{name}.yaml": f"- {{vars: {{q: {name}}}}}\n" for name in ("ab", "ac", "bb", "cc")}
    cases = load_suite(write(tmp_path, {**ECHO, "tests": "{a,b}{b,c}.y*ml"}, **files)).cases
    assert [case.input["q"] for case in cases] == ["ab", "ac", "bb"]


def test_cells_of_csv_quote_texts_with_commas_and_name_files(tmp_path):
    listed = '"contains-any:""a, b"", zz"'
    table = f"q,__expected\n'a, b',{listed}\nb,{listed}\nok,file://ok.txt\nno,file://ok.txt\n".replace("'", '"')
    found = run(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": table, "ok.txt": "ok\n"})
    assert found.judged() == ["contains-any#0 pass", "contains-any#0 fail", "equals#0 pass", "equals#0 fail"]


def test_defaults_come_before_what_a_test_says(tmp_path):
    config = {
        **ECHO,
        "defaultTest": {"vars": {"q": "a", "p": "b"}, "assert": [{"type": "contains", "value": "{{q}}"}]},
        "tests": [
            {"vars": {"q": "own"}, "assert": [{"type": "equals", "value": "own"}]},
            {"options": {"disableDefaultAsserts": True}},
        ],
    }
    found = run(tmp_path, config)
    assert found.judged() == ["contains#0 pass", "equals#1 pass"]
    assert found.outputs == ["own", "a"]


def test_scenarios_come_after_tests_every_config_with_every_test(tmp_path):
    scenario = {"config": [{"vars": {"l": "fr"}}, {"vars": {"l": "de"}}], "tests": [{"vars": {"q": x}} for x in "ab"]}
    config = {"prompts": ["{{l}}{{q}}"], "providers": ["echo"], "tests": [{"vars": {"l": "it"}}]}
    found = run(tmp_path, {**config, "scenarios": [scenario]})
    assert found.outputs == ["it", "fra", "frb", "dea", "deb"]


def test_a_test_without_assertions_passes_with_a_warning(tmp_path):
    found = run(tmp_path, {**ECHO, "evaluateOptions": {"timeoutMs": 9000}, "tests": [{"vars": {"q": "hi"}}]})
    assert any("1 of 1 tests have no assertions" in one for one in found.outcome.summary.warnings)
    assert found.outcome.plan.variants[0].timeout_seconds == 9
    assert (found.verdict.status, found.verdict.score) == ("pass", 1.0)


@pytest.mark.parametrize(
    ("provider", "warned"),
    [("echo", True), ({"id": "http://127.0.0.1:1/a"}, True),
     ({"id": "http://127.0.0.1:1/b", "config": {"transformResponse": "json"}}, False)],
)  # fmt: skip
def test_guardrails_of_a_provider_that_says_only_its_output_are_warned_of(tmp_path, provider, warned):
    config = {**ECHO, "providers": [provider], "tests": [{"vars": {"q": "hi"}, "assert": [{"type": "guardrails"}]}]}
    warnings = run(tmp_path, config).outcome.summary.warnings
    assert any("guardrails passes whatever the output of" in one for one in warnings) == warned


def test_after_the_time_of_an_evaluation_nothing_is_called(tmp_path):
    slow = {"id": "exec:sh -c 'sleep 60'", "label": "slow"}
    config = {**ECHO, "providers": [slow, "echo"], "tests": [{"vars": {"q": "hi"}}]}
    found = run(tmp_path, {**config, "evaluateOptions": {"maxEvalTimeMs": 20, "maxConcurrency": 1}})
    errors = [trace.error for trace in found.traces.values()]
    assert [error and (error.type, error.message) for error in errors] == [
        ("time_limit", "the 0.02 s of maxEvalTimeMs are over")
    ] * 2
    assert run(tmp_path, {**ECHO, "evaluateOptions": {"maxEvalTimeMs": 60_000}}).statuses == ["pass"]


def test_the_time_of_an_evaluation_counts_from_the_beginning_of_its_session_for_all_columns(tmp_path):
    suite = load_suite(write(tmp_path, {**ECHO, "evaluateOptions": {"maxEvalTimeMs": 60_000}, "tests": [{"vars": {}}]}))
    target = PromptfooTarget(suite.variants[0])

    async def answer():
        await target.open()
        return await target.run(suite.cases[0], 0)

    with Session() as here:
        assert asyncio.run(answer()).error is None
        here.began -= 60
        error = asyncio.run(answer()).error
    assert error is not None
    assert error.type == "time_limit"


def test_scores_are_weighted_and_a_threshold_replaces_that_all_must_pass(tmp_path):
    asserts = [{"type": "contains", "value": "a", "weight": 3}, {"type": "contains", "value": "z"}]
    tests = [{"vars": {"q": "ab"}, "assert": asserts, **more} for more in ({}, {"threshold": 0.7}, {"threshold": 0.8})]
    tests.append({"vars": {"q": "ab"}, "assert": [{"type": "contains", "value": "z", "weight": 0}]})
    found = run(tmp_path, {**ECHO, "tests": tests})
    assert found.statuses == ["fail", "pass", "fail", "pass"]
    assert [verdict.score for verdict in found.verdicts.values()] == [0.75, 0.75, 0.75, 0.0]
    assert found.native["prompts"][0]["assertFailCount"] == 3


def test_a_set_is_one_member_of_the_list(tmp_path):
    members = [{"type": "contains", "value": "a"}, {"type": "contains", "value": "z"}]
    found = asserted(tmp_path, "abc", {"type": "assert-set", "threshold": 0.5, "assert": members, "weight": 2})
    [row] = found.rows
    assert (row.evaluator, row.score, row.passed, found.verdict.status) == ("assert-set#0", 0.5, True, "pass")
    assert [child["passed"] for child in row.detail["children"]] == [True, False]


def test_a_set_without_weight_still_fails(tmp_path):
    unweighted = {"type": "assert-set", "assert": [{"type": "contains", "value": "z"}], "weight": 0}
    found = asserted(tmp_path, "abc", unweighted, {"type": "contains", "value": "a"})
    assert (found.verdict.status, found.verdict.score) == ("fail", 1.0)


def test_repeats_are_trials(tmp_path):
    found = run(tmp_path, {**ECHO, "evaluateOptions": {"repeat": 2}, "tests": [{"vars": {"q": "a"}}]})
    assert [trial for *_, trial in found.verdicts] == [0, 1]
    again = run(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}}]}, options={"repeat": 3})
    assert len(again.verdicts) == 3


def test_columns_of_expectations_are_assertions_each(tmp_path):
    table = (
        "q,__expected,__expected1,__expected2,__config:__expected1:threshold,__config:__expected2:threshold,"
        "__metadata:tags[]\n"
        'abc,contains: b,"javascript: 0.5", ,0.6,0.7,"x\\, y, z"\n'
        "abc,,,javascript: 0.6,0,0.7,\n"
    )
    found = run(tmp_path, {**ECHO, "tests": "rows.csv"}, **{"rows.csv": table})
    assert sorted(found.judged()) == ["contains#0 pass", "javascript#0 fail", "javascript#1 fail"]
    assert [case.metadata for case in load_suite(tmp_path / "promptfooconfig.yaml").cases] == [
        {"tags": ["x, y", "z"]},
        {},
    ]


def test_one_column_of_expectations_is_the_first(tmp_path):
    table = "q,__expected,__config:__expected1:threshold\na,javascript: 0.5,0.6\n"
    assert run(tmp_path, {**ECHO, "tests": "rows.csv"}, **{"rows.csv": table}).judged() == ["javascript#0 fail"]


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


def test_an_output_can_be_stored_for_later_tests(tmp_path):
    tests = [{"vars": {"q": "77"}, "options": {"storeOutputAs": "last"}}, {"vars": {"q": "was {{last}}"}}]
    assert run(tmp_path, {**ECHO, "tests": tests}).outputs == ["77", "was 77"]


@pytest.mark.parametrize("pattern", ["*.txt", "{a,b}.txt", "[ab].txt", "?.txt"])
def test_a_pattern_of_files_is_a_value_for_each_of_them(tmp_path, pattern):
    """promptfoo has the order of its walk through the folder, evalwright that of the names."""
    files = {"g/a.txt": "A\n", "g/b.txt": "B\n"}
    assert run(tmp_path, {**ECHO, "tests": [{"vars": {"q": f"file://g/{pattern}"}}]}, **files).outputs == ["A", "B"]


def test_a_stored_output_replaces_a_variable_of_its_name(tmp_path):
    tests = [{"vars": {"q": "77"}, "options": {"storeOutputAs": "last"}}, {"vars": {"q": "{{last}}", "last": "own"}}]
    assert run(tmp_path, {**ECHO, "tests": tests}).outputs == ["77", "77"]


def test_an_output_that_is_stored_is_no_variable_of_the_tests_behind_it(tmp_path):
    tests = [{"vars": {"q": "a"}, "options": {"storeOutputAs": "first"}}, {"vars": {"q": "{{first}}b"}}]
    assert run(tmp_path, {**ECHO, "tests": tests}, options={"output": tmp_path / "out.json"}).outputs == ["a", "ab"]
    rows = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    assert [row["vars"] for row in rows] == [{"q": "a"}, {"q": "{{first}}b"}]


def test_variables_that_a_transform_makes_are_in_the_result_file(tmp_path):
    test = {"vars": {"q": "a"}, "options": {"transformVars": "({...vars, q: vars.q + 1, extra: 2})"}}
    run(tmp_path, {**ECHO, "tests": [test]}, options={"output": tmp_path / "out.json"})
    [row] = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    assert row["vars"] == {"q": "a1", "extra": 2}


def test_a_conversation_sees_its_earlier_turns(tmp_path):
    prompt = "{% for turn in _conversation %}{{ turn.input }}>{% endfor %}{{q}}"
    tests = [{"vars": {"q": q}, "metadata": {"conversationId": c}} for q, c in (("a", "1"), ("b", "1"), ("c", "2"))]
    found = run(tmp_path, {"prompts": [prompt], "providers": ["echo"], "tests": tests})
    assert found.outputs == ["a", "a>b", "c"]


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


@pytest.mark.parametrize("relies", ["conversation", "stored"])
def test_a_turn_whose_earlier_ones_are_of_another_session_is_no_guess(tmp_path, relies):
    config = {"prompts": ["{{q}}"], "providers": ["echo"]}
    tests = [{"vars": {"q": "a"}, "options": {"storeOutputAs": "first"}}, {"vars": {"q": "{{first}}b"}}]
    if relies == "conversation":
        config = {**config, "prompts": ["{% for turn in _conversation %}{{turn.output}}{% endfor %}{{q}}"]}
        tests = [{"vars": {"q": "a"}}, {"vars": {"q": "b"}}]
    whole = run(tmp_path, {**config, "tests": tests})
    assert whole.statuses == ["pass", "pass"]
    folder = whole.outcome.run_dir
    for name in ("traces.jsonl", "verdicts.jsonl"):
        (folder / name).write_text((folder / name).read_text().splitlines(keepends=True)[0])
    resumed = Ran(resume(folder))
    assert resumed.statuses == ["pass", "error"]
    assert "goes on from test-0" in resumed.traces["test-1", "echo", 0].error.message


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


def test_prompts_may_be_labels_by_their_texts_or_files(tmp_path):
    config = {**ECHO, "prompts": {"short.txt": "brief", "Say {{q}}": "spoken"}, "tests": [{"vars": {"q": "a"}}]}
    ran = run(tmp_path, config, short__txt="{{q}}!")
    assert sorted(ran.outputs) == ["Say a", "a!"]
    assert {trace.extra["promptfoo"]["prompt"] for trace in ran.traces.values()} == {"Say a", "a!"}


def test_a_prompt_may_be_blank(tmp_path):
    """For providers that take everything from the variables."""
    config = {**ECHO, "prompts": [" ", {"raw": "", "label": "none"}], "tests": [{"vars": {"q": "a"}}]}
    assert sorted(run(tmp_path, config).outputs) == ["", " "]


def test_it_is_converted_to_native_and_judged_alike(tmp_path):
    asserts = [{"type": "contains", "value": "a", "weight": 3, "metric": "m"}, {"type": "contains", "value": "z"}]
    tests = [{"vars": {"q": "ab ${x}"}, "threshold": 0.7, "assert": asserts}, {"vars": {"q": "z"}, "assert": asserts}]
    path = write(tmp_path, {**ECHO, "tests": tests})
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(path), "--out", str(tmp_path / "native")])
    assert ended.value.code == 0
    runs = [run_at(path, tmp_path), run_at(tmp_path / "native" / "eval.yaml", tmp_path)]
    assert runs[0].native == runs[1].native
    assert runs[0].judged() == runs[1].judged()
    assert runs[1].statuses == ["pass", "fail"]


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
    "{% verbatim %}{{ a }}{% endverbatim %} {{ [1, 'b'] | sum }}": "{{ a }} 1b",
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
    assert run(tmp_path, {**ECHO, "prompts": [template], "tests": [{"vars": {"q": "abc"}}]}).statuses == ["error"]


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


def test_the_original_flag_for_a_configuration_names_it(tmp_path, capsys):
    path = write(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}, "assert": [{"type": "equals", "value": "a"}]}]})
    results = tmp_path / "out.json"
    run_at(path, tmp_path, {"output": results})
    for words in (["-c", str(path)], [f"--config={path}"], [str(path), "-c", str(results)]):
        with pytest.raises(SystemExit) as ended:
            main(["validate", *words])
        assert (ended.value.code, "1 case" in capsys.readouterr().out) == (0, True), words


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
    assert [one.name for one in load_suite(write(tmp_path, config)).variants] == ["m"]
    del provider["config"]
    with pytest.raises(InputError, match="the address is missing"):
        load_suite(write(tmp_path, config))


def test_a_judge_is_not_looked_at_where_none_is_needed(tmp_path):
    """promptfoo calls the provider of a test's options for assertions with a judge only: others keep settings there."""
    test = {"vars": {"q": "a"}, "assert": [{"type": "contains", "value": "a"}]}
    config = {**ECHO, "defaultTest": {"options": {"provider": {"isolate": True}}}, "tests": [test]}
    assert run(tmp_path, config).statuses == ["pass"]
    test["assert"] = [{"type": "assert-set", "assert": [{"type": "llm-rubric", "value": "good"}]}]
    with pytest.raises(InputError, match="expected the id of a provider"):
        load_suite(write(tmp_path, config))


def test_the_provider_of_a_test_leaves_the_transform_of_its_column(tmp_path):
    providers = [{"id": "echo", "transform": "output.prompt"}]
    own = {"id": "file://p.py", "transform": "output.nothing"}
    code = "def call_api(prompt, options, context):\n    return {'output': {'prompt': prompt + '!'}}\n"
    config = {**ECHO, "providers": providers, "tests": [{"vars": {"q": "a"}, "provider": own}]}
    assert run(tmp_path, config, p__py=code).outputs == ["a!"]


def test_what_code_would_make_is_lost_in_a_conversion(tmp_path, capsys):
    made = "def make():\n    return [{'vars': {'q': 'b'}}]\n"
    tests = [{"vars": {"q": "a"}, "assert": [{"type": "contains", "value": "a"}]}, "file://made.py:make"]
    path = write(tmp_path, {**ECHO, "outputPath": "a.json", "tests": tests}, made__py=made)
    for words, code, said in (
        ([], 2, "the tests that made.py makes are missing"),
        (["--allow-loss"], 0, "left out: suite  outputPath"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["convert", str(path), "--out", str(tmp_path / "native"), *words])
        assert (ended.value.code, said in " ".join(capsys.readouterr().err.split(" "))) == (code, True), said
    assert sum(1 for _ in load_suite(tmp_path / "native/eval.yaml").cases) == 1
