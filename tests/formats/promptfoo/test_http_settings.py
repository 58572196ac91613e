"""Requests of HTTP providers that are written out, bodies in files, and credentials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, run, write
from formats.promptfoo.services import service

REQUEST = """POST /ask?about={{q}} HTTP/1.1
Host: %s
Content-Type: application/json
X-Part: {{q}}
Content-Length: 999
Accept-Encoding: br

{"said": "{{prompt}}", "n": {{n}}}
"""
VARIABLES = {"q": 'a"b', "n": 5}


def asked_of(folder, config: dict[str, Any], **files: str):
    """The request that a provider sends, with its headers; `HOST` in a text stands for the service."""
    headers: list[dict[str, str]] = []
    with service(headers=headers) as (address, requests):
        host = address.partition("//")[2]
        config = json.loads(json.dumps({"id": "http", "config": config}).replace("HOST", host))
        files = {name: text.replace("HOST", host) for name, text in files.items()}
        run(folder, {**ECHO, "providers": [config], "tests": [{"vars": VARIABLES}]}, **files)
    [(method, path, body, _)] = requests
    return method, path, body, {name.lower(): value for name, value in headers[0].items()}


@pytest.mark.parametrize("where", ["inline", "file"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_request_is_sent_as_it_is_written_out(tmp_path, where, ends):
    text = (REQUEST % "HOST").replace("\n", ends)
    config = {"request": text if where == "inline" else "file://r.txt", "method": "GET", "headers": {"X-No": "1"}}
    method, path, body, headers = asked_of(tmp_path, config, r__txt=text)
    assert (method, path, json.loads(body)) == ("POST", "/ask?about=a%22b", {"said": 'a"b', "n": 5})
    assert (headers["x-part"], headers["content-length"], "x-no" in headers) == ('a"b', str(len(body)), False)
    assert headers["accept-encoding"] == "gzip"  # what is read, whatever packages httpx finds


def test_a_request_goes_to_https_if_the_provider_says_so(tmp_path):
    request = {"request": REQUEST % "example.com"}
    providers = [{"id": "https", "config": request}, {"id": "http", "config": {**request, "useHttps": True}}]
    suite = load_suite(write(tmp_path, {**ECHO, "providers": providers}))
    urls = {variant.config["provider"]["config"]["url"] for variant in suite.variants}
    assert urls == {"https://example.com/ask?about={{q}}"}


def test_what_is_no_request_is_told_with_its_place(tmp_path):
    wrong = ["SAY hello", "GET / HTTP/1.1\nHost example.com", "file://gone.txt"]
    providers = [{"id": "http", "config": {"request": text}} for text in wrong]
    with pytest.raises(InputError) as told:
        load_suite(write(tmp_path, {**ECHO, "providers": providers}))
    assert [(entry.key, entry.message.partition(",")[0]) for entry in told.value.listed] == [
        ("providers[0].config.request", "expected a request that begins like 'POST /path HTTP/1.1'"),
        ("providers[1].config.request", "expected a header"),
        ("providers[1].config.request", "the request has no header Host"),
        ("providers[2].config.request", "there is no file 'file://gone.txt'"),
    ]


def test_a_body_may_be_in_a_file(tmp_path):
    config = {"url": "http://HOST", "method": "POST", "body": {"all": "file://b.yaml", "text": "file://t.txt"}}
    _, _, body, _ = asked_of(tmp_path, config, b__yaml="said: '{{prompt}}'\n", t__txt="plain {{n}}")
    assert json.loads(body) == {"all": {"said": 'a"b'}, "text": "plain 5"}


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        ({"type": "bearer", "token": "t0ken-{{n}}"}, "authorization", "Bearer t0ken-5"),
        ({"type": "basic", "username": "me", "password": "pass"}, "authorization", "Basic bWU6cGFzcw=="),
        ({"type": "api_key", "keyName": "X-Key", "value": "k", "placement": "header"}, "x-key", "k"),
    ],
)
def test_credentials_are_sent(tmp_path, auth, name, value):
    config = {"url": "http://HOST", "headers": {name.title(): "other"}, "auth": auth}
    assert asked_of(tmp_path, config)[3][name] == value


def test_a_key_may_be_part_of_the_address(tmp_path):
    auth = {"type": "api_key", "keyName": "key", "value": "k{{n}}", "placement": "query"}
    assert asked_of(tmp_path, {"url": "http://HOST/a?b=1", "auth": auth})[1] == "/a?b=1&key=k5"


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        ({"type": "oauth", "tokenUrl": "https://example.com"}, "'oauth' with tokenUrl: expected bearer with token"),
        ({"type": "bearer"}, "'bearer' with nothing: expected bearer with token"),
        ({"type": "basic", "username": "{{q}}", "password": "p"}, "expected texts without variables of tests"),
    ],
)
def test_credentials_that_cannot_be_sent_are_refused(tmp_path, auth, said):
    provider = {"id": "http://example.com", "config": {"auth": auth}}
    with pytest.raises(InputError, match=said):
        load_suite(write(tmp_path, {**ECHO, "providers": [provider]}))


def test_credentials_in_a_request_are_not_stored(tmp_path):
    secret = "Bearer s3cret-of-mine"
    text = f"GET / HTTP/1.1\nHost: HOST\nAuthorization: {secret}\n"
    config = {"request": "file://r.txt"}
    assert asked_of(tmp_path, config, r__txt=text)[3]["authorization"] == secret
    kept = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"s3cret-of-mine" in row for row in kept)


def test_requests_name_the_tools_of_the_prompt_or_else_of_the_provider(tmp_path):
    body = {"tools": "{{tools}}", "choice": "{{ tool_choice }}", "first": "{{ tools[0] }}"}
    tools = {"tools": [{"name": "t1"}], "tool_choice": "auto"}
    _, _, body, _ = asked_of(tmp_path, {"url": "http://HOST/ask", "method": "POST", "body": body, **tools})
    assert json.loads(body) == {"tools": [{"name": "t1"}], "choice": "auto", "first": "["}


def test_a_prompts_own_tools_take_precedence(tmp_path):
    with service() as (address, requests):
        config = {"url": address, "method": "POST", "body": {"tools": "{{tools}}"}, "tools": [{"name": "t1"}]}
        prompt = {"raw": "{{q}}", "label": "own", "config": {"tools": [{"name": "t2"}]}}
        provider = {"id": "http", "config": config}
        run(tmp_path, {"prompts": [prompt], "providers": [provider], "tests": [{"vars": {"q": 1}}]})
    assert json.loads(requests[0][2]) == {"tools": [{"name": "t2"}]}


@pytest.mark.parametrize("key", ["multipart", "session", "signatureAuth", "tls"])
def test_settings_that_would_change_the_request_are_rejected_by_name(tmp_path, key):
    config = {"url": "http://127.0.0.1:1", "method": "POST", key: {"a": 1}}
    with pytest.raises(InputError, match=rf"providers\[0\]\.config\.{key} +{key} is not supported: "):
        load_suite(write(tmp_path, {**ECHO, "providers": [{"id": "http", "config": config}]}))


def test_a_redirect_is_an_error_and_not_an_empty_output(tmp_path):
    with service(status=302, sends=("Location", "http://127.0.0.1:1/next")) as (address, _):
        ran = run(tmp_path, {**ECHO, "providers": [address], "tests": [{"vars": {"q": "a"}}]})
    assert ran.statuses == ["error"]
    assert "HTTP 302: redirect to http://127.0.0.1:1/next not followed" in str(ran.verdict.error)


def test_tests_share_no_cookies(tmp_path):
    headers: list[dict[str, str]] = []
    config = {**ECHO, "tests": [{"vars": {"q": ["a", "b"]}}], "evaluateOptions": {"maxConcurrency": 1}}
    with service(headers=headers, sends=("Set-Cookie", "session=1; Path=/")) as (address, _):
        run(tmp_path, {**config, "providers": [address]})
    assert ["Cookie" in header for header in headers] == [False, False]


@pytest.mark.parametrize(
    ("status", "options", "calls"), [(500, {}, 1), (500, {"max_retries": 1}, 2), (429, {"max_retries": 0}, 1)]
)
def test_a_service_that_fails_is_called_again_as_often_as_the_command_line_says(tmp_path, status, options, calls):
    with service(status=status) as (address, asked):
        found = run(tmp_path, {**ECHO, "providers": [address], "tests": [{"vars": VARIABLES}]}, options=options)
    assert (found.statuses, len(asked)) == (["error"], calls)
