"""Requests to a service, and what code makes of its responses."""

from __future__ import annotations

import json

import pytest

from formats.promptfoo.runs import ECHO, run
from formats.promptfoo.services import service


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
    ("body", "code", "seen"),
    [
        ({"a": "b", "error": None}, "json", {"a": "b", "error": None}),
        ({"error": "down"}, "json", {"error": "down"}),
        ({"jobs": [{"error": "down"}]}, "json.jobs[0]", {"error": "down"}),
        ({"a": "b", "error": "down"}, "({text: json.a, error: json.none})", {"text": "b"}),
        ({"a": "b", "error": "down"}, "({error: json.error})", "down"),
    ],
)
def test_code_reports_errors_and_data_of_that_name_do_not(tmp_path, body, code, seen):
    with service(lambda *_: json.dumps(body).encode()) as (address, _):
        provider = {"id": address, "config": {"transformResponse": code}}
        [trace] = run(tmp_path, {**ECHO, "providers": [provider], "tests": [{"vars": {"q": "x"}}]}).traces.values()
    assert seen == (trace.extra["promptfoo"]["output"] if trace.error is None else trace.error.message)


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
        ({"headers": JSON, "body": {"k": 1}, "transformRequest": '{"p": "{{n}}"}'}, {"k": 1, "p": "{{n}}"}),
        ({"headers": JSON, "body": {"p": "{{prompt}}"}, "transformRequest": "`<${vars.n}>`"}, {"p": "<5>"}),
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


def test_a_mapping_is_not_sent_as_anything_but_json(tmp_path):
    with service() as (address, requests):
        web = {"method": "POST", "headers": {"content-type": FORM}, "body": {"p": "{{prompt}}"}}
        config = {**ECHO, "providers": [{"id": address, "config": web}], "tests": [{"vars": {"q": "x"}}]}
        [trace] = run(tmp_path, config).traces.values()
    assert (trace.error.message, requests) == (
        f"a body of type {FORM} is a text: expected one, found a mapping or a list", [],
    )  # fmt: skip


def test_headers_may_have_the_letters_of_latin_1(tmp_path):
    headers = []
    with service(headers=headers) as (address, _):
        provider = {"id": address, "config": {"headers": {"X-Name": "{{q}}"}}}
        tests = [{"vars": {"q": "José"}}, {"vars": {"q": "π"}}]
        found = run(tmp_path, {**ECHO, "providers": [provider], "tests": tests})
    assert (found.statuses, [header["X-Name"] for header in headers]) == (["pass", "error"], ["José"])
    [*_, failed] = found.traces.values()
    assert failed.error.message.startswith("the request cannot be made: 'latin-1' codec can't encode")


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
