"""What is wrong in a configuration of promptfoo, or read by nothing: errors and warnings with their places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, write


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path):
    text = (
        "prompts: [file://gone.txt]\n"
        "providers: [echo, 'nosuch:model']\n"
        "derivedMetrics: [{name: m, value: a +}, {name: n}]\n"
        "tests:\n"
        "  - assert: [{type: contians, value: a}]\n"
        "  - assert: nothing\n"
        "  - {vars: {a: 1}, assert: [{value: b}, {type: classifier}]}\n"
        "  - {vars: {a: 1}, assert: [contains]}\n"
        "  - rows.csv\n"
    )
    with pytest.raises(InputError) as refusal:
        load_suite(write(tmp_path, text, **{"rows.csv": "q,__expected\n\na,contains:a,contains:b\nc\n"}))
    said = str(refusal.value)
    for line, part in (
        (1, "there is no file 'gone.txt'"),
        (2, "unknown provider 'nosuch:model'"),
        (3, "expected an expression of sums"),
        (3, "expected a mapping with name and value, found a mapping"),
        (5, "unknown assertion type 'contians'; did you mean \"contains\"?"),
        (6, "expected a list of assertions, found 'nothing'"),
        (7, "an assertion needs a type"),
        (7, "the assertion type 'classifier' is not supported: call the service in a Python file"),
        (8, "expected a mapping with a type, found 'contains'"),
        (9, "rows.csv:3: found 3 cells, expected 2, as the header has; a comma within a cell needs quotation marks"),
        (9, "rows.csv:4: found 1 cell, expected 2"),
    ):
        assert any(f"promptfooconfig.yaml:{line}" in row and part in row for row in said.splitlines()), part


def test_keys_that_nothing_reads_are_warned_of(tmp_path):
    config = {**ECHO, "assert": [], "promts": [], "tests": [{"vars": {"q": "a"}, "asert": []}]}
    said = [warning.message for warning in load_suite(write(tmp_path, config)).warnings]
    assert any("defaultTest.assert" in one for one in said)
    assert sum("did you mean" in one for one in said) == 2


def test_what_aliases_and_references_repeat_is_read(tmp_path):
    config = """
_model: &model echo
common: {checks: &checks [{type: contains, value: a}]}
more: &more {b: 2}
referred: {q: {type: contains, value: a}}
stray: {c: 3}
prompts: ["{{q}}"]
providers: [*model]
tests: [{vars: {<<: *more, q: a}, assert: *checks}, {vars: {q: a}, assert: [{$ref: "#/referred/q"}]}]
"""
    assert [warning.key for warning in load_suite(write(tmp_path, config)).warnings] == ["stray"]


def test_a_key_that_belongs_elsewhere_says_where(tmp_path):
    config = {**ECHO, "maxConcurrency": 2, "tests": [{"vars": {"q": "a"}, "options": {"timeout": 9}}]}
    said = [str(warning) for warning in load_suite(write(tmp_path, config)).warnings]
    assert any("maxConcurrency" in one and "write evaluateOptions.maxConcurrency" in one for one in said)
    assert any("tests[0].options.timeout" in one and "write evaluateOptions.timeoutMs" in one for one in said)


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        (["exec:./prompts.sh {{q}}"], "made by a program"),
        ([{"raw": "exec:prompts", "label": "a"}], "made by a program"),
        ({"planner": {"raw": "Plan {{q}}"}}, "write a list of prompts"),
        ([""], "the prompt is empty"),
    ],
)
def test_what_is_no_prompt_is_not_sent_as_a_text(tmp_path, prompts, said):
    with pytest.raises(InputError, match=said) as refusal:
        load_suite(write(tmp_path, {**ECHO, "prompts": prompts, "tests": [{"vars": {"q": "a"}}]}))
    assert str(refusal.value).count("promptfooconfig.yaml:") == 1


def test_a_test_that_says_nothing_is_a_mistake(tmp_path):
    """Rows of a table in YAML would pass: no key of theirs is one of a test."""
    rows = "- {q: a, __expected: b}\n- description: of nothing\n- {vars: {}}\n"
    path = write(tmp_path, {**ECHO, "tests": "rows.yaml"}, rows__yaml=rows)
    with pytest.raises(InputError, match="found q, __expected") as refusal:
        load_suite(path)
    assert "found description" in str(refusal.value)
    said = [row for row in str(refusal.value).splitlines() if "rows.yaml:" in row]
    assert ["a test needs" in row for row in said] == [True, False, False, True]  # between: keys that nothing reads


def test_assertions_among_the_variables_are_warned_of(tmp_path):
    tests = [{"vars": {"q": "a", "assert": [{"type": "contains", "value": "z"}]}}, {"vars": {"assert": "b"}}]
    warnings = [str(warning) for warning in load_suite(write(tmp_path, {**ECHO, "tests": tests})).warnings]
    assert [warning.count("judges nothing") for warning in warnings if ".vars.assert" in warning] == [1]


def test_a_mistake_in_the_defaults_of_tests_is_told_once(tmp_path):
    default = {
        "provider": {"id": "promptfoo:simulated-user"},
        "assertScoringFunction": "file://gone.py:score",
        "options": {"provider": {"config": {"temperature": 0}}, "rubricPrompt": "file://gone.txt"},
        "assert": [{"type": "llm-rubric", "value": "good"}],
    }
    config = {**ECHO, "defaultTest": default, "tests": [{"vars": {"q": q}} for q in "abc"]}
    with pytest.raises(InputError, match=r"options.provider  expected the id of a provider") as refusal:
        load_suite(write(tmp_path, config))
    said = [row for row in str(refusal.value).splitlines() if "promptfooconfig.yaml:" in row]
    assert ["defaultTest." in row for row in said] == [True] * 4


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("openai", "'openai' names no model: expected openai:MODEL"),
        ("openai:chat", "'openai:chat' names no model: expected openai:chat:MODEL"),
        ("anthropic:messages:", "'anthropic:messages:' names no model: expected anthropic:messages:MODEL"),
        ("anthropic:claude-code", "is not supported: in an eval.yaml, the target coding_agent calls Claude Code"),
        ("openai:completion:gpt-5", "is not supported: models are called with messages here: use openai:chat:MODEL"),
        ("anthropic:completion:claude-2", "use anthropic:messages:MODEL"),
        ("azure:moderation", "is not supported: use openai:moderation"),
        ("file://agent.go", "is not a file of a provider: expected one of .js"),
        ("openai:codex:gpt-5", "is not supported: in an eval.yaml, the target coding_agent calls Codex"),
        ("agents/agent.py", "unknown provider 'agents/agent.py': expected file://agents/agent.py"),
        ("cohere:command-r", "unknown provider 'cohere:command-r'.*litellm:PROVIDER/MODEL"),
    ],
)
def test_a_provider_that_is_no_model_says_what_would_be(tmp_path, named, said):
    with pytest.raises(InputError, match=said):
        load_suite(write(tmp_path, {**ECHO, "providers": [named], "tests": [{"vars": {"q": "a"}}]}))


def test_keys_of_a_prompt_that_nothing_reads_are_warned_of(tmp_path):
    """Without its text, the id of a prompt is what is sent."""
    config = {**ECHO, "prompts": [{"id": "polite", "file": "file://polite.txt"}]}
    [warning] = load_suite(write(tmp_path, config)).warnings[:1]
    assert "prompts[0].file" in str(warning)
    assert "write raw: file://polite.txt" in str(warning)


def test_a_red_team_beside_tests_is_left_out(tmp_path):
    config = {**ECHO, "redteam": {"plugins": ["pii"]}}
    with pytest.raises(InputError, match=r"'redteam' is of promptfoo's red team.* expected the key tests"):
        load_suite(write(tmp_path, config))
    suite = load_suite(write(tmp_path, {**config, "tests": [{"vars": {"q": "a"}}]}))
    assert len(suite.cases) == 1
    assert [str(warning) for warning in suite.warnings if "red team is not run" in str(warning)]


@pytest.mark.parametrize(
    ("assertion", "warning"),
    [
        ({"type": "contains-any", "value": ["a", {"Note": "b"}]}, "expected texts, found a mapping"),
        ({"type": "g-eval", "value": ["", "a"]}, "every criterion must be a text"),
        ({"type": "llm-rubric", "value": 5}, "expected text or a mapping, found 5"),
    ],
)
def test_a_value_that_is_no_text_is_warned_of(tmp_path, assertion, warning):
    tests = [{"vars": {"q": "a"}, "assert": [assertion]}]
    said = [str(message) for message in load_suite(write(tmp_path, {**ECHO, "tests": tests})).warnings]
    assert [warning in message for message in said if "assert[0].value" in message] == [True]


def test_a_prompt_that_is_taken_for_a_file_says_how_to_write_it(tmp_path):
    with pytest.raises(InputError, match="taken for a file name") as refusal:
        load_suite(write(tmp_path, {**ECHO, "prompts": ["{{a}} / {{b}}"]}))
    assert "'{{a}} / {{b}}'" in str(refusal.value)


def test_settings_of_an_http_service_that_nothing_reads_are_warned_of(tmp_path):
    service = {
        "url": "http://127.0.0.1:9",
        "body": {"q": "{{prompt}}"},
        "sessionParser": "data.id",
        "transform": "json.a",
    }
    config = {**ECHO, "providers": [{"id": "http", "config": service}], "tests": [{"vars": {"q": "x"}}]}
    said = [str(warning) for warning in load_suite(write(tmp_path, config)).warnings]
    assert [one.partition("  ")[2] for one in said if "nothing reads" in one] == [
        'providers[0].config.sessionParser  nothing reads this key; did you mean "responseParser"?',
        'providers[0].config.transform  nothing reads this key; did you mean "transformRequest"?',
    ]


def test_templates_in_the_code_of_a_request_are_warned_of(tmp_path):
    requests = ['{"p": "{{prompt}}"}', "({p: {q: {r: prompt}}})", "file://{{name}}.js", "`${vars.x}`"]
    web = {"url": "http://127.0.0.1:9", "method": "POST", "body": {"k": 1}}
    providers = [{"id": "http", "config": {**web, "transformRequest": code}} for code in requests]
    said = [str(warning) for warning in load_suite(write(tmp_path, {**ECHO, "providers": providers})).warnings]
    assert [one.partition("  ")[2] for one in said if "transformRequest" in one] == [
        "providers[0].config.transformRequest  is JavaScript, in which no templates are filled in: "
        "write prompt for {{prompt}}, vars.x for {{x}}"
    ]


def test_a_request_is_made_by_code_and_not_by_a_mapping(tmp_path):
    web = {"url": "http://127.0.0.1:9", "transformRequest": {"p": "{{prompt}}"}}
    with pytest.raises(InputError, match=r"transformRequest +expected code or the name of a file"):
        load_suite(write(tmp_path, {**ECHO, "providers": [{"id": "http", "config": web}]}))


def test_a_pattern_for_more_files_than_anybody_has_is_refused(tmp_path):
    with pytest.raises(InputError, match="stands for 1,073,741,824 patterns, expected at most 1,000"):
        load_suite(write(tmp_path, {**ECHO, "tests": "{a,b}" * 30}))


def test_columns_of_the_same_name_are_warned_of(tmp_path):
    """Of two columns `__expected`, promptfoo judges by the last."""
    path = write(
        tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": "q,__expected, __expected \na,contains:z,contains:a\n"}
    )
    suite = load_suite(path)
    assert [
        "t.csv:1: 2 columns are named '__expected': only the last is read" in str(warning) for warning in suite.warnings
    ] == [True]
    [case] = suite.cases
    assert [spec.config["assertion"]["value"] for spec in case.evaluators or ()] == ["a"]


def test_mistakes_in_files_are_told_with_their_names_and_lines(tmp_path, monkeypatch):
    wrong = {"assert": [{"type": "containz", "value": "a"}]}
    rows = f'{{"vars": {{"q": "a"}}, "asert": []}}\n\n{json.dumps(wrong)}\n'
    files = {"t/b.jsonl": rows, "t/a.yaml": f"# a comment\n- {json.dumps(wrong)}\n", "d.yaml": "assert: nothing\n"}
    write(tmp_path / "own", {**ECHO, "defaultTest": "file://d.yaml", "tests": ["t/a.yaml", "t/b.jsonl"]}, **files)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refusal:
        load_suite(Path("own/promptfooconfig.yaml"))
    rows = [row.split()[:2] for row in str(refusal.value).splitlines() if row.startswith("own/")]
    assert rows == [
        ["own/d.yaml:1", "assert"],
        ["own/t/a.yaml:2", "[0].assert[0].type"],
        ["own/t/b.jsonl:1", "asert"],
        ["own/t/b.jsonl:3", "assert[0].type"],
    ]


def test_mistakes_in_a_table_are_reported_with_their_lines(tmp_path):
    table = 'q,__expected,__expected1\n"two\nlines",contains:a,is-sql\nb,classifier:a,contains:\n'
    with pytest.raises(InputError) as refused:
        load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": table}))
    assert [(Path(problem.file).name, problem.line, problem.key) for problem in refused.value.problems] == [
        ("t.csv", 2, "assert[1].type"),
        ("t.csv", 4, "assert[0].type"),
    ]


@pytest.mark.parametrize("number", ["nan", "1_000", "inf", "1e999", "x"])
def test_thresholds_in_a_table_are_decimal_numbers(tmp_path, number):
    table = f"q,__expected,__threshold,__config:__expected:threshold\na,latency:{number},{number},{number}\n"
    with pytest.raises(InputError) as refused:
        load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": table}))
    assert str(refused.value).count(f"expected a number, found {number!r}") == 3


def test_a_comparison_in_a_table_is_named_as_the_text_that_it_is(tmp_path):
    suite = load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": "q,__expected\na,max-score\n"}))
    assert any("'max-score' is no assertion in a CSV file" in str(warning) for warning in suite.warnings)


def test_cells_may_be_separated_by_another_character(tmp_path, monkeypatch):
    table = {"t.csv": '\ufeffq;__expected\r\n"a;b";"contains: a;b"\r\nc,d;equals: c,d\r\n'}
    monkeypatch.setenv("PROMPTFOO_CSV_DELIMITER", ";")
    suite = load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **table))
    assert [case.input for case in suite.cases] == [{"q": "a;b"}, {"q": "c,d"}]
    assert [spec.config["assertion"]["value"] for case in suite.cases for spec in case.evaluators] == ["a;b", "c,d"]
    monkeypatch.setenv("PROMPTFOO_CSV_DELIMITER", "\\t")
    with pytest.raises(InputError, match="PROMPTFOO_CSV_DELIMITER: expected one character"):
        load_suite(tmp_path / "promptfooconfig.yaml")


def test_a_table_with_another_separator_is_named(tmp_path):
    suite = load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": "q;__expected\na;b\n"}))
    warned = "t.csv:1: found one column, 'q;__expected': set PROMPTFOO_CSV_DELIMITER if ';' is between the cells"
    assert any(warned in str(warning) for warning in suite.warnings)


def test_references_may_lead_to_places_in_other_files(tmp_path):
    config = {
        **ECHO,
        "defaultTest": {"$ref": "common.yaml#/default"},
        "tests": [{"$ref": "common.yaml#/tests/0"}, {"vars": {"q": "b", "r": {"$ref": "common.yaml#/word"}}}],
    }
    common = (
        "default: {assert: [{$ref: '#/has'}]}\n"
        "has: {type: contains, value: {$ref: 'common.yaml#/word'}}\n"
        "word: a\n"
        "tests: [{vars: {q: a}}]\n"
    )
    suite = load_suite(write(tmp_path, config, common__yaml=common))
    assert [case.input for case in suite.cases] == [{"q": "a"}, {"q": "b", "r": "a"}]
    assert [spec.config["assertion"] for case in suite.cases for spec in case.evaluators] == [
        {"type": "contains", "value": "a"}
    ] * 2


def test_keys_beside_a_reference_take_the_place_of_what_it_refers_to(tmp_path):
    templates = {"has": {"type": "contains", "value": "a", "weight": 2}, "word": "b"}
    own = {"value": {"$ref": "#/assertionTemplates/word"}, "metric": "m"}
    tests = [{"vars": {"q": {"$ref": "#/assertionTemplates/word", "x": 1}}}]
    asserts = [{"$ref": "#/assertionTemplates/has", **own}, {"$ref": "#/assertionTemplates/has"}]
    config = {**ECHO, "assertionTemplates": templates, "tests": tests, "defaultTest": {"assert": asserts}}
    suite = load_suite(write(tmp_path, config))
    assert [spec.config["assertion"] for spec in suite.cases[0].evaluators] == [
        {"type": "contains", "value": "b", "weight": 2, "metric": "m"}, templates["has"],
    ]  # fmt: skip
    assert suite.cases[0].input == {"q": "b"}
    assert [str(warning) for warning in suite.warnings if "$ref: x: not read beside it" in str(warning)]


def test_mappings_beside_a_reference_are_merged_with_those_it_refers_to(tmp_path):
    options = {"base": {"vars": {"q": "a", "o": {"x": 1, "y": [1]}}}, "other": {"x": 2, "w": 4}}
    own = {"y": [2], "z": 3}, {"$ref": "#/commandLineOptions/other"}
    tests = [{"$ref": "#/commandLineOptions/base", "vars": {"o": o, "n": 5}} for o in own]
    suite = load_suite(write(tmp_path, {**ECHO, "commandLineOptions": options, "tests": tests}))
    assert [case.input for case in suite.cases] == [
        {"q": "a", "o": {"x": 1, "y": [2], "z": 3}, "n": 5},
        {"q": "a", "o": {"x": 1, "y": [1], "w": 4}, "n": 5},
    ]


def test_references_that_lead_nowhere_or_to_themselves_are_reported(tmp_path):
    tests = [{"$ref": one} for one in ("gone.yaml", "common.yaml#/gone", "common.yaml#/a", "#/gone")]
    with pytest.raises(InputError) as refused:
        load_suite(write(tmp_path, {**ECHO, "tests": tests}, common__yaml="a: {vars: {$ref: '#/a'}}\n"))
    messages = [
        problem.message
        for problem in refused.value.problems
        if "there is no" in problem.message or "itself" in problem.message
    ]
    assert [message.partition(";")[0] for message in messages] == [
        "there is no file 'gone.yaml'",
        "$ref: there is no 'common.yaml#/gone' in that file",
        "$ref: '#/a' leads to itself",
        "$ref: there is no '#/gone' in this file",
    ]


def test_an_unknown_category_of_factuality_is_named(tmp_path):
    test = {"vars": {"q": "a"}, "options": {"factuality": {"agree": 1, "agrees": 0}}}
    path = write(tmp_path, {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test]})
    warnings = {warning.key: warning.message for warning in load_suite(path).warnings}
    assert warnings["tests[0].options.factuality.agrees"] == 'nothing reads this key; did you mean "agree"?'


@pytest.mark.parametrize(
    "provider",
    [{"env": "SHOP_KEY=hush-hush"}, {"config": {"apiKey": 5050}}, {"config": {"headers": "X-Key: hush-hush"}}],
)
def test_what_may_be_a_secret_is_in_no_message(tmp_path, provider):
    config = {"prompts": ["{{q}}"], "providers": [{"id": "openai:gpt-x", **provider}], "tests": [{"vars": {"q": "a"}}]}
    with pytest.raises(InputError, match=r"found a (text|number)") as refusal:
        load_suite(write(tmp_path, config))
    assert "hush-hush" not in str(refusal.value)
    assert "5050" not in str(refusal.value)


def test_a_wrong_value_in_a_mapping_is_named(tmp_path):
    test = {"vars": {"q": "a"}, "options": {"factuality": {"agree": 1, "superset": "high"}}}
    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test], "nunjucksFilters": {"up": 5}}
    with pytest.raises(InputError) as refusal:
        load_suite(write(tmp_path, config))
    assert {problem.key: problem.message for problem in refusal.value.problems} == {
        "tests[0].options.factuality.superset": "superset: expected a number, found 'high'",
        "nunjucksFilters.up": "up: expected the name of a file, found 5",
    }


def test_files_of_variables_in_the_default_test_are_reported_as_not_read(tmp_path):
    config = {**ECHO, "defaultTest": {"vars": "file://v.yaml"}, "tests": [{"vars": {"q": "a"}}]}
    suite = load_suite(write(tmp_path, config, v__yaml="p: b\n"))
    [warning] = [warning for warning in suite.warnings if warning.key == "defaultTest.vars"]
    assert "nothing reads files of variables in defaultTest" in str(warning)
