"""Assertions that services judge: a moderation model, and webhooks."""

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, asserted, run, write
from formats.promptfoo.services import service

NAMES = ("hate", "hate/threatening", "self-harm")


def moderated(method, path, body):
    """What OpenAI says of a text that contains names of categories."""
    text = json.loads(body)["input"]
    flags = {name: name in text for name in NAMES}
    scores = {name: 0.75 if flag else 0.25 for name, flag in flags.items()}
    flagged = any(flags.values()) or "oddly" in text
    result = {"flagged": flagged, "categories": flags, "category_scores": scores}
    return json.dumps({"id": "m", "model": "m", "results": [result]}).encode()


def moderation(address, kind="moderation", **keys):
    config = {"apiBaseUrl": f"{address}/v1", "apiKey": "sk-test"}
    return {"type": kind, "provider": {"id": "openai:moderation", "config": config}, **keys}


@pytest.mark.parametrize(
    ("output", "value", "passes"),
    [
        ("fine", None, True),
        ("hate", None, False),
        ("hate/threatening", ["hate"], False),
        ("self-harm", ["hate", "hate/threatening"], True),
        ("", None, True),
        ("oddly", None, None),
        ("hate", "hate", None),
    ],
)
def test_a_moderation_model_flags_categories(tmp_path, output, value, passes):
    kinds = ("moderation", "not-moderation")
    with service(moderated, status=200, sends=("Content-Type", "application/json")) as (address, requests):
        ran = asserted(tmp_path, output, *(moderation(address, kind, value=value) for kind in kinds))
    assert [row.passed for row in ran.rows] == ([False, False] if passes is None else [passes, not passes])
    assert [row.error is None for row in ran.rows] == [passes is not None] * 2
    assert {json.loads(body)["model"] for _, _, body, _ in requests} <= {"omni-moderation-latest"}
    if output.startswith(NAMES) and passes is not None:
        assert ran.rows[0].detail["scores"]["self-harm"] == (0.75 if output == "self-harm" else 0.25)


def test_a_moderation_model_answers_no_prompts(tmp_path):
    moderator = "openai:moderation:omni-moderation-latest"
    tests = [{"vars": {"q": "a"}, "provider": moderator}]
    for config in ({"providers": ["echo", moderator]}, {"providers": moderator}, {"tests": tests}):
        with pytest.raises(InputError, match="only judges outputs") as refused:
            load_suite(write(tmp_path, {**ECHO, **config}))
        assert len(refused.value.listed) == 1


@pytest.mark.parametrize(
    ("reply", "holds", "scores", "reason"),
    [
        ({"pass": True}, True, (1, 0), ""),
        ({"pass": False}, False, (0, 1), "replied that the output fails"),
        ({"pass": True, "score": 0.75, "reason": "short"}, True, (0.75, 0.25), "short"),
        ({"pass": False, "score": 0.25, "reason": ["x"]}, False, (0.25, 0.75), "replied that the output fails"),
    ],
)
def test_a_webhook_says_whether_an_output_passes(tmp_path, reply, holds, scores, reason):
    with service(lambda *_: json.dumps(reply).encode(), status=200) as (address, requests):
        value = f"{address}/{{{{q}}}}"
        ran = asserted(tmp_path, {"n": 5}, *({"type": kind, "value": value} for kind in ("webhook", "not-webhook")))
    assert [(row.passed, row.score) for row in ran.rows] == [(holds, scores[0]), (not holds, scores[1])]
    assert reason in ran.rows[0].reason
    method, path, body, kind = requests[0]
    assert (method, path, kind) == ("POST", "/asked", "application/json")
    assert json.loads(body) == {"output": {"n": 5}, "context": {"prompt": "asked", "vars": {"q": "asked"}}}


@pytest.mark.parametrize(
    ("reply", "status", "why"),
    [
        (b'{"pass": "yes"}', 200, "expected an object with pass"),
        (b"[true]", 200, "expected an object with pass"),
        (b'{"pass": true, "score": "1"}', 200, "expected a number as score, found '1'"),
        (b"pass", 200, "not valid JSON"),
        (b'{"pass": true}', 500, "HTTP 500"),
        (b'{"pass": true}', 302, "not followed"),
    ],
)
def test_a_webhook_without_a_verdict_is_an_error(tmp_path, reply, status, why):
    """promptfoo takes most of these for failures, also of `not-webhook`."""
    with service(lambda *_: reply, status=status, sends=("Location", "/elsewhere")) as (address, requests):
        address = address.replace("//", "//user:s3cretword@")
        ran = asserted(tmp_path, "a", {"type": "not-webhook", "value": f"{address}/hook?token=t0k3nword"})
    [row] = ran.rows
    assert (row.status, len(requests)) == ("error", 1)
    assert row.error is not None
    assert why in row.error.message
    assert "word" not in row.error.message


def test_a_webhook_has_the_time_of_promptfoos_variable(tmp_path, monkeypatch):
    """Without one, five seconds."""
    from threading import Event

    monkeypatch.setenv("WEBHOOK_TIMEOUT", "50")
    ended = Event()
    with service(lambda *_: b"{}" if ended.wait(30) else b"", status=200) as (address, _):
        ran = asserted(tmp_path, "a", {"type": "webhook", "value": address})
        ended.set()
    assert [row.error.message.rpartition(" did")[2] for row in ran.rows if row.error] == [" not reply within 0.05 s"]


def test_an_assertion_that_no_service_can_judge_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    wrong = [{"type": "webhook"}, {"type": "webhook", "value": "localhost:80/x"}, {"type": "moderation", "value": "a"}]
    tests = [{"vars": {"q": "a"}, "assert": [*wrong, {"type": "webhook", "value": "{{q}}"}]}]
    said = [str(warning) for warning in load_suite(write(tmp_path, {**ECHO, "tests": tests})).warnings]
    assert [f"assert[{i}]" in warning for i, warning in enumerate(said)] == [True] * 3
    assert run(tmp_path, {**ECHO, "tests": tests}).statuses == ["error"]


@pytest.mark.parametrize("address", ["http:///hook", "http://127.0.0.1:99999", "https://[::1"])
def test_what_is_no_address_of_a_webhook_is_said(tmp_path, address):
    [row] = asserted(tmp_path, "a", {"type": "webhook", "value": address}).rows
    assert row.error is not None
    assert (row.error.type, "is no address" in row.error.message) == ("bad_value", True)
