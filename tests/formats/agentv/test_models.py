"""Models as targets and as judges, through their HTTP interfaces."""

import asyncio
import base64
import json
import os
import threading
from typing import NamedTuple

import pytest

from evalwright.formats.loading import load_suite
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from llm.models import anthropic, openai
from targets.loopback import reply, serving

CHECK = {"name": "l", "type": "latency", "threshold": 60000}
LOCAL = {"provider": "openai", "model": "m", "base_url": "HERE/v1"}
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def run(tmp_path):
    """Runs one case against a server that gives some replies; the records and what the server was asked."""

    def run(target, *replies, evaluators=(CHECK,), messages=MESSAGES, **more):
        (tmp_path / ".git").mkdir(exist_ok=True)
        case = {"id": "a", "expected_outcome": "x", "input": messages, "execution": {"evaluators": [*evaluators]}}
        (tmp_path / "EVAL.yaml").write_text(json.dumps({"name": "suite", "evalcases": [case]}))
        ready, done, found = threading.Event(), threading.Event(), {}

        def serve():
            async def serving_until_done():
                async with serving(*replies) as server:
                    found["server"] = server
                    ready.set()
                    await asyncio.to_thread(done.wait)

            asyncio.run(serving_until_done())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            ready.wait(10)
            here = f"http://127.0.0.1:{found['server'].port}"
            listed = [{"name": "default", **target, **more}]
            text = json.dumps({"targets": listed}).replace("HERE", here)
            (tmp_path / "targets.yaml").write_text(text)
            suite = load_suite(tmp_path / "EVAL.yaml", "agentv")
            suite.out = tmp_path / "runs"
            reader, _ = open_run(run_suite(suite).run_dir)
        finally:
            done.set()
            thread.join(10)
        requests = [Request(**request) for request in found["server"].requests]
        return list(reader.traces(Trace)), list(reader.results(EvaluationResult)), requests

    return run


def test_what_a_model_refuses_with_is_the_answer_of_a_system(run):
    [trace], *_ = run(LOCAL, openai(None, refusal="I would rather not."))
    assert trace.output.final_answer == "I would rather not."


@pytest.mark.parametrize(
    ("target", "variable", "path"),
    [
        ({"provider": "openai", "model": "m", "base_url": "HERE/v1"}, "OPENAI_API_KEY", "/v1/chat/completions"),
        ({"provider": "gemini", "model": "m", "base_url": "HERE/v1beta/openai"}, "GEMINI_API_KEY", "/v1beta/openai/"),
        ({"provider": "azure", "deployment": "m", "endpoint": "HERE"}, "AZURE_OPENAI_API_KEY", "/openai/v1/chat/"),
        ({"provider": "azure", "deployment_name": "m", "resource": "HERE"}, "AZURE_OPENAI_API_KEY", "/openai/v1/chat/"),
    ],
)
def test_models_behind_chat_completions_answer(run, monkeypatch, target, variable, path):
    monkeypatch.setenv(variable, "k3y")
    monkeypatch.setenv("MY_KEY", "0wn")
    (trace,), _, requests = run(target, openai("four"))
    (request,) = requests
    assert (trace.output.final_answer, trace.metrics.token_output) == ("four", 10)
    assert (request.path.startswith(path), request.headers["authorization"]) == (True, "Bearer k3y")
    assert [m["role"] for m in json.loads(request.body)["messages"]] == ["system", "user"]


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ({"provider": "azure", "deployment": "d", "model": "m", "endpoint": "HERE"}, "d"),
        ({"provider": "openai", "variant": "v", "base_url": "HERE/v1"}, "v"),
        ({"provider": "gemini", "base_url": "HERE/v1"}, "gemini-2.5-flash"),
    ],
)
def test_a_model_is_named_as_in_the_original(run, monkeypatch, target, model):
    for variable in ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, "k3y")
    _, _, (request,) = run(target, openai("four"))
    assert json.loads(request.body)["model"] == model


def test_a_target_names_its_key(run, monkeypatch):
    monkeypatch.setenv("MY_KEY", "0wn")
    target = {"provider": "azure", "deployment": "m", "endpoint": "HERE", "api_key": "${{ MY_KEY }}"}
    _, _, (request,) = run(target, openai("four"))
    assert request.headers["authorization"] == "Bearer 0wn"


def test_a_key_in_the_file_is_used_and_never_stored(run, tmp_path, monkeypatch):
    monkeypatch.setenv("DEFAULT_API_KEY", "")
    _, _, (request,) = run({**LOCAL, "api_key": "written-k3y"}, openai("four"))
    assert request.headers["authorization"] == "Bearer written-k3y"
    stored = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert b"written-k3y" not in stored


def keys_by_target(folder, *targets):
    """The keys that targets' models are asked with, and their variables, by target, of an EVAL.yaml beside these."""
    listed = [{"provider": "openai", "model": "m", **target} for target in targets]
    folder.mkdir()
    case = {"expected_outcome": "x", "input": "y"}
    cases = [{"id": t["name"], **case, "execution": {"target": t["name"], "evaluators": [CHECK]}} for t in targets]
    (folder / "EVAL.yaml").write_text(json.dumps({"name": "suite", "evalcases": cases}))
    (folder / "targets.yaml").write_text(json.dumps({"targets": listed}))
    suite = load_suite(folder / "EVAL.yaml", "agentv")
    targets = suite.variants[0].config["targets"]
    known = {**suite.environment, **os.environ}
    return {name: (target["api_key_env"], known[target["api_key_env"]]) for name, target in targets.items()}


def test_keys_in_files_overwrite_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("os.environ", {**os.environ, "OPENAI_API_KEY": "of-the-environment"})
    before, named = dict(os.environ), ("default", "openai", "o-1", "o.1")
    one = keys_by_target(tmp_path / "one", *({"name": n, "api_key": f"k3y of {n}"} for n in named))
    two = keys_by_target(tmp_path / "two", {"name": "default", "api_key": "k3y of two"})
    assert [one[n][1] for n in named] == [f"k3y of {n}" for n in named]
    assert len({variable for variable, _ in one.values()}) == len(named)
    assert two["default"][1] == "k3y of two"
    assert os.environ == before


@pytest.mark.parametrize(
    ("keys", "status", "calls"),
    [
        ({"max_retries": 0}, 500, 1),
        ({"max_retries": 2}, 500, 3),
        ({"max_retries": 2, "retry_status_codes": [418]}, 418, 3),
        ({"max_retries": 2, "retry_status_codes": [418]}, 500, 1),
    ],
)
def test_a_target_says_how_often_its_model_is_asked_again(run, keys, status, calls):
    waits = {"retry_initial_delay_ms": 1, "retry_max_delay_ms": 2, "retry_backoff_factor": 1.5}
    (trace,), _, requests = run({**LOCAL, **waits, **keys}, reply({"error": {"message": "no"}}, status))
    assert (len(requests), f"HTTP {status}" in trace.error.message) == (calls, True)


def test_anthropic_answers(run, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k3y")
    target = {"provider": "anthropic", "model": "m", "base_url": "HERE"}
    (trace,), _, (request,) = run(target, anthropic("four"))
    assert (trace.output.final_answer, json.loads(request.body)["system"]) == ("four", "Be brief.")


def test_models_judge(run, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k3y")
    target = {"provider": "openai", "model": "m", "base_url": "HERE/v1"}
    judge = {"name": "j", "type": "llm_judge", "config": {"temperature": 0, "max_tokens": 50}}
    _, (row,), requests = run(target, openai("four"), openai('{"score": 0.9}'), evaluators=[judge])
    body = json.loads(requests[1].body)
    assert (row.score, body["temperature"], body["max_tokens"]) == (0.9, 0, 50)
    assert "four" in body["messages"][1]["content"]


PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
PNG_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()


def asking_about(*blocks):
    return [{"role": "user", "content": [{"type": "text", "value": "What is this?"}, *blocks]}]


@pytest.mark.parametrize(
    ("block", "url"),
    [
        ({"type": "image", "value": "cat.png"}, PNG_URL),
        ({"type": "file", "value": "cat.png"}, PNG_URL),
        ({"type": "image", "value": PNG_URL}, PNG_URL),
        ({"type": "image", "value": PNG_URL.partition(",")[2]}, PNG_URL),
        ({"type": "image", "value": "https://example.org/cat.png"}, "https://example.org/cat.png"),
    ],
)
def test_models_see_images(run, tmp_path, block, url):
    (tmp_path / "cat.png").write_bytes(PNG)
    _, _, (request,) = run(LOCAL, openai("a cat"), messages=asking_about(block, {"type": "text", "value": "Be brief."}))
    assert json.loads(request.body)["messages"][0]["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": "Be brief."},
    ]


def test_anthropic_sees_images_in_its_own_form(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k3y")
    (tmp_path / "cat.png").write_bytes(PNG)
    target = {"provider": "anthropic", "model": "m", "base_url": "HERE"}
    blocks = [{"type": "image", "value": "/cat.png"}, {"type": "image", "value": "https://example.org/cat.png"}]
    _, _, (request,) = run(target, anthropic("a cat"), messages=asking_about(*blocks))
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert json.loads(request.body)["messages"][0]["content"][1:] == [
        {"type": "image", "source": source},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}},
    ]


def test_late_system_messages_keep_their_place(run):
    messages = [*MESSAGES, {"role": "system", "content": "Now in French."}, {"role": "user", "content": "3+3?"}]
    _, _, (request,) = run(LOCAL, openai("six"), messages=messages)
    said = [(m["role"], m["content"]) for m in json.loads(request.body)["messages"]]
    assert said[2] == ("assistant", "@[System]:\nNow in French.")


def test_tokens_that_a_model_does_not_report_are_no_tokens_used(run):
    silent = reply({"model": "m", "choices": [{"message": {"role": "assistant", "content": "four"}}]})
    check = {"name": "t", "type": "token_usage", "max_total": 100}
    (trace,), (row,), _ = run(LOCAL, silent, evaluators=[check])
    assert (trace.metrics.token_input, row.score) == (None, 0)
