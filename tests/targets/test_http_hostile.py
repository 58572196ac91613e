"""Endpoints that misbehave: each call ends within bounds as one clear error."""

import pytest

from targets.loopback import GOOD, ask, failure, reply, sending


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 422, 429])
def test_a_refusal_is_an_adapter_error_with_its_reason(status):
    error = failure(reply({"error": "too long"}, status, ["Retry-After: 99999999"]))
    assert error.type == "adapter_error"
    assert f"HTTP {status}" in str(error)
    assert "too long" in str(error)


@pytest.mark.slow("uses the second that a pattern may take")
def test_a_filter_with_a_catastrophic_pattern_is_ended():
    items = {"items": [{"name": "a" * 40 + "b", "text": "fine"}]}
    error = failure(reply(items), response_mapping={"final_answer": "$.items[?(@.name =~ '(a+)+$')].text"})
    assert error.type == "timeout"
    assert "response_mapping.final_answer: searching for '(a+)+$' took more than 1 s" in str(error)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 599])
def test_a_failure_of_the_server_has_its_own_type(status):
    error = failure(reply(b"<html>\x1b[31m\nBad \x00 gateway</html>", status))
    assert (error.type, str(error).partition(": ")[2]) == ("http_5xx", f"HTTP {status}: <html> [31m Bad gateway</html>")


def test_a_status_beyond_the_known_ones_is_no_failure_of_the_server():
    assert failure(reply(b"denied", 999)).type == "adapter_error"


def test_a_failure_is_reported_at_once_although_its_body_breaks_off():
    assert failure(sending(b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nover")).type == "http_5xx"


def test_a_failure_with_a_large_body_is_reported_briefly():
    assert len(str(failure(reply(b"x" * 2_000_000, 500)))) < 500


@pytest.mark.parametrize(
    "location",
    [
        "/ask", "/other", "http://169.254.169.254/latest/meta-data/", "https://evil.example/?q=1", "file:///etc/passwd",
        "//evil.example/x", "http://[::1", "javascript:alert(1)", "",
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(location, status):
    error = failure(reply(GOOD, status, [f"Location: {location}"]))
    assert error.type == "adapter_error"
    assert f"HTTP {status}" in str(error)


def test_a_redirect_is_named_without_its_query():
    error = failure(reply(b"", 302, ["Location: https://u:hush@other.example/next?token=hush"]))
    assert "redirect to https://other.example/next not followed" in str(error)
    assert "hush" not in str(error)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"error": "too busy"}, "too busy"),
        ({"error": {"message": "too busy", "code": 7}}, "too busy"),
        ({"error": {"code": 7}, "answer": None}, '{"code": 7}'),
        ({"errors": [{"message": "too busy"}], "answer": ""}, "too busy"),
        ({"error": "key sk-hush-hush is wrong\n" + "x" * 9_000}, "key ***MASKED*** is wrong"),
    ],
)
def test_an_error_that_comes_with_status_200_is_one(document, reason):
    error = failure(reply(document), headers={"Authorization": "Bearer sk-hush-hush"})
    assert error.type == "adapter_error"
    assert "HTTP 200, but the body is an error: " in str(error)
    assert reason in str(error)
    assert len(str(error)) < 1_000


@pytest.mark.parametrize("error", [None, False, "", {}, [], True, "not the whole truth"])
def test_an_answer_counts_whatever_is_beside_it(error):
    assert ask(reply({**GOOD, "error": error})).output.final_answer == "fine"


def test_a_mapped_error_is_an_answer():
    answer = ask(reply({"error": "too busy"}), response_mapping={"final_answer": "$.error"})
    assert answer.output.final_answer == "too busy"


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("before", range(280, 304, 4))
def test_no_half_of_a_secret_is_at_the_end_of_an_excerpt(status, before):
    text = b"." * 2 + b" " + b"x" * (before - 3) + b" sk-hush-hush-hush and more " * 20
    assert "sk-" not in str(failure(reply(text, status), headers={"Authorization": "Bearer sk-hush-hush-hush"}))


def test_secrets_that_a_server_repeats_are_not_in_the_error():
    said = {"error": "bad key sk-hush-hush, login let-me-in, token tok-hush-hush", "url": "?api_key=query-hush"}
    error = failure(
        reply(said, 401),
        endpoint="http://me:let-me-in@127.0.0.1:{port}/x?api_key=query-hush",
        headers={"Authorization": "Bearer sk-hush-hush", "X-Token": "tok-hush-hush"},
    )
    assert "HTTP 401" in str(error)
    assert not [secret for secret in ("hush", "let-me-in") if secret in str(error)]
