"""The rules of promptfoo's assertions."""

from __future__ import annotations

import json

import pytest

from evalwright.errors import InputError
from formats.promptfoo.runs import asserted, run

TEXT = "The Quick brown fox, 42"


@pytest.mark.parametrize(
    ("output", "assertions", "statuses"),
    [
        (
            TEXT,
            [("contains", "Quick"), ("contains", "quick"), ("icontains", "QUICK"), ("contains", 42),
             ("not-contains", "fox"), ("starts-with", "The"), ("contains-any", "x, fox"), ("contains-all", ["The", 42]),
             ("icontains-all", "the,FOX"), ("word-count", 5), ("word-count", {"max": 3}), ("contains", "")],
            "pass fail pass pass fail pass pass pass pass pass fail error",
        ),
        (
            'one, two "three"',
            [("contains-any", "x,,y"), ("not-icontains-any", "x, ,"), ("contains-all", 'two, "one, two",'),
             ("contains-any", '" one"'), ("contains-all", r'"\"three\"", """three"""'), ("contains-any", '""'),
             ("contains-any", '"one'), ("not-contains-any", '"x" y'), ("contains-any", ",")],
            "fail pass pass fail pass pass error error error",
        ),
        (
            "a\nTotal: $5 in 2024",
            [("regex", r"\d{4}"), ("regex", "^Total"), ("regex", r"a$"), ("regex", r"\$\d"), ("regex", "(?<y>20)24"),
             ("not-regex", "refund"), ("regex", "("), ("not-regex", "("), ("regex", "[^]T"), ("regex", 2024)],
            "pass fail fail pass pass pass fail fail pass error",
        ),
        (
            '{"n": 3, "when": "x"}',
            [("is-json", None), ("is-json", {"required": ["n"]}), ("is-json", "required: [zip]"), ("not-is-json", None),
             ("contains-json", None), ("equals", {"when": "x", "n": 3.0}), ("equals", {"n": 3}),
             ("is-json", {"properties": {"when": {"format": "date"}}}), ("is-json", {"type": 7})],
            "pass pass fail fail pass pass fail fail error",
        ),
        ("so: {a: 1} end", [("is-json", None), ("contains-json", {"required": ["a"]})], "fail pass"),
        ('{"a": 1e999, "b": 2} // {"c": "}"}',
         [("contains-json", {"properties": {"a": {"type": "number"}}}), ("contains-json", {"required": ["b"]}),
          ("contains-json", {"required": ["c"]})], "fail pass fail"),
        ('{"a": 1 // one\n}', [("contains-json", {"properties": {"a": {"type": "integer"}}})], "pass"),
        ("[1]", [("is-json", False), ("is-json", True)], "pass error"),
        ("[1]", [("is-json", None), ("contains-json", None)], "pass fail"),
        ("5", [("equals", 5), ("equals", "5"), ("equals", 5.0), ("not-equals", "6")], "pass pass pass pass"),
        ("kitten", [("levenshtein", "sitting"), ("not-levenshtein", "sitting"), ("levenshtein", "zebras!")],
         "pass fail fail"),
        ("5 words",
         [("word-count", 1.5), ("word-count", "2"), ("word-count", {"min": "2"}),
          ("word-count", {"min": None, "max": 1}), ("word-count", {}), ("not-word-count", {"least": 1}),
          ("word-count", {"min": 3, "max": 1}), ("word-count", True), ("starts-with", "5"), ("starts-with", 5)],
         "fail pass pass fail error error error error pass error"),
        ("<r><a>1</a></r>", [("is-xml", "r.a"), ("is-xml", "r.b"), ("contains-html", None)], "pass fail pass"),
        ("<r><a>1</a><a><b/></a></r>", [("is-xml", "r.a"), ("is-xml", "r.a.b"), ("is-xml", "r.a,")], "pass fail fail"),
        ("<r n='1'>t<a/></r>", [("is-xml", "r.@_n, r.#text"), ("is-xml", {"requiredElements": "r"})], "pass error"),
        ("<x:r/>", [("is-xml", None), ("contains-xml", "x:r")], "fail pass"),
        ("so <why>R&D < 3</why> and <is><b>2</b></is>",
         [("contains-xml", "why, is.b"), ("contains-xml", "b"), ("is-xml", None)], "pass fail fail"),
        ("<a><b>1</b> <c>2</a> <d/>", [("contains-xml", "b,d"), ("contains-xml", "a"), ("contains-xml", "c")],
         "pass fail fail"),
        ("<!-- <a>1</a> --> <![CDATA[<a/>]]>", [("contains-xml", None), ("not-contains-xml", "a")], "fail pass"),
        ("<a><c/></a> or <a><d/></a>", [("contains-xml", "a"), ("contains-xml", "a.c")], "pass fail"),
        ("<p>one", [("is-html", None), ("contains-html", None)], "pass pass"),
        ("Here it is:\n<html><body>one</body></html>", [("is-html", None), ("not-is-html", None)], "fail pass"),
        ("<html><body>one</body></html> two", [("is-html", None)], "pass"),
        ("<p>one</p><body>two", [("is-html", None)], "fail"),
        ("<tr><td>one</td></tr>", [("is-html", None)], "fail"),
        ("<table><tr><td>one</td></tr></table>", [("is-html", None)], "pass"),
        ("a\ufeffb c\x1fd\x1fe", [("word-count", 3)], "pass"),
        ('{"a":1}, b', [("contains-all", [["b"]]), ("contains-any", [{"a": 1}])], "pass fail"),
        ("<p>one</p> and <b>two</b>", [("is-html", None), ("not-is-html", None)], "fail pass"),
        ("<p>one<div>two</div> three", [("is-html", None)], "fail"),
        ("<html><body>one <b>two</b></body></html>", [("is-html", None)], "pass"),
        ("<blink>one</blink>", [("is-html", None), ("contains-html", None)], "fail pass"),
        ("<my-tag/>", [("is-html", None)], "pass"),
        ("<svg/> one", [("is-html", None)], "fail"),
        ("<a>one <a>two</a> three", [("is-html", None)], "fail"),
        ("<p>one <b>two</p> three</b></p>", [("is-html", None)], "pass"),
        ("a &amp; b <!-- c -->", [("contains-html", None), ("is-html", None)], "pass fail"),
        ("a &amp; b", [("contains-html", None)], "fail"),
        ("I'm sorry, but no.", [("is-refusal", None), ("not-is-refusal", None)], "pass fail"),
        ("\nSorry: it can’t be.", [("is-refusal", None)], "pass"),
        ("It works. I'm sorry that I can't wait, and I won't.", [("is-refusal", None)], "fail"),
        ("Well, I can’t provide that.", [("is-refusal", None)], "pass"),
        ("As a language model, I am sure.", [("is-refusal", None)], "pass"),
        ("I'm unable to see it.", [("is-refusal", None)], "fail"),
    ],
)  # fmt: skip
def test_rules_of_texts(tmp_path, output, assertions, statuses):
    given = [{"type": kind, **({} if value is None else {"value": value})} for kind, value in assertions]
    result = asserted(tmp_path, output, *given)
    assert [row.status for row in result.rows] == statuses.split()
    assert [row.evaluator for row in result.rows] == [f"{kind}#{i}" for i, (kind, _) in enumerate(assertions)]


@pytest.mark.parametrize("output", ["", {"a": "I am sorry"}])
def test_what_is_no_text_is_a_refusal_with_score_0(tmp_path, output):
    provider = f"def call_api(prompt, options, context):\n    return {{'output': {output!r}}}\n"
    kinds = [{"type": "is-refusal"}, {"type": "not-is-refusal"}]
    result = run(tmp_path, {"providers": ["file://p.py"], "tests": [{"assert": kinds}]}, **{"p.py": provider})
    assert [(row.passed, row.score) for row in result.rows] == [(True, 0.0), (False, 0.0)]


@pytest.mark.parametrize("kind", ["python", "javascript"])
def test_code_in_a_file_judges_what_a_transform_made(tmp_path, kind):
    files = {
        "c.py": "def get_assert(output, context):\n    return output == 'x'\n",
        "c.js": "module.exports = (output) => output === 'x';\n",
    }
    value = f"file://c.{'py' if kind == 'python' else 'js'}"
    result = asserted(tmp_path, {"a": "x"}, {"type": kind, "value": value, "transform": "output.a"}, **files)
    assert result.judged() == [f"{kind}#0 pass"]


def test_an_assertion_that_cannot_judge_makes_the_cell_an_error(tmp_path):
    result = asserted(tmp_path, "x", {"type": "contains", "value": "x"}, {"type": "latency"}, {"type": "cost"})
    assert [row.status for row in result.rows] == ["pass", "error", "error"]
    assert (result.verdict.status, result.outcome.exit_code) == ("error", 3)


def test_a_given_output_costs_nothing(tmp_path):
    """No provider is called for it."""
    limits = [{"type": "cost", "threshold": 0}, {"type": "latency", "threshold": 60_000}]
    assert asserted(tmp_path, "x", *limits).judged() == ["cost#0 pass", "latency#1 pass"]


def test_transforms_of_assertions_get_the_prompt_as_a_mapping(tmp_path):
    check = {"type": "equals", "value": "ask a", "transform": "context.prompt.label"}
    result = run(
        tmp_path, {"prompts": ["ask {{q}}"], "providers": ["echo"], "tests": [{"vars": {"q": "a"}, "assert": [check]}]}
    )
    assert result.judged() == ["equals#0 pass"]


def test_latency_is_what_a_provider_states_before_what_was_measured(tmp_path):
    provider = "def call_api(prompt, options, context):\n    return {'output': 'x', 'latencyMs': 90_000}\n"
    limits = [{"type": kind, "threshold": 60_000} for kind in ("latency", "not-latency")]
    result = run(tmp_path, {"providers": ["file://p.py"], "tests": [{"assert": limits}]}, **{"p.py": provider})
    assert result.judged() == ["latency#0 fail", "not-latency#1 pass"]


@pytest.mark.parametrize(
    ("output", "value", "scores"),
    [
        ("The cat sat on the mat", "A cat sat on the mat today", [0.7692, 0.6432, 0.6364, 0.0]),
        (
            'He said, "hi there." Then (quietly) left...',
            'He said "hi there", then quietly left.',
            [0.75, 0.0, 0.1818, 1.0],
        ),
        ("I can't pay $1,000 at 3:30 p.m.", "I cannot pay $1,000 at 3:30 p.m.", [0.7778, 0.6435, 0.6818, 1.0]),
        ("", "a", [0.0, 0.0, 0.0, 1.0]),
        ("...", "…… ...", [0.6667, 0.3679, 0.0, 1.0]),
        ("", "", [0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_similarity_of_texts_is_that_of_promptfoo(tmp_path, output, value, scores):
    given = [{"type": "rouge-n", "value": value}, {"type": "bleu", "value": [value, "the cat sat"]}]
    given += [{"type": "gleu", "value": value}, {"type": "levenshtein", "value": value, "threshold": 8}]
    result = asserted(tmp_path, output, *given, {"type": "rouge-n", "value": [value]}, {"type": "bleu", "value": 5})
    assert [row.status for row in result.rows][4:] == ["error", "error"]
    assert [round(row.score, 4) for row in result.rows[:4]] == scores


def test_a_score_reaches_its_threshold_where_promptfoos_does(tmp_path):
    """2 / 20 as promptfoo computes it is below 0.1."""
    output = '{"echo":"Yo ","topic":1000}'
    rouge = [{"type": kind, "value": "the cat, the dog.", "threshold": 0.1} for kind in ("rouge-n", "not-rouge-n")]
    result = asserted(tmp_path, output, *rouge)
    assert [row.status for row in result.rows] == ["fail", "pass"]


def test_values_come_from_files(tmp_path):
    result = asserted(
        tmp_path, '{"a": 1}',
        {"type": "equals", "value": "file://e.json"}, {"type": "contains", "value": "file://t.txt"},
        **{"e.json": '{"a": 1}', "t.txt": '"a"\n'},
    )  # fmt: skip
    assert result.judged() == ["equals#0 pass", "contains#1 pass"]


def test_elements_of_lists_come_from_files(tmp_path):
    result = asserted(
        tmp_path, "so {{q}} it is, asked",
        {"type": "contains-all", "value": ["file://t.txt", "file://w.json", "{{q}}"]},
        **{"t.txt": " so {{q}}\n", "w.json": '"it"'},
    )  # fmt: skip
    assert result.judged() == ["contains-all#0 pass"]


@pytest.mark.parametrize(
    ("element", "message"), [("file://none.txt", "there is no file"), ("file://c.py", "cannot be code")]
)
def test_an_element_without_readable_file_is_refused(tmp_path, element, message):
    with pytest.raises(InputError, match=message):
        asserted(tmp_path, "x", {"type": "contains-any", "value": ["x", element]}, **{"c.py": ""})


@pytest.mark.parametrize("kind", ["is-json", "not-is-json", "contains-json"])
def test_an_empty_list_is_no_schema(tmp_path, kind):
    assert asserted(tmp_path, '{"a": 1}', {"type": kind, "value": []}).statuses == ["error"]


def test_equals_without_a_value_compares_nothing(tmp_path):
    assert asserted(tmp_path, "null", {"type": "equals"}).statuses == ["error"]


SAYING = """
def call_api(prompt, options, context):
    return {"output": "x", **context["vars"]["said"]}
"""


@pytest.mark.parametrize(
    ("said", "assertions", "statuses"),
    [
        (
            {"finishReason": "stop"},
            [("finish-reason", "STOP"), ("finish-reason", "length"), ("not-finish-reason", "length"),
             ("finish-reason", None), ("guardrails", None), ("not-guardrails", None)],
            "pass fail pass error pass fail",
        ),
        ({}, [("finish-reason", "stop"), ("not-finish-reason", "stop"), ("perplexity", None)], "fail pass error"),
        (
            {"guardrails": {"flagged": True, "flaggedInput": True}},
            [("guardrails", None), ("not-guardrails", None)],
            "fail pass",
        ),
        ({"metadata": {"redteamHistory": [{}, {"guardrails": {"flagged": True}}]}}, [("guardrails", None)], "fail"),
        (
            {"metadata": {"skillCalls": [{"name": "web"}, {"name": "pdf"}, {"name": "web"},
                                         {"name": "x", "is_error": True}]}},
            [("skill-used", "web"), ("skill-used", ["web", " pdf "]), ("skill-used", "x"), ("not-skill-used", "x"),
             ("not-skill-used", ["x", "web"]), ("skill-used", {"name": "web", "min": 2}),
             ("skill-used", {"name": "web", "max": 1}), ("skill-used", {"pattern": "W?b*"}),
             ("skill-used", {"pattern": "w?"}), ("not-skill-used", {"pattern": "q*"}),
             ("not-skill-used", {"name": "x", "min": 1}), ("skill-used", {"min": 1}),
             ("skill-used", {"name": "x", "max": 0}), ("skill-used", {"name": "web", "min": 2, "max": 1}),
             ("skill-used", [])],
            "pass pass fail pass fail pass fail pass fail pass error error pass error error",
        ),
    ],
)  # fmt: skip
def test_what_a_provider_says_of_its_output(tmp_path, said, assertions, statuses):
    given = [{"type": kind, **({} if value is None else {"value": value})} for kind, value in assertions]
    config = {"providers": ["python:p.py"], "tests": [{"vars": {"said": said}, "assert": given}]}
    result = run(tmp_path, config, **{"p.py": SAYING})
    assert [row.status for row in result.rows] == statuses.split()


@pytest.mark.parametrize(("kind", "status"), [("guardrails", "pass"), ("contains", "fail")])
def test_a_guardrail_that_stops_a_red_team_passes_the_test(tmp_path, kind, status):
    blocked = {"type": kind, "value": "x", "config": {"purpose": "redteam"}}
    given = [blocked, {"type": "contains", "value": "zz"}]
    said = {"said": {"guardrails": {"flagged": True}}}
    tests = [{"vars": said, "assert": given}, {"vars": said, "assert": [{"type": "assert-set", "assert": given}]}]
    result = run(tmp_path, {"providers": ["python:p.py"], "tests": tests}, **{"p.py": SAYING})
    assert result.statuses == [status, status]


@pytest.mark.parametrize(
    ("numbers", "scores"),
    [([-0.1, -0.2], [1.0, 0.0, 0.4626, 0.4626, 0.5374]), ([-9999, 0], [0.0, 1.0, 0.0, 0.0, 1.0])],
)
def test_perplexity_is_that_of_the_probabilities_of_tokens(tmp_path, numbers, scores):
    given = [{"type": kind, "threshold": 1.5} for kind in ("perplexity", "not-perplexity")]
    given += [{"type": "perplexity-score"}, {"type": "perplexity-score", "threshold": 0.3}]
    given += [{"type": "not-perplexity-score", "threshold": 0.3}]
    given += [{"type": "javascript", "value": f"context.logProbs[0] === {numbers[0]}"}]
    config = {"providers": ["python:p.py"], "tests": [{"vars": {"said": {"logProbs": numbers}}, "assert": given}]}
    result = run(tmp_path, config, **{"p.py": SAYING})
    assert [round(row.score, 4) for row in result.rows] == [*scores, 1.0]


@pytest.mark.parametrize(
    ("output", "called"),
    [
        ({"tool_calls": [{"function": {"name": "a"}}, {"name": "b"}, 5]}, 2),
        ([{"function": {"name": "a"}}, {"name": "b"}, {"type": "tool_use", "name": "a"}], 2),
        ([{"functionCall": {"name": "a"}}, [{"name": "b"}]], 1),
        ({"toolCall": {"functionCalls": [{"name": "a"}, {"name": "b"}]}}, 2),
        ({"type": "tool_use", "name": "a"}, 1),
        ({"type": "function_call", "name": "a"}, 1),
        ({"name": "a"}, 0),
        ({"function": {"name": "a"}}, 0),
        ('First:\n{"tool_calls": [{"name": "a"}]}\n{"name": "b"}', 1),
        ('First:\n [{"name": "a"}] \r\n{"type": "tool_use", "name": "b"}', 2),
        ('It called {"type": "tool_use", "name": "a"}.\nThen {"name": "b"}', 0),
        ('First:\n[\n  {"name": "a"},\n  {"name": "b"}\n]\nDone.', 2),
        ('- First:\n\n  {"type": "tool_use",\n   "name": "a"}\n```\n[{"name": "b"}]\n```', 1),
        ('{calls:\n[{"name": "a"}]\n["b\n[{"name": "b"}]\n}', 2),
    ],
)
def test_tools_are_called_in_the_forms_of_several_companies(tmp_path, output, called):
    f1 = {0: 0, 1: 2 / 3, 2: 1}[called]
    settings = {"value": ["a", " b", ""], "threshold": 1}
    result = asserted(tmp_path, output, {"type": "tool-call-f1", **settings}, {"type": "not-tool-call-f1", **settings})
    assert [row.score for row in result.rows] == [pytest.approx(f1)] * 2  # the score is not inverted
    assert [row.status for row in result.rows] == (["pass", "fail"] if f1 == 1 else ["fail", "pass"])


def called(name, arguments):
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


WEATHER = {
    "name": "w",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ([called("w", '{"city": "Oslo"}')], None),
        (
            {"role": "assistant", "tool_calls": [called("w", '{"city": "Oslo"}'), called("w", '{"city": 5}')]},
            "not valid",
        ),
        ([called("w", "{}")], "not valid"),
        ([called("zip", "{}")], "does not offer"),
        ([called("w", "nope")], "cannot be checked"),
        ([called("w", '{"city": "Oslo"}'), 5], "no list of calls"),
        ([], "no list of calls"),
        ("text", "no list of calls"),
        ("MCP Tool Result (w): ok", None),
        ("MCP Tool Error (w): bad", "failed"),
    ],
)
def test_calls_of_tools_are_those_that_the_provider_offers(tmp_path, output, reason):
    kinds = [{"type": "assert-set", "assert": [{"type": "is-valid-openai-tools-call"}]}]
    kinds += [{"type": "not-is-valid-openai-tools-call"}]  # as in promptfoo, it is the same
    config = {
        "providers": [{"id": "python:p.py", "config": {"tools": "file://tools.json"}}],
        "tests": [{"vars": {"said": {"output": output}, "name": "w"}, "assert": kinds}],
    }
    tools = json.dumps([{"type": "function", "function": {**WEATHER, "name": "{{name}}"}}])  # filled in
    result = run(tmp_path, config, **{"p.py": SAYING, "tools.json": tools})
    assert [row.status for row in result.rows] == ["fail" if reason else "pass"] * 2
    assert reason is None or reason in result.rows[1].reason


def test_a_provider_without_tools_has_no_valid_calls(tmp_path):
    result = asserted(
        tmp_path, [called("w", "{}")], {"type": "is-valid-openai-tools-call"}, {"type": "is-valid-function-call"}
    )
    assert [row.reason for row in result.rows] == [
        "the provider has no tools in its configuration", "the provider is no model with functions",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ({"name": "w", "arguments": '{"city": "Oslo"}'}, "pass"),
        ({"function_call": {"name": "w", "arguments": '{"city": 5}'}}, "fail"),
        ({"name": "zip", "arguments": "{}"}, "fail"),
        ("text", "fail"),
    ],
)
def test_calls_of_functions_are_those_of_the_model(tmp_path, output, status):
    kinds = [{"type": "is-valid-function-call"}, {"type": "is-valid-openai-function-call"}]
    config = {
        "providers": [{"id": "openai:gpt-4o", "config": {"functions": [WEATHER]}}],
        "tests": [{"providerOutput": output, "assert": kinds}],
    }
    assert [row.status for row in run(tmp_path, config).rows] == [status] * 2


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ({"type": "contains", "value": "zz"}, "the output does not contain 'zz'"),
        ({"type": "not-contains", "value": "a"}, "the output contains 'a'"),
        ({"type": "starts-with", "value": "zz"}, "the output does not begin with 'zz': 'a b'"),
        ({"type": "not-starts-with", "value": "a"}, "the output must not begin with 'a'"),
        ({"type": "not-equals", "value": "a b"}, "the output is 'a b'"),
        ({"type": "regex", "value": "zz"}, "the output does not match the pattern 'zz'"),
        ({"type": "not-regex", "value": "a"}, "the output matches the pattern 'a'"),
        ({"type": "word-count", "value": {"min": 3, "max": 5}}, "2 words, expected at least 3 and at most 5"),
        ({"type": "not-word-count", "value": 2}, "2 words, forbidden: 2"),
        ({"type": "not-levenshtein", "value": "a"}, "the edit distance is 2, expected more than 5"),
        ({"type": "not-javascript", "value": "output.length > 1"}, "the code returned true"),
    ],
)
def test_a_reason_says_what_was_missing_or_for_not_what_was_there(tmp_path, assertion, reason):
    assert [row.reason for row in asserted(tmp_path, "a b", assertion).rows] == [reason]


@pytest.mark.parametrize(("value", "found"), [(True, "true"), ({"a": None}, "a mapping"), (None, "none")])
def test_a_value_of_another_type_is_shown_as_it_is_written(tmp_path, value, found):
    [row] = asserted(tmp_path, "a", {"type": "contains", "value": value}).rows
    assert row.error.message == f"contains needs a value: expected a text or a number, found {found}"
